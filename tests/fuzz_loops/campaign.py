"""Fuzzing flatten-loops and Triton's tritongpu-fuse-nested-loops with random nests.

A nest goes through all that Triton runs before fusion, then through flatten-loops and fusion. The
simulator runs it as it is written and as the passes leave it: every store, in order, and every
fault must be the same. `guard=False` leaves flatten-loops out, so that Triton's pass flattens
whatever it can: what then goes wrong is what flatten-loops refuses or repairs.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal

import numpy as np

from tests.fuzz_loops.generator import random_nest
from tests.fuzz_loops.lowering import FUSION, Lowering
from tests.fuzz_loops.nests import LENGTH, Nest
from tests.fuzz_loops.shrinker import smaller
from tilepass.analysis.loop_fusion import clamp_upper_bound, fusion_obstacle
from tilepass.analysis.nest_facts import match_nest
from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import PassContext, Target
from tilepass.core.refusal import Refusal
from tilepass.core.remarks import RemarkSink
from tilepass.core.versions import triton_version
from tilepass.frontends.triton import bridge
from tilepass.ir import engine
from tilepass.ir.loops import loops_in, outermost_loops
from tilepass.sim.compiler import Program
from tilepass.sim.effects import Effects
from tilepass.sim.elements import Element
from tilepass.sim.faults import Fault
from tilepass.sim.memory import GlobalMemory
from tilepass.sim.values import run

Trace = list[tuple[int, int]]
"""Stores in order: (address, value)."""

_HOISTED = "reads element 0 of sizes"
LATE = "proof folded away"
"""The conditions for fusing hold at the end of ttir, and no longer where fusion reads the loop."""
FAR_BELOW = "tiles far below zero"
"""The product of the trip counts wraps around."""

_PROGRAMS = 2
_STEP_LIMIT = 20_000
_CASES_PER_NEST = 8
_LEAST = -(1 << 31)
_TILES = (0, 1, 2, 5, 5, -1, _LEAST)
_BOUNDS = ((0, 3), (2, 2), (3, 1), (0, -4), (1, 2), (2, -(1 << 30)))


@dataclass(frozen=True)
class Case:
    """Values of a nest's parameters; `size` is what the array of sizes holds."""

    tiles: int
    lower: int
    upper: int
    size: int

    def __str__(self) -> str:
        return f"tiles={self.tiles} lower={self.lower} upper={self.upper} sizes=[{self.size}]"


@dataclass(frozen=True)
class Verdict:
    """What became of a nest: fused, left as loops, or wrong: Triton's pass failed, or the case on
    which the fused nest faults or stores something else."""

    kind: Literal["flattened", "refused", "invalid", "faults", "differs"]
    what: str = ""
    case: Case | None = None
    issue: str | None = None
    """The issue of triton-lang/triton that this was found to be, or what else it is known to be."""

    @property
    def wrong(self) -> bool:
        """Whether the passes are to blame."""
        return self.kind not in ("flattened", "refused")


@dataclass(frozen=True)
class Failure:
    """A nest that the passes get wrong."""

    seed: int
    nest: Nest
    verdict: Verdict


@dataclass
class Report:
    """What became of the nests: `flattened` were fused, `refused` were left as loops."""

    flattened: int = 0
    refused: int = 0
    failures: list[Failure] = field(default_factory=list[Failure])

    @property
    def count(self) -> int:
        """Nests in all."""
        return self.flattened + self.refused + len(self.failures)

    def add(self, other: Report) -> None:
        """Take in what became of other nests."""
        self.flattened += other.flattened
        self.refused += other.refused
        self.failures += other.failures


def fuzz(seeds: Iterable[int], guard: bool = True) -> Report:
    """Check the nest of every seed."""
    checker, report = Checker(guard), Report()
    for seed in seeds:
        nest = random_nest(seed)
        verdict = checker.check(nest, seed)
        report.flattened += verdict.kind == "flattened"
        report.refused += verdict.kind == "refused"
        if verdict.wrong:
            report.failures.append(Failure(seed, nest, verdict))
    return report


class Checker:
    """Runs nests through the passes and compares. One Triton context serves all."""

    def __init__(self, guard: bool) -> None:
        self._guard = guard
        self._context: Any = bridge.new_context()
        self._version = triton_version()
        self._libtriton: Any = import_module("triton._C.libtriton")
        self._lowering = Lowering(self._context)

    def check(self, nest: Nest, seed: int) -> Verdict:
        """Run a nest through the passes, and both forms on the cases of a seed."""
        native = bridge.load(nest.text(), "nest.mlir", self._context)
        before = Program(bridge.to_engine(native))
        early, module = self._lowering.stages(native)
        if self._guard:
            self._flatten(module)
        verdict = self._judge(before, module, seed)
        if verdict.kind not in ("faults", "differs"):
            return verdict
        return replace(verdict, issue=self._issue(verdict, before, early, module, seed))

    def _issue(
        self,
        verdict: Verdict,
        before: Program,
        early: engine.Module,
        module: engine.Module,
        seed: int,
    ) -> str | None:
        if verdict.kind == "faults" and _HOISTED in verdict.what:
            return "#11601"
        if self._accepted(early) and not self._accepted(module):
            return LATE
        # With no bound below the other, is it right?
        outer = outermost_loops(module)
        for loops, issue in (
            ([loop for loop in loops_in(module) if loop not in outer], "#11656"),
            (outer, FAR_BELOW),
        ):
            for loop in loops:
                clamp_upper_bound(loop)
            if not self._judge(before, module, seed).wrong:
                return issue
        return None

    def _accepted(self, module: engine.Module) -> bool:
        """Whether the conditions for fusing hold."""
        nests = [match_nest(loop) for loop in outermost_loops(module)]
        return not any(
            isinstance(nest, Refusal) or fusion_obstacle(nest, self._version) for nest in nests
        )

    def _judge(self, before: Program, module: engine.Module, seed: int) -> Verdict:
        """Fuse what flatten-loops left, or the nest as it is, and compare."""
        try:
            fused = self._fused(module)
        except TilepassError as error:
            return Verdict("invalid", f"Triton's pass fails: {error}")
        after = Program(fused)
        for case in cases(seed):
            if verdict := _compare(before, after, case):
                return verdict
        return Verdict("refused" if _loops(fused) == _loops(module) else "flattened")

    def _flatten(self, module: engine.Module) -> None:
        passes: Any = import_module("tilepass.passes.triton.flatten_loops")
        sink = RemarkSink("flatten-loops", engine.location_of)
        context = PassContext("flatten-loops", self._version, sink, Target("cuda", 90))
        passes.FlattenLoops().run(module, context)

    def _fused(self, module: engine.Module) -> engine.Module:
        native: Any = bridge.from_engine(module, self._context)
        manager = self._libtriton.ir.pass_manager(self._context)
        self._libtriton.passes.ttgpuir.add_fuse_nested_loops(manager)
        with bridge.capture_diagnostics() as captured:
            try:
                manager.run(native, "fuse")
            except RuntimeError as error:
                shown = "; ".join(each.message for each in captured.diagnostics)
                raise TilepassError(shown or str(error)) from error
        return bridge.to_engine(native)


def _loops(module: engine.Module) -> int:
    return sum(each.name == "scf.for" for each in engine.operations(module))


def cases(seed: int) -> list[Case]:
    """The cases on which a seed's nest runs: some of all combinations."""
    every = list(itertools.product(_TILES, _BOUNDS))
    chosen = random.Random(seed).sample(every, _CASES_PER_NEST)
    return [
        Case(tiles, lower, upper, 1 + index % 3)
        for index, (tiles, (lower, upper)) in enumerate(chosen)
    ]


class _Recording(Effects):
    """Effects at once, with a record of the stores."""

    def __init__(self) -> None:
        self.stores: Trace = []

    def store(self, memory: GlobalMemory, addresses: Any, values: Any, element: Element) -> None:
        super().store(memory, addresses, values, element)
        self.stores.append((addresses, values))


def _trace(program: Program, case: Case) -> tuple[Trace, str | None]:
    """The stores of all programs, and the fault that ended them."""
    effects = _Recording()
    reached = case.tiles > 0
    arguments = (
        (np.arange(LENGTH) * 7919 % 1009).astype(np.int32),
        np.zeros(LENGTH, np.int32),
        np.full(1 if reached else 0, case.size, np.int32),
        case.tiles,
        case.lower,
        case.upper,
        _LEAST,
    )
    try:
        run(program, arguments, (_PROGRAMS,), effects=effects, step_limit=_STEP_LIMIT)
    except Fault as fault:
        return effects.stores, f"{type(fault).__name__}: {fault.message}"
    return effects.stores, None


def _compare(before: Program, after: Program, case: Case) -> Verdict | None:
    """What is wrong with the fused form on a case, None if nothing is."""
    stores, fault = _trace(before, case)
    if fault is not None:
        # Nests are made so that they run through.
        raise TilepassError(f"a generated nest does something undefined: {fault} ({case})")
    other, other_fault = _trace(after, case)
    if other_fault is not None:
        return Verdict("faults", f"the fused nest faults: {other_fault} ({case})", case)
    for index, (one, two) in enumerate(itertools.zip_longest(stores, other)):
        if one != two:
            what = f"store {index} is {two} in the fused nest, should be {one} ({case})"
            return Verdict("differs", what, case)
    return None


def minimize(failure: Failure, guard: bool) -> Failure:
    """The smallest nest found that fails in the same way, leaving out one thing after the other."""
    checker, best = Checker(guard), failure
    progress = True
    while progress:
        progress = False
        for candidate in smaller(best.nest):
            verdict = _verdict(checker, candidate, failure.seed)
            if verdict and (verdict.kind, verdict.issue) == (best.verdict.kind, best.verdict.issue):
                best, progress = Failure(failure.seed, candidate, verdict), True
                break
    return best


def _verdict(checker: Checker, nest: Nest, seed: int) -> Verdict | None:
    """The verdict about a smaller nest, None where it is not valid IR or undefined by itself."""
    try:
        return checker.check(nest, seed)
    except TilepassError:
        return None


def lit_test(failure: Failure, guard: bool) -> str:
    """The nest as a file for lit, which fails as long as the passes get it wrong."""
    passes = [*Lowering(bridge.new_context()).names(), *["flatten-loops"] * guard, FUSION]
    runs = [f"tilepass-opt %s --target cuda:90 -p '{','.join(passes)}' -o %t"]
    if case := failure.verdict.case:
        named = {
            "in": LENGTH,
            "out": LENGTH,
            "sizes": int(case.tiles > 0),
            "tiles": case.tiles,
            "lower": case.lower,
            "upper": case.upper,
            "least": _LEAST,
        }
        shapes = ",".join(f"{name}={value}" for name, value in named.items())
        runs.append(f"tilepass check %s --against %t --grid {_PROGRAMS} --shapes {shapes}")
    head = [f"// RUN: {run}" for run in runs]
    head += [f"// {line}" for line in f"Seed {failure.seed}: {failure.verdict.what}".splitlines()]
    return "\n".join([*head, failure.nest.text()])
