"""Decisions that a trial compilation, or what the author said, speaks against."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests import trial_kernels
from tests.corpus.pass_context import make_context
from tilepass.activate import Session, enabled
from tilepass.analysis.loop_attributes import attribute_facts, lost_by_fusing, lost_by_nesting
from tilepass.analysis.nest_facts import match_nest
from tilepass.core.anchor import Anchor
from tilepass.core.decisions import Choice, Decision, Fact
from tilepass.core.errors import TilepassError
from tilepass.core.figures import StaticFigures
from tilepass.core.pass_base import Forms, Pass, PassContext, Target
from tilepass.core.registry import find_pass, register
from tilepass.core.versions import triton_version
from tilepass.explain.account import Account
from tilepass.frontends.triton import trial as trial_module
from tilepass.frontends.triton.builtin_passes import discover
from tilepass.frontends.triton.modules import load
from tilepass.frontends.triton.run_builtin import BuiltinRun
from tilepass.ir import engine
from tilepass.ir.engine import Module
from tilepass.ir.loops import Loop, LoopNest, outermost_loops
from tilepass.passes.triton import flatten_loops

HOPPER = Target("cuda", 90)
LIMIT = 232448
CLEAN = StaticFigures(registers=168, shared_bytes=1024, milliseconds=840)
SPILLING = replace(CLEAN, spill_store_bytes=96, spill_load_bytes=104)
SERIALIZED = replace(CLEAN, serialized=("C7515: insufficient register resources",))


@register
class CountRuns(Pass):
    """Counts its runs, and says so in each."""

    name = "count-runs"
    anchor = Anchor.end_of("ttgir")
    runs = 0

    def run(self, module: Module, context: PassContext) -> None:
        CountRuns.runs += 1
        context.remarks.analysis(None, "here")


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(trial_module, "_known", type(trial_module._known)())  # pyright: ignore[reportPrivateUsage]


@dataclass
class Compiler:
    """Stands for one: what each form is compiled to, in order; an error where there is a text."""

    figures: Mapping[str, StaticFigures | str]

    def __post_init__(self) -> None:
        self.compiled: list[str] = []

    def __call__(self, module: Any) -> StaticFigures:
        self.compiled.append(module)
        found = self.figures[module]
        if isinstance(found, str):
            raise TilepassError(found)
        return found


def says(value: str) -> Callable[[Mapping[str, Fact]], Choice]:
    def model(facts: Mapping[str, Fact]) -> Choice:
        del facts
        return Choice(value, "fast")

    return model


def silent(facts: Mapping[str, Fact]) -> None:
    del facts


def forms(objection: Callable[[str], str] = lambda _: "") -> Forms:
    """Forms that are told apart by their names: what stands for a module is the name."""
    name: Any = str
    return Forms("off", name, objection)


def decide(compiler: Compiler | None, **changed: Any) -> Decision:
    """A decision for which the model says "on" where the source has "off"."""
    context = make_context(find_pass("flatten-loops")())
    context.target, context.trial = HOPPER, compiler
    asked: dict[str, Any] = {
        "model": says("on"),
        "default": Choice("off", "as it is"),
        "forms": forms(),
    }
    return context.decide("flatten", None, {}, **(asked | changed))


@pytest.mark.parametrize(
    ("on", "off", "compiled", "drawback"),
    [
        (CLEAN, SPILLING, ["on"], ""),
        (SPILLING, CLEAN, ["on", "off"], "it spills 96 bytes a thread and loads 104, the source's"),
        (SPILLING, SPILLING, ["on", "off"], ""),
        (SPILLING, "no registers", ["on", "off"], ""),
        (SERIALIZED, CLEAN, ["on", "off"], "ptxas runs its dots one after the other (C7515: "),
        (SERIALIZED, SERIALIZED, ["on", "off"], ""),
        (replace(CLEAN, shared_bytes=LIMIT), CLEAN, ["on"], ""),
        (replace(CLEAN, shared_bytes=LIMIT + 1), CLEAN, ["on"], "it takes 232449 bytes of shared"),
        ("no registers\nreproducer", CLEAN, ["on"], "it does not compile (no registers)"),
    ],
)
def test_figures_against_the_models_choice(
    on: StaticFigures | str, off: StaticFigures | str, compiled: list[str], drawback: str
) -> None:
    """The source's form is compiled only where something of the other is suspicious."""
    compiler = Compiler({"on": on, "off": off})
    decision = decide(compiler)
    assert compiler.compiled == compiled
    assert decision.trials is not None
    assert [trial.form for trial in decision.trials] == compiled
    assert (decision.value, decision.source) == (
        ("off", "source") if drawback else ("on", "cost-model")
    )
    assert decision.reason.startswith(f"not on: {drawback}" if drawback else "fast")


def test_what_is_not_tried() -> None:
    compiler = Compiler({})
    assert decide(compiler, forced="on").trials == ()
    assert decide(compiler, model=silent).value == "off"
    assert decide(compiler, model=says("off")).source == "cost-model"
    assert decide(compiler, forms=None).value == "on"
    objected = decide(compiler, forms=forms(lambda value: f"{value} loses"))
    assert (objected.value, objected.reason) == ("off", "not on: on loses")
    assert compiler.compiled == []


def test_a_trials_cost_is_shown() -> None:
    decision = decide(Compiler({"on": replace(CLEAN, cached=True)}))
    assert "trial: on: 168 registers, spills 0/0 bytes, 1024 bytes of shared memory" in str(
        decision
    )
    account = Account((), [decision, decide(None)]).to_text()
    assert "  trials      on: 168 registers" in account
    assert account.count("(840 ms, cached)") == 1
    assert str(decide(None)) == "flatten = on (cost-model: fast; no trial)"
    assert "  trials      none: there is no compiler here" in account


NEST = """
tt.func @nest(%a: tensor<128x64x!tt.ptr<bf16>>, %b: tensor<64x128x!tt.ptr<bf16>>,
              %c: tensor<128x128x!tt.ptr<f32>>, %tiles: i32, %steps: i32) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %pid = tt.get_program_id x : i32
  scf.for %tile = %pid to %tiles step %c1 : i32 {{
    %d = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero)
        -> (tensor<128x128xf32>) : i32 {{
      %x = tt.load %a : tensor<128x64x!tt.ptr<bf16>>
      %y = tt.load %b : tensor<64x128x!tt.ptr<bf16>>
      %next = tt.dot %x, %y, %acc : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }} {{{inner}}}
    tt.store %c, %d : tensor<128x128x!tt.ptr<f32>>
  }} {{tt.flatten{outer}}}
  tt.return
}}
"""
NO_LICM = "llvm.loop_annotation = #llvm.loop_annotation<licm = <disable = true>>"


# Operations live as long as the module that they are in.
_modules: list[Module] = []


def kept(text: str) -> Module:
    _modules[:] = [*_modules[-1:], engine.parse(text)]
    return _modules[-1]


def nest_of(outer: str, inner: str) -> LoopNest:
    module = load(NEST.format(outer=outer and f", {outer}", inner=inner), "nest")
    nest = match_nest(outermost_loops(kept(trial_module.generic_text(module)))[0])
    assert isinstance(nest, LoopNest)
    return nest


def fused_by_triton(outer: str, inner: str) -> Loop:
    """The one loop with a dot that is not a copy of the nest for zero trips."""
    module = load(NEST.format(outer=outer and f", {outer}", inner=inner), "nest")
    context = make_context(find_pass("flatten-loops")())
    BuiltinRun(discover()["tritongpu-fuse-nested-loops"], {}).run(module, context)
    fused = kept(trial_module.generic_text(module))
    (dot,) = (each for each in engine.operations(fused) if each.name == "tt.dot")
    parent = dot.parent
    while parent is not None and parent.name != "scf.for":
        parent = parent.operation.parent
    assert parent is not None
    return Loop(parent.operation)


@pytest.mark.parametrize(
    ("outer", "inner", "lost"),
    [
        ("", "", []),
        ("", "tt.num_stages = 4 : i32", []),
        ("", "tt.num_stages = 1 : i32", ["num_stages = 1 of the dot loop"]),
        ("tt.num_stages = 2 : i32", "", ["num_stages = 2 of the tile loop"]),
        (
            "tt.num_stages = 4 : i32",
            "tt.num_stages = 2 : i32",
            ["num_stages = 4 of the tile loop", "num_stages = 2 of the dot loop"],
        ),
        ("", NO_LICM, ["disable_licm of the dot loop"]),
        (NO_LICM, "", ["disable_licm of the tile loop"]),
        ("", "tt.loop_unroll_factor = 2 : i32", ["loop_unroll_factor = 2 of the dot loop"]),
        ("", 'tt.any = "thing"', ['any = "thing" of the dot loop']),
        ("", "tt.disallow_acc_multi_buffer", []),
        ("tt.disallow_acc_multi_buffer", "", []),
        ("", "tt.warp_specialize", []),
    ],
)
def test_what_fusing_loses(outer: str, inner: str, lost: list[str]) -> None:
    """As Triton's own pass has it: what is not lost of the dot loop is on the fused one."""
    nest, fused = nest_of(outer, inner), fused_by_triton(outer, inner)
    if triton_version().version >= (3, 9):
        lost = [each for each in lost if each != "num_stages = 1 of the dot loop"]
    assert lost_by_fusing(nest, triton_version()) == lost
    attributes = nest.inner[0].operation.attributes
    for name in attributes:
        kept = name in fused.operation.attributes and str(attributes[name]) == str(
            fused.operation.attributes[name]
        )
        text = "disable_licm" if name.startswith("llvm.") else name.removeprefix("tt.")
        assert kept == (not any(each.startswith(text) and "dot loop" in each for each in lost))


def test_what_nesting_loses() -> None:
    """What holds for the fused loop held for the dots."""
    stages, buffers = "tt.num_stages = 4 : i32", "tt.disallow_acc_multi_buffer"
    assert lost_by_nesting(nest_of(f"{stages}, {NO_LICM}", "")) == [
        "num_stages = 4 of the tile loop"
    ]
    assert lost_by_nesting(nest_of(f"{stages}, {buffers}", f"{stages}, {buffers}")) == []
    facts = attribute_facts(nest_of(stages, NO_LICM))
    assert facts == {"tile_loop.num_stages": 4, "dot_loop.disable_licm": True}


def compiled(pipeline: str, **arguments: Any) -> tuple[Any, Session]:
    with enabled(pipeline, remarks="none") as session:
        return trial_kernels.compile_matmul(**arguments), session


@pytest.mark.parametrize(
    ("said", "stages"),
    [({"dot_stages": 1}, 1), ({"tile_stages": 2}, 3), ({"disable_licm": True}, 3)],
)
def test_flatten_auto_keeps_what_the_author_said(said: Mapping[str, Any], stages: int) -> None:
    kernel, session = compiled("flatten-loops", by_tma=True, block_n=128, **said)
    (decision,) = session.decisions
    if triton_version().version >= (3, 9) and stages == 1:
        assert decision.value == "on"
        return
    (remark,) = (each for each in session.remarks if each.kind == "missed")
    assert (decision.value, decision.source) == ("off", "source")
    assert "would be lost; say mode=on or mode=off" in remark.message
    assert ("x128x64xbf16" in kernel.asm["ttgir"]) == (stages > 1)
    _, forced = compiled("flatten-loops{mode=on}", by_tma=True, block_n=128, **said)
    (remark,) = (each for each in forced.remarks if each.kind == "passed")
    assert "; lost: " in remark.message


def without_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown: Callable[..., None] = lambda *_: None  # noqa: E731
    monkeypatch.setattr(flatten_loops, "fused_shared_bytes", unknown)


@pytest.mark.parametrize("estimated", [True, False])
def test_no_more_shared_memory_than_there_is(
    monkeypatch: pytest.MonkeyPatch, estimated: bool
) -> None:
    """By the static estimate, and by a trial; the source's form fits."""
    if not estimated:
        without_an_estimate(monkeypatch)
    kernel, session = compiled("flatten-loops", by_tma=True)
    (decision,) = session.decisions
    assert kernel.metadata.shared <= LIMIT
    assert decision.source == "source"
    assert re.search(
        r"takes (at least )?2785\d\d bytes of shared memory of 232448", decision.reason
    )
    assert bool(decision.trials) != estimated
    error = r"2785\d\d bytes of shared memory of 232448"
    with pytest.raises(TilepassError, match=error) as caught:
        compiled("flatten-loops{mode=on}", by_tma=True)
    assert "trial_kernels.py:" in str(caught.value)


def test_the_estimate_is_a_lower_bound() -> None:
    kernel, session = compiled("flatten-loops", by_tma=True, block_n=128)
    (decision,) = session.decisions
    estimate: Fact = decision.facts["fused_shared_bytes"]
    assert decision.value == "on"
    assert isinstance(estimate, int)
    assert kernel.metadata.shared - 1024 < estimate <= kernel.metadata.shared


def test_a_form_that_spills_more_is_not_chosen() -> None:
    """What the trials said of both forms is what they are compiled to, and is kept."""
    pressed: Any = {"by_tma": False, "maxnreg": 160}
    _, session = compiled("flatten-loops", **pressed)
    (decision,) = session.decisions
    assert decision.trials is not None
    on, off = (trial.figures for trial in decision.trials)
    assert on is not None
    assert off is not None
    worse = on.spill_bytes > off.spill_bytes
    assert (decision.value, decision.source) == (
        ("off", "source") if worse else ("on", "cost-model")
    )
    assert worse or triton_version().version >= (3, 7)
    _, forced = compiled("flatten-loops{mode=on}", **pressed)
    missed = [each.message for each in forced.remarks if each.kind == "missed"]
    assert [
        message.startswith("the kernel as it was rewritten: it spills") for message in missed
    ] == ([True] * worse)
    assert not worse or f"{on.spills}, the source's form {off.spills}" in missed[0]


def test_later_passes_take_part_unheard() -> None:
    """Once in the trial, once in earnest; a trial that is known runs nothing."""
    CountRuns.runs = 0
    pipeline = "flatten-loops,count-runs"
    kernel, session = compiled(pipeline, by_tma=True, block_n=128)
    assert (CountRuns.runs, len(session.decisions)) == (2, 1)
    assert [each.message for each in session.remarks].count("here") == 1
    forced, _ = compiled("flatten-loops{mode=on},count-runs", by_tma=True, block_n=128)
    assert forced.asm["ptx"] == kernel.asm["ptx"]


def test_figures_are_kept_beside_tritons_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    costs: list[str] = []
    for _ in range(2):
        trial_module._known.clear()  # pyright: ignore[reportPrivateUsage]
        _, session = compiled("flatten-loops", by_tma=True, block_n=128)
        (decision,) = session.decisions
        assert decision.trials
        costs.append(decision.trials[0].cost)
    assert costs[1] == f"{costs[0]}, cached"
