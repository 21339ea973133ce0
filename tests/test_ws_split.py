"""Consumers that share a tile, executed: values, protocol, mistakes that must be noticed."""

from __future__ import annotations

import pytest

from tests.protocol_mutants import mutants
from tests.protocol_support import module_of
from tests.ws_split_kernels import EPILOGUES, Nest, run_pass, specialized
from tilepass.core.errors import PassFailure
from tilepass.ir import engine
from tilepass.ir.loops import defining_operation
from tilepass.sim.equivalence import assert_equivalent
from tilepass.sim.inputs import parse_shapes
from tilepass.sim.protocol.check import find
from tilepass.sim.protocol.compiler import ProtocolProgram
from tilepass.sim.protocol.problems import Problem
from tilepass.sim.protocol_check import check_protocol

STAGES = 3
STEPS = (0, 1, STAGES - 1, STAGES, STAGES + 1)
SPLIT = f"scheme=split-consumer,stages={STAGES}"
COOPERATIVE = f"scheme=cooperative,stages={STAGES}"

CASES = [
    (Nest(epilogue), f"{SPLIT},epilogue-subtile={subtiles},c-buffers={buffers}")
    for epilogue, subtiles, buffers in (
        ("none", 1, 1),
        ("none", 4, 2),
        ("bias", 2, 2),
        ("residual", 2, 1),
        # As many buffers as pieces: loaded and stored in place.
        ("residual", 2, 2),
        ("in-place", 2, 2),
        ("two-stores", 2, 2),
        ("pointers", 2, 1),
        # Rows of 32 bytes, in slots of 128.
        ("row", 4, 2),
    )
] + [
    (Nest("gelu", warps=4), f"{SPLIT},epilogue-subtile=1,c-buffers=2"),
    (Nest("residual", m=64, n=128, warps=4), f"{SPLIT},epilogue-subtile=1"),
    (Nest("none"), f"{SPLIT},late-subtiles=0,alternate-epilogues=false"),
    (Nest("residual"), f"{COOPERATIVE},epilogue-subtile=2,c-buffers=2"),
    (Nest("two-stores", n=128, warps=4), f"{COOPERATIVE},epilogue-subtile=4,c-buffers=1"),
]


def test_every_epilogue_is_a_case() -> None:
    assert {nest.epilogue for nest, _ in CASES} == set(EPILOGUES)


@pytest.mark.parametrize(("nest", "options"), CASES, ids=str)
def test_values_and_protocol(nest: Nest, options: str) -> None:
    """The same bits as the plain kernel, several tiles per program, at trip counts around the
    number of slots; no schedule breaks the protocol."""
    before, after = nest.module(), specialized(nest, options)
    shapes = [nest.sizes(steps) for steps in STEPS]
    assert_equivalent(before, after, shapes=shapes, seeds=1, grid=(1,))
    said = check_protocol(after, shapes=shapes, seeds=2)
    assert said is not None
    assert "schedules" in said


def test_fewer_tiles_than_programs() -> None:
    nest = Nest("bias")
    after = specialized(nest, SPLIT)
    assert_equivalent(nest.module(), after, shapes=[nest.sizes(2, tiles=1)], seeds=1, grid=(3,))
    check_protocol(after, shapes=[nest.sizes(2, tiles=1)], grid=(3,))


def test_mistakes_in_the_protocol_are_reported() -> None:
    """Waits dropped, wrong counts, wrong parities, missing turns, missing fences: each eleventh of
    the mistakes that the simulator knows, all of those with barriers' counts."""
    nest = Nest("residual")
    after = specialized(nest, f"{SPLIT},epilogue-subtile=1,c-buffers=1,alternate-epilogues=true")
    found = mutants(after)
    groups = {mutant.group for mutant in found}
    assert {"arrival", "barrier", "bytes", "fence", "phase", "slot", "wait"} <= groups
    problems = [Problem(parse_shapes(nest.sizes(steps))) for steps in (4, 1, 0)]
    chosen = [*found[::11], *(each for each in found if each.name.endswith("count + 1"))]
    missed = [mutant.name for mutant in chosen if not _is_reported(mutant.apply(after), problems)]
    assert missed == []


def test_a_group_that_does_not_wait_for_its_turn_is_seen() -> None:
    """Without the wait before its epilogue, or an arrival that hands the turn over: behind the
    first dot, in a tile without steps, at the end."""
    nest = Nest()
    one_buffer = "epilogue-subtile=1,c-buffers=1,alternate-epilogues=true"
    after = specialized(nest, f"{SPLIT},{one_buffer}")
    places = engine.operations(after)
    removed = [each for each in mutants(after) if each.name.endswith(": removed")]
    turns = [each for each in removed if _is_about_turns(places[each.index])]
    assert len(turns) >= 2 * len(("wait", "first dot", "no steps"))
    problems = [Problem(parse_shapes(nest.sizes(steps))) for steps in (4, 1, 0)]
    missed = [each.name for each in turns if not _is_reported(each.apply(after), problems)]
    assert missed == []


def _is_about_turns(operation: engine.Operation) -> bool:
    """Whether an operation waits for or arrives at one of the two barriers that are the turns: the
    rings have as many barriers as slots, which are 3 and 1 here."""
    if operation.name not in ("ttng.wait_barrier", "ttng.arrive_barrier"):
        return False
    index = defining_operation(operation.operands[0])
    return index is not None and "<2x1xi64" in str(index.operands[0].type)


def _is_reported(module: engine.Module, problems: list[Problem]) -> bool:
    program = ProtocolProgram(module)
    return any(find(program, problem, range(4)) for problem in problems)


@pytest.mark.parametrize(
    ("nest", "options", "reason"),
    [
        (Nest(m=64, n=8, warps=4), SPLIT, "a tile of 64x8 cannot be shared out to two consumers"),
        (Nest(m=256, n=256), SPLIT, "the accumulator takes 256 registers a thread"),
        (Nest(), "scheme=split-consumer,stages=40", "bytes of shared memory of 232448"),
    ],
    ids=("narrow", "registers", "shared"),
)
def test_refusals(nest: Nest, options: str, reason: str) -> None:
    with pytest.raises(PassFailure, match=reason):
        specialized(nest, options)


@pytest.mark.parametrize(
    ("nest", "old", "new", "reason"),
    [
        (
            Nest("in-place"),
            "tt.descriptor_load %c_desc[%row, %column]",
            "tt.descriptor_load %c_desc[%row, %c0]",
            "loads what the tile loop stores, from another place",
        ),
        (
            Nest("residual"),
            "tt.descriptor_load %r_desc",
            "tt.descriptor_load %a_desc",
            "the descriptor of a store or tile load is used otherwise too",
        ),
        (
            Nest(m=128, n=128),
            "arith.truncf %sum",
            "arith.truncf %one",
            "what is stored has nothing to do with the dot's result",
        ),
        (
            Nest("pointers"),
            "  tt.store %pp, %flat, %mk : tensor<128x64x!tt.ptr<bf16>, #tile>",
            "  %whole = arith.cmpi sle, %row, %M : i32\n"
            "  scf.if %whole {\n"
            "    tt.store %pp, %flat, %mk : tensor<128x64x!tt.ptr<bf16>, #tile>\n"
            "  }",
            "tt.store under a condition cannot be done for a part of the tile; mask the store",
        ),
        (
            Nest("pointers"),
            "  tt.store %pp, %flat, %mk : tensor<128x64x!tt.ptr<bf16>, #tile>",
            "  %c1_bf16 = arith.constant 1.0 : bf16\n"
            "  tt.store %bias, %c1_bf16 : !tt.ptr<bf16>\n"
            "  tt.store %pp, %flat, %mk : tensor<128x64x!tt.ptr<bf16>, #tile>",
            "a scalar is stored",
        ),
        (
            Nest(),
            "  %sum = arith.mulf %acc, %one : tensor<128x64xf32, #mma>",
            '  %most = "tt.reduce"(%acc) <{axis = 1 : i32}> ({\n'
            "  ^bb0(%x: f32, %y: f32):\n"
            "    %z = arith.maxnumf %x, %y : f32\n"
            "    tt.reduce.return %z : f32\n"
            "  }) : (tensor<128x64xf32, #mma>) -> "
            "tensor<128xf32, #ttg.slice<{dim = 1, parent = #mma}>>\n"
            "  %line = tt.expand_dims %most {axis = 1 : i32} : "
            "tensor<128xf32, #ttg.slice<{dim = 1, parent = #mma}>> -> tensor<128x1xf32, #mma>\n"
            "  %sum = tt.broadcast %line : tensor<128x1xf32, #mma> -> tensor<128x64xf32, #mma>",
            "tt.reduce in the epilogue cannot be computed for a part of the tile: it needs whole",
        ),
        (
            Nest(),
            "tt.func public @matmul",
            "tt.func @other() { tt.return }\ntt.func public @matmul",
            "num_warps becomes 4, and the module holds other functions",
        ),
        (
            Nest("pointers"),
            "%ms = tt.splat %M :",
            "%first = tt.load %bias : !tt.ptr<bf16>\n"
            "%bits = tt.bitcast %first : bf16 -> i16\n"
            "%mine = arith.extsi %bits : i16 to i32\n"
            "%ms = tt.splat %mine :",
            "what the consumer of a part needs: tt.load may read what the tile loop stores",
        ),
        (
            Nest(),
            "  tt.return",
            "  %mark = arith.constant dense<1.0> : tensor<256xbf16, #line>\n"
            "  %marked = tt.splat %bias : !tt.ptr<bf16> -> tensor<256x!tt.ptr<bf16>, #line>\n"
            "  tt.store %marked, %mark : tensor<256x!tt.ptr<bf16>, #line>\n"
            "  tt.return",
            "arith.constant behind the tile loop needs all warps",
        ),
        (
            Nest(),
            "  %m1 = arith.ceildivsi %M, %bm : i32",
            "  %range = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>\n"
            '  %most = "tt.reduce"(%range) <{axis = 0 : i32}> ({\n'
            "  ^bb0(%x: i32, %y: i32):\n"
            "    %z = arith.maxsi %x, %y : i32\n"
            "    tt.reduce.return %z : i32\n"
            "  }) : (tensor<256xi32, #line>) -> i32\n"
            "  %rows = arith.minsi %M, %most : i32\n"
            "  %m1 = arith.ceildivsi %rows, %bm : i32",
            "tt.reduce before the tile loop needs all warps",
        ),
    ],
    ids=(
        "another-place",
        "operand",
        "unrelated",
        "condition",
        "stored-scalar",
        "reduction",
        "functions",
        "scalar",
        "behind",
        "in-front",
    ),
)
def test_refused_kernels(nest: Nest, old: str, new: str, reason: str) -> None:
    text = nest.text()
    assert old in text
    with pytest.raises(PassFailure, match=reason):
        run_pass(module_of(text.replace(old, new)), f"epilogue-warp-specialize{{{SPLIT}}}")
