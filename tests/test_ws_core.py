"""epilogue-warp-specialize in the real pipeline: values, protocol, machine code."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import ws_core_kernels as kernels
from tests.corpus.pass_context import make_context
from tests.protocol_support import module_of
from tests.ws_core_support import (
    PASS,
    SMALL,
    Compiled,
    check_protocol,
    check_values,
    compile_source,
    compile_with,
)
from tilepass.core.assembler import AssemblerLog
from tilepass.core.errors import PassFailure
from tilepass.core.figures import StaticFigures
from tilepass.core.options import build_options
from tilepass.core.pass_base import Target
from tilepass.core.refusal import Refusal
from tilepass.core.registry import find_pass, source_hash
from tilepass.ir import engine
from tilepass.ir.loops import outermost_loops
from tilepass.passes.triton.epilogue_warp_specialize.cost_model import scheme_choice
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest
from tilepass.passes.triton.epilogue_warp_specialize.match import match
from tilepass.passes.triton.epilogue_warp_specialize.options import Options, limits_of
from tilepass.passes.triton.epilogue_warp_specialize.plan import Plan, shared_bytes
from tilepass.passes.triton.epilogue_warp_specialize.schemes import SCHEMES, choose
from tilepass.sim.equivalence import assert_equivalent
from tilepass.sim.inputs import parse_shapes
from tilepass.sim.protocol.check import find
from tilepass.sim.protocol.compiler import ProtocolProgram
from tilepass.sim.protocol.problems import Problem

HOPPER = Target("cuda", 90)
LIT = Path(__file__).parents[1] / "lit_tests"
LIT_FILE = LIT / "passes" / "triton" / "epilogue-warp-specialize-epilogues.mlir"
STAGES = 3
STEPS = (0, 1, STAGES - 1, STAGES, STAGES + 1)
PLAIN, WITH_EPILOGUES = "persistent-matmul", "persistent-matmul-epilogues"

# What a tile loop may hold, each with every scheme that takes it.
KINDS: dict[str, tuple[str, dict[str, str]]] = {
    "bf16": (PLAIN, {}),
    "bias, pointers": (PLAIN, {"epilogue": "bias_gelu", "store": "pointer"}),
    "residual": (PLAIN, {"epilogue": "residual"}),
    "descriptors of the kernel": (PLAIN, {"descriptors": "device", "dtype": "fp16"}),
    "fp8": (PLAIN, {"dtype": "fp8e4m3", "epilogue": "bias"}),
    "K outermost, fp32": (
        WITH_EPILOGUES,
        {"a_layout": "k_outer", "b_layout": "k_outer", "output": "fp32", "finish": "silu"},
    ),
    "two stores": (
        WITH_EPILOGUES,
        {"keep_product": "true", "finish": "row_bias", "epilogue": "residual"},
    ),
    "fp8 output": (WITH_EPILOGUES, {"output": "fp8e4m3", "finish": "scale_clamp"}),
}
POINTERS = "bias, pointers"
CASES = [
    (kind, scheme)
    for index, kind in enumerate(KINDS)
    for scheme in ("cooperative", "ping-pong")
    # Every scheme with the first, one each with the others.
    if index == 0 or scheme == ("cooperative", "ping-pong", "cooperative")[index % 3]
] + [("residual", "cooperative"), ("residual", "ping-pong"), ("two stores", "cooperative")]


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes from earlier compilations."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")


def compile_small(kind: str, options: str, **texts: str) -> Compiled:
    """A kind of tile loop with 64x64 tiles on 4 warps."""
    kernel, fields = KINDS[kind]
    plain = {"flatten": "false"} if kernel == PLAIN else {}
    return compile_with(kernel, options, **{**SMALL, **plain, **fields, **texts})


def nest_of(module: engine.Module) -> PersistentNest | Refusal:
    (loop,) = outermost_loops(module)
    return match(loop, HOPPER)


@pytest.mark.parametrize(("kind", "scheme"), CASES)
def test_values_protocol_and_binary(kind: str, scheme: str) -> None:
    """The bits of the plain kernel, a protocol without faults, a binary without spills."""
    compiled = compile_small(kind, f"scheme={scheme},stages={STAGES}")
    assert "ttg.warp_specialize" in engine.operation_names(compiled.after)
    check_values(compiled, STEPS)
    check_protocol(compiled, STEPS)
    assert compiled.log == AssemblerLog(0, 0, ())
    assert [remark.kind for remark in compiled.remarks] == ["passed"]
    nest, limits = nest_of(compiled.before), limits_of(HOPPER)
    assert isinstance(nest, PersistentNest)
    assert limits is not None
    plan = choose(SCHEMES[scheme], nest, Options(stages=STAGES), limits)
    assert isinstance(plan, Plan)
    estimated = shared_bytes(nest, plan)
    assert 0 <= estimated - compiled.kernel.metadata.shared <= 2048


def test_two_buffers_for_c() -> None:
    compiled = compile_small("two stores", "scheme=cooperative,stages=2,c-buffers=2")
    check_values(compiled, (0, 1, 3))
    check_protocol(compiled, (0, 1, 3))
    nest = nest_of(compiled.before)
    assert isinstance(nest, PersistentNest)
    estimated = shared_bytes(nest, Plan("cooperative", 2, 2))
    assert 0 <= estimated - compiled.kernel.metadata.shared <= 2048


@pytest.mark.parametrize(
    ("scheme", "texts"),
    [
        ("cooperative", {"epilogue": "bias_gelu"}),
        ("cooperative", {"epilogue": "residual"}),
        ("cooperative", {"epilogue": "residual", "store": "pointer"}),
        ("ping-pong", {"block_n": "128", "num_warps": "4", "epilogue": "bias_gelu"}),
    ],
)
def test_large_tiles_fit(scheme: str, texts: dict[str, str]) -> None:
    """As many stages as there is room for, registers without spills, dots not serialized."""
    compiled = compile_with(PLAIN, f"scheme={scheme}", flatten="false", **texts)
    assert compiled.log == AssemblerLog(0, 0, ())
    assert compiled.kernel.metadata.num_warps == 12
    assert 190_000 < compiled.kernel.metadata.shared <= 232_448 or texts.get("store") == "pointer"


@pytest.mark.parametrize(
    ("source", "scheme"),
    [
        (kernels.source(kernels.subtiled, PROGRAMS=2, HALVES=1), "cooperative"),
        (kernels.source(kernels.subtiled, PROGRAMS=2, HALVES=2), "cooperative"),
        (kernels.source(kernels.normalized, ADDED=False), "cooperative"),
        (kernels.source(kernels.normalized, ADDED=False), "ping-pong"),
        (kernels.source(kernels.normalized, ADDED=True), "cooperative"),
        (kernels.source(kernels.added_to, HOW="one place"), "cooperative"),
        (kernels.source(kernels.added_to, HOW="one place"), "split-consumer"),
        (kernels.source(kernels.added_to, HOW="the last"), "cooperative"),
    ],
)
def test_kernels_as_users_write_them(source: Any, scheme: str) -> None:
    compiled = compile_source(source, f"scheme={scheme},stages={STAGES}")
    assert "ttg.warp_specialize" in engine.operation_names(compiled.after)
    check_values(compiled, STEPS)
    check_protocol(compiled, STEPS)
    assert compiled.log == AssemblerLog(0, 0, ())


def test_a_group_cannot_have_a_row_loaded_in_front_of_the_tile_loop() -> None:
    source = kernels.source(kernels.normalized, ADDED=True)
    with pytest.raises(PassFailure, match="a tensor from before the tile loop"):
        compile_source(source, "scheme=ping-pong")


@pytest.mark.parametrize(
    ("scheme", "how", "reason"),
    [
        ("ping-pong", "one place", "what the tile loop stores, and one group's epilogue does not"),
        ("cooperative", "behind", "what a TMA store before it writes"),
        ("ping-pong", "the last", "all tiles are stored to one place, and one group's epilogue"),
    ],
)
def test_what_is_stored_is_not_loaded_or_stored_out_of_order(
    scheme: str, how: str, reason: str
) -> None:
    with pytest.raises(PassFailure, match=reason):
        compile_source(kernels.source(kernels.added_to, HOW=how), f"scheme={scheme}")


def test_no_scheme_leaves_the_kernel_alone() -> None:
    compiled = compile_small("bf16", "scheme=none")
    assert engine.print_generic(compiled.before) == engine.print_generic(compiled.after)
    assert compiled.remarks == []


def test_registers_that_the_user_limits_are_not_shared_out() -> None:
    with pytest.raises(PassFailure, match="maxnreg = 128: consumers take the registers"):
        compile_small("bf16", "scheme=cooperative", maxnreg="128")
    compiled = compile_small("bf16", "", maxnreg="128")
    assert "not specialized: maxnreg = 128" in compiled.remarks[0].message


def test_a_limit_beyond_what_a_thread_has_is_none() -> None:
    """Triton finds for itself how many registers 12 warps have when they start."""
    compiled = compile_small("bf16", "scheme=ping-pong", maxnreg="256")
    assert ".maxnreg 168" in compiled.kernel.asm["ptx"]


def test_a_cluster_is_refused() -> None:
    text = engine.print_generic(compile_small("bf16", "scheme=none").before)
    text = text.replace('"ttg.num-ctas" = 1', '"ttg.num-ctas" = 2')
    refusal = nest_of(engine.parse(text))
    assert isinstance(refusal, Refusal)
    assert str(refusal) == "num-ctas = 2: buffers and barriers are those of one CTA"


LOG = """
ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async instructions are serialized \
due to insufficient register resources for the wgmma pipeline in function 'kernel'
ptxas info    : Compiling entry function 'kernel' for 'sm_90a'
    128 bytes stack frame, 96 bytes spill stores, 104 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers
"""


def test_what_ptxas_says() -> None:
    log = AssemblerLog.parse(LOG)
    reason = "insufficient register resources for the wgmma pipeline"
    assert log == AssemblerLog(96, 104, (f"C7515: {reason}",))
    assert (log.registers, log.stack_bytes) == (168, 128)


@pytest.mark.parametrize(("spills", "scheme"), [(0, "cooperative"), (96, "none")])
def test_a_scheme_that_spills_more_is_not_chosen(spills: int, scheme: str) -> None:
    """By trials of copies, which are what would be built; the module itself is built once."""
    tried: list[set[str]] = []

    def trial(module: engine.Module) -> StaticFigures:
        tried.append(engine.operation_names(module))
        specialized = "ttg.warp_specialize" in tried[-1]
        return StaticFigures(registers=168, spill_store_bytes=spills if specialized else 8)

    instance = find_pass(PASS)()
    module = compile_small("bf16", "scheme=none").before
    context = make_context(instance)
    context.trial = trial
    instance.run(module, context)
    (decision,) = context.decisions
    assert ["ttg.warp_specialize" in names for names in tried] == [True, False][
        : 2 if spills else 1
    ]
    assert (decision.value == "none") == (scheme == "none")
    assert ("ttg.warp_specialize" in engine.operation_names(module)) == (scheme != "none")
    assert (context.remarks.remarks[-1].kind == "missed") == (scheme == "none")


FACTS = {"arch": 90, "dot": "shared", "programs_per_sm": 1}


def test_cost_model() -> None:
    every = {f"stages_{name.replace('-', '_')}": 4 for name in SCHEMES}
    chosen = scheme_choice({**FACTS, **every})
    assert chosen is not None
    assert chosen.value == "split-consumer"
    chosen = scheme_choice({**FACTS, "stages_cooperative": 3, "stages_split_consumer": 2})
    assert chosen is not None
    assert chosen.value == "cooperative"
    assert scheme_choice({**FACTS, "stages_cooperative": 2}) is None
    assert scheme_choice({**FACTS, **every, "arch": 100}) is None


FOLDER_PASS = """
from tilepass.core.anchor import Anchor
from tilepass.core.pass_base import Pass
from tilepass.core.registry import register

@register
class FolderPass(Pass):
    name, anchor = "folder-pass", Anchor.end_of("ttir")

    def run(self, module, context): ...
"""


def test_the_cache_key_covers_every_file_of_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass may be a folder: with another text in any of its files it is another pass."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    hashes: list[str] = []
    for name, helper in {"pass_one": "", "pass_two": "", "pass_three": "# edited"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(FOLDER_PASS)
        (tmp_path / name / "helper.py").write_text(helper)
        hashes.append(source_hash(importlib.import_module(name).FolderPass))
    assert hashes[0] == hashes[1] != hashes[2]


LIT_KERNELS = [
    (kernel, scheme)
    for kernel in ("residual", "in_place", "two_stores", "carried", "made_here")
    for scheme in ("cooperative", "ping-pong")
    # Each group of ping-pong runs every other trip: it could not carry scalars.
    if (kernel, scheme) != ("carried", "ping-pong")
]


def lit_kernel(name: str) -> engine.Module:
    """One of the kernels of the lit test, alone in its module."""
    done = subprocess.run(
        [sys.executable, str(LIT / "Inputs" / "spelled.py"), str(LIT_FILE)],
        capture_output=True,
        check=True,
        text=True,
    )
    module = module_of(done.stdout)
    for view in list(module.body.operations):
        if str(view.operation.attributes["sym_name"]) != f'"{name}"':
            view.operation.erase()
    return module


@pytest.mark.parametrize(("kernel", "scheme"), LIT_KERNELS)
def test_values_of_the_kernels_in_lit(kernel: str, scheme: str) -> None:
    """The kernels of epilogue-warp-specialize-epilogues.mlir compute what they did: loops whose
    steps are not 1, a residual that is the output as well, scalars that both loops carry."""
    before, after = lit_kernel(kernel), lit_kernel(kernel)
    pass_class = find_pass(PASS)
    instance = pass_class(build_options(pass_class, {"scheme": scheme, "stages": str(STAGES)}))
    instance.run(after, make_context(instance))
    tiles, steps = ("arg3", "arg4") if kernel == "made_here" else ("arg2", "arg3")
    for depth in (0, 64, 192, 256):
        sizes = parse_shapes(f"192,{tiles}=192,{steps}={depth}")
        assert_equivalent(before, after, shapes=[sizes], seeds=1, grid=(1,))
        assert find(ProtocolProgram(after), Problem(sizes), range(5)) is None
