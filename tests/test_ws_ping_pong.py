"""Two groups in turn, from sources with 8 warps and with 4: values, protocol, machine code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.protocol_mutants import Mutant, mutants
from tests.protocol_support import module_of
from tests.ws_core_support import compile_with
from tests.ws_split_kernels import Nest, run_pass, specialized
from tilepass.core.assembler import AssemblerLog
from tilepass.core.errors import PassFailure
from tilepass.ir import engine
from tilepass.ir.engine import Module
from tilepass.sim.equivalence import assert_equivalent
from tilepass.sim.inputs import parse_shapes
from tilepass.sim.protocol.check import find
from tilepass.sim.protocol.compiler import ProtocolProgram
from tilepass.sim.protocol.problems import Problem
from tilepass.sim.protocol_check import check_protocol

STAGES = 3
STEPS = (0, 1, STAGES - 1, STAGES, STAGES + 1)
PONG = f"scheme=ping-pong,stages={STAGES}"

CASES = [
    (Nest("none"), f"{PONG},epilogue-subtile=4,c-buffers=2"),
    (Nest("bias"), f"{PONG},epilogue-subtile=1,c-buffers=1"),
    (Nest("gelu", n=128), f"{PONG},epilogue-subtile=2,c-buffers=3"),
    (Nest("residual"), f"{PONG},epilogue-subtile=2,c-buffers=1"),
    # As many buffers as pieces: loaded and stored in place.
    (Nest("residual"), f"{PONG},epilogue-subtile=2,c-buffers=2"),
    (Nest("in-place", m=64, n=256), f"{PONG},epilogue-subtile=4,c-buffers=1"),
    (Nest("two-stores"), f"{PONG},epilogue-subtile=2,c-buffers=2"),
    (Nest("pointers"), f"{PONG},epilogue-subtile=1"),
    (Nest("bias", warps=4), f"{PONG},epilogue-subtile=2,c-buffers=2"),
]


@pytest.mark.parametrize(("nest", "options"), CASES, ids=str)
def test_values_and_protocol(nest: Nest, options: str) -> None:
    """The same bits as the plain kernel where each group has tiles of other rows and of other
    columns, where one has a tile more, and where one or both have none."""
    before, after = nest.module(), specialized(nest, options)
    assert '"ttg.num-warps" = 4 : i32' in engine.print_generic(after)
    many = [nest.sizes(steps, tiles=3, across=2) for steps in STEPS]
    few = [nest.sizes(steps, tiles=1) for steps in (0, 2)]
    for shapes, grid in ((many, (1,)), (few, (3,))):
        assert_equivalent(before, after, shapes=shapes, seeds=1, grid=grid)
        said = check_protocol(after, shapes=shapes, seeds=2, grid=grid)
        assert said is not None
        assert "schedules" in said


def test_mistakes_in_the_protocol_are_reported() -> None:
    """Each eleventh of the mistakes that the simulator knows. Four pieces and three buffers: a slot
    of each sort is the last one before the first in some tile of four."""
    nest = Nest("residual")
    after = specialized(nest, f"{PONG},epilogue-subtile=4,c-buffers=3")
    found = mutants(after)
    groups = {mutant.group for mutant in found}
    assert {"arrival", "barrier", "bytes", "fence", "phase", "slot", "wait"} <= groups
    assert _missed(nest, after, found[::11]) == []


def test_pieces_in_place_are_handed_back() -> None:
    """The mistakes with waits and arrivals, fences, barriers, where a piece is stored from where it
    was loaded to. (In each slot is the same piece of every tile.)"""
    nest = Nest("residual")
    after = specialized(nest, f"{PONG},epilogue-subtile=2,c-buffers=2")
    chosen = [
        each
        for each in mutants(after)
        if each.group in ("arrival", "barrier", "fence", "wait") and "partition" not in each.name
    ]
    assert _missed(nest, after, chosen[::2]) == []


def _missed(nest: Nest, module: Module, chosen: Sequence[Mutant]) -> list[str]:
    """The mistakes that are not reported: several tiles for each group, and tiles without steps."""
    sizes = [nest.sizes(steps, tiles) for steps, tiles in ((4, 6), (1, 9), (0, 5))]
    problems = [Problem(parse_shapes(each)) for each in sizes]
    missed: list[str] = []
    for mutant in chosen:
        program = ProtocolProgram(mutant.apply(module))
        if not any(find(program, problem, range(4)) for problem in problems):
            missed.append(mutant.name)
    return missed


@pytest.mark.parametrize(
    ("nest", "options", "reason"),
    [
        (Nest(warps=16), PONG, "num_warps = 16: this takes 4 or 8"),
        (Nest(n=256), PONG, "the accumulator takes 256 registers a thread"),
        (
            Nest(),
            f"{PONG},late-subtiles=1",
            "ping-pong cannot be built with late-subtiles=1; leave",
        ),
    ],
    ids=("warps", "registers", "late"),
)
def test_refused(nest: Nest, options: str, reason: str) -> None:
    with pytest.raises(PassFailure, match=reason):
        specialized(nest, options)


def test_other_functions_keep_the_number_of_warps() -> None:
    text = (
        Nest()
        .text()
        .replace("tt.func public @matmul", "tt.func @other() { tt.return }\ntt.func public @matmul")
    )
    with pytest.raises(PassFailure, match="num_warps becomes 4, and the module holds other"):
        run_pass(module_of(text), f"epilogue-warp-specialize{{{PONG}}}")


@pytest.mark.parametrize(
    ("texts", "plan"),
    [
        ({"epilogue": "bias_gelu"}, "ping-pong, 6 stages, 2 C buffers, 4 subtiles"),
        ({"epilogue": "residual"}, "ping-pong, 5 stages, 4 C buffers, 4 subtiles, in place"),
    ],
    ids=("gelu", "residual"),
)
def test_binaries_from_eight_warps(
    texts: dict[str, str], plan: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """128x128 on 4 warps: no spills, dots not serialized."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    narrow = {"block_n": "128", "num_stages": "4", "num_warps": "8", "flatten": "false"}
    compiled = compile_with("persistent-matmul", "scheme=ping-pong", **narrow, **texts)
    assert compiled.log == AssemblerLog(0, 0, ())
    assert compiled.kernel.metadata.num_warps == 12
    assert compiled.kernel.metadata.shared <= 232448
    (remark,) = (each for each in compiled.remarks if each.kind == "passed")
    assert remark.message.startswith(plan)
