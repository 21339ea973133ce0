"""Whether two forms of a kernel compute the same: same inputs, same bits in every array.

    assert_equivalent(before, after, shapes=["64", "64,K=100"])

Kernels are modules of the engine; `tilepass.testing.program_of` reads them from text and files.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilepass.core.errors import TilepassError
from tilepass.ir import engine
from tilepass.sim.arguments import Argument, HostDescriptor, Uninitialized
from tilepass.sim.compiler import Program
from tilepass.sim.coverage import Goal, wanted
from tilepass.sim.faults import Fault, StepLimit
from tilepass.sim.inputs import (
    MODERATE,
    Kind,
    Shapes,
    Values,
    make_arguments,
    parse_shapes,
    resolved,
)
from tilepass.sim.parameter_groups import grouped
from tilepass.sim.plan import describe, grid_of, make_plan
from tilepass.sim.roles import Role
from tilepass.sim.values import STEP_LIMIT, Outcome, Place, run

Kernel = engine.Module | Program
"""A module, or one that is compiled for the simulator."""

SIMPLE = ("64", "100")
"""All arguments alike, besides sizes that are planned: small sizes hold few values."""
DEFAULT_SEEDS = 3
_MOST_PROGRAMS = 4


class NotEquivalentError(TilepassError, AssertionError):
    """Two kernels that computed different values; the message says where."""


@dataclass(frozen=True)
class Case:
    """What a kernel is run on. `programs` are those of the grid that are run, None for all;
    `said` is what to call the shapes where all arrays need not be named."""

    shapes: Shapes
    seed: int
    grid: tuple[int, ...]
    programs: tuple[Place, ...] | None = None
    said: str = ""

    @property
    def kind(self) -> Kind:
        """Which values two kernels are compared on: of three seeds each kind has one."""
        return _KINDS[self.seed % len(_KINDS)]

    def __str__(self) -> str:
        grid = ",".join(map(str, self.grid))
        some = f", programs {_numbers(self.programs)}" if self.programs else ""
        return f"shapes {self.shapes}, seed {self.seed}, grid {grid}{some}"

    @property
    def flags(self) -> str:
        """What makes `tilepass check` run it."""
        words = ["--shapes", str(self.shapes), "--grid", ",".join(map(str, self.grid))]
        some = ["--programs", _numbers(self.programs)] if self.programs else []
        return shlex.join([*words, *some])


def _numbers(programs: Sequence[Place]) -> str:
    return ",".join(str(x) for x, _, _ in programs)


_KINDS: tuple[Kind, ...] = ("moderate", "special", "wide")


@dataclass(frozen=True)
class Execution:
    """What a kernel left of a case.

    `values` are those of the arguments; `lacking` is why not all are of the kind of the case.
    """

    case: Case
    arguments: Mapping[str, Argument]
    values: Values
    outcome: Outcome
    lacking: Fault | None = None

    def poison(self, name: str) -> NDArray[np.bool_] | None:
        """Which elements of an array hold poison, None for none."""
        return self.outcome.poison.get(id(_array(self.arguments[name])))


def assert_equivalent(
    before: Kernel,
    after: Kernel,
    *,
    shapes: Sequence[str | Shapes] = (),
    seeds: int = DEFAULT_SEEDS,
    grid: Sequence[int] | None = None,
    kernel: str | None = None,
    tolerance: float = 0.0,
    step_limit: int = STEP_LIMIT,
) -> None:
    """Run both on random arguments of these shapes and compare all arrays; without any, on shapes
    that make them do all that they can do (see `plan`).

    `tolerance` is relative to the largest magnitude of an array; 0 means equal bits (any NaN equals
    any other). Raises NotEquivalentError; Fault where one of the two does something undefined;
    UnsupportedOperationsError.
    """
    one, other = _program(before, kernel), _program(after, kernel)
    for case in cases([one, other], shapes, seeds, grid):
        compare(one, other, case, tolerance, step_limit)


def _program(source: Kernel, kernel: str | None) -> Program:
    return source if isinstance(source, Program) else Program(source, kernel)


def cases(
    forms: Sequence[Program],
    shapes: Sequence[str | Shapes],
    seeds: int,
    grid: Sequence[int] | None,
    programs: Sequence[Place] | None = None,
) -> list[Case]:
    """Every shape with every seed for all forms of a kernel; without shapes, those of a plan and
    simple ones."""
    found: list[Case] = []
    first = forms[0]
    if not shapes:
        plan = make_plan([each.module for each in forms], first.name, grid)
        for each in plan.cases:
            some = each.programs if len(each.programs) < math.prod(each.grid) else None
            found += [Case(each.shapes, seed, each.grid, some, each.said) for seed in range(seeds)]
    for each in shapes or SIMPLE:
        given = parse_shapes(each) if isinstance(each, str) else each
        parsed = resolved(given, first.parameters)
        chosen = tuple(grid) if grid is not None else grid_of(first.module, (3, 3, 3))
        some = tuple(programs) if programs else None if grid else _some(chosen)
        found += [Case(parsed, seed, chosen, some, str(parsed)) for seed in range(seeds)]
    return found


def _some(grid: tuple[int, ...]) -> tuple[Place, ...] | None:
    """Of many programs the first, the second and the last."""
    if grid[0] <= _MOST_PROGRAMS:
        return None
    return (0, 0, 0), (1, 0, 0), (grid[0] - 1, 0, 0)


def missed(forms: Sequence[Program], cases: Sequence[Case], reached: set[Goal]) -> list[str]:
    """What runs should have reached and did not, each with sizes for it where any are known."""
    left = [goal for form in forms for goal in wanted(form.spots) if goal not in reached]
    if not left:
        return []
    grid = cases[0].grid if cases else None
    plan = make_plan([each.module for each in forms], forms[0].name, grid)
    ran = {case.said for case in cases}
    lines: dict[str, None] = {}
    for text in map(describe, left):
        shapes = plan.advice.get(text)
        # Another loop at the same place may have been reached.
        advice = f" (try --shapes {shapes})" if shapes and shapes not in ran else ""
        lines[f"{text} not reached{advice}"] = None
    return list(lines)


def execute(
    program: Program,
    case: Case,
    step_limit: int = STEP_LIMIT,
    *,
    keeps_poison: bool = False,
    reached: set[Goal] | None = None,
) -> Execution:
    """Run on random arguments; raises Fault for whatever is undefined.

    What its programs reach is added to `reached`.
    """
    arguments = make_arguments(program.parameters, case.shapes, case.seed)
    try:
        outcome = _run(program, arguments, case, step_limit, keeps_poison)
    except Fault as fault:
        fault.note(f"with {case}")
        raise
    if reached is not None:
        reached |= outcome.reached
    return Execution(case, arguments, MODERATE, outcome)


def reference(
    program: Program,
    case: Case,
    step_limit: int = STEP_LIMIT,
    reached: set[Goal] | None = None,
) -> Execution:
    """Run the first of two kernels that are to be compared.

    A value that is poison it may store: the second may store anything there. Where it does anything
    else that is undefined on values at the edges, which its author rules out, the floats or the
    integers of its arguments are moderate, at last all.
    """
    if case.kind == "moderate":
        return execute(program, case, step_limit, keeps_poison=True, reached=reached)
    first: Fault | None = None
    for moderate in ((), ("integer",), ("float",)):
        values = Values(case.kind, program.roles, moderate)
        arguments = make_arguments(program.parameters, case.shapes, case.seed, values)
        try:
            outcome = _run(program, arguments, case, step_limit)
        except Fault as fault:
            first = first or fault
            if isinstance(fault, StepLimit):
                break
            continue
        if reached is not None:
            reached |= outcome.reached
        return Execution(case, arguments, values, outcome, first)
    last = execute(program, case, step_limit, keeps_poison=True, reached=reached)
    return replace(last, lacking=first)


def _run(
    program: Program,
    arguments: Mapping[str, Argument],
    case: Case,
    step_limit: int,
    keeps_poison: bool = True,
) -> Outcome:
    # Races hardly depend on values: one seed in three is watched.
    watch = case.kind == "moderate"
    return run(
        program, arguments, case.grid, programs=case.programs, step_limit=step_limit,
        keeps_poison=keeps_poison, watch=watch,
    )  # fmt: skip


def compare(
    before: Program,
    after: Program,
    case: Case,
    tolerance: float = 0.0,
    step_limit: int = STEP_LIMIT,
    reached: set[Goal] | None = None,
) -> Execution:
    """Run both on one case; returns what the first left. Raises as `assert_equivalent`.

    With a tolerance all values are moderate: of others another order of a sum may be infinite.
    """
    run_first = execute if tolerance else reference
    left = run_first(before, case, step_limit, reached=reached)
    compare_with(left, before, after, tolerance, step_limit, reached)
    return left


def compare_with(
    left: Execution,
    before: Program,
    after: Program,
    tolerance: float = 0.0,
    step_limit: int = STEP_LIMIT,
    reached: set[Goal] | None = None,
) -> None:
    """Run `after` alone: `left` is what `reference(before, case)` returned. Raises as `compare`.

    Where only some programs are run and leave something else, all are: they may share the work in
    another way.
    """
    case, said = left.case, f", {left.values} values" if left.values != MODERATE else ""
    right = _execute_second(left, before, after, step_limit, reached)
    difference = first_difference(left, right, tolerance)
    if difference and case.programs is not None:
        whole = replace(left, case=replace(case, programs=None))
        right = _execute_second(whole, before, after, step_limit)
        if not first_difference(_written(left, before, right), right, tolerance):
            other = (execute if tolerance else reference)(before, whole.case, step_limit)
            if other.values != whole.values:
                right = _execute_second(other, before, after, step_limit)
            difference = first_difference(other, right, tolerance)
    if difference:
        raise NotEquivalentError(f"{difference}\nnote: with {case}{said}")


def _execute_second(
    left: Execution,
    before: Program,
    after: Program,
    step_limit: int,
    reached: set[Goal] | None = None,
) -> Execution:
    """Run the second kernel on what the first was run on."""
    case, said = left.case, f", {left.values} values" if left.values != MODERATE else ""
    names = [group.name for group in grouped(before.parameters)]
    others = [group.name for group in grouped(after.parameters)]
    if len(names) != len(others):
        raise NotEquivalentError(f"the kernels take {len(names)} and {len(others)} parameters")
    arguments = make_arguments(before.parameters, case.shapes, case.seed, left.values)
    renamed = {other: arguments[name] for name, other in zip(names, others, strict=True)}
    try:
        outcome = _run(after, renamed, case, step_limit)
    except Fault as fault:
        fault.note(f"in the second kernel, with {case}{said}; the first runs through")
        raise
    if reached is not None:
        reached |= outcome.reached
    return Execution(case, arguments, left.values, outcome)


def _written(left: Execution, before: Program, right: Execution) -> Execution:
    """What some programs wrote, everything else as in `right`."""
    case = left.case
    arguments = make_arguments(before.parameters, case.shapes, case.seed, left.values)
    found: dict[str, Argument] = {}
    for name, initial in arguments.items():
        first, second = _array(initial), _array(left.arguments[name])
        third = _array(right.arguments[name])
        if first is not None and second is not None and third is not None:
            poison = left.poison(name)
            wrote = _different(first, second, 0.0)
            found[name] = np.where(wrote if poison is None else wrote & ~poison, second, third)
    return Execution(case, found, left.values, Outcome(races=right.outcome.races))


def first_difference(left: Execution, right: Execution, tolerance: float) -> str | None:
    """What distinguishes two executions of the same case, None if nothing does.

    Where the first leaves poison the second may leave anything. A race counts if the first kernel
    has none.
    """
    for name in left.arguments:
        first, second = _array(left.arguments[name]), _array(right.arguments[name])
        if first is None or second is None:
            continue
        wrong = _different(first, second, tolerance)
        undefined, other = left.poison(name), right.poison(name)
        if other is not None:
            wrong |= other
        if undefined is not None:
            wrong &= ~undefined
        if wrong.any():
            at = tuple(int(index[0]) for index in np.nonzero(wrong))
            found = (
                f"poison ({right.outcome.cause})" if other is not None and other[at] else second[at]
            )
            return (
                f"{name}{list(at)} is {first[at]} in the first kernel and {found} in the "
                f"second; {int(wrong.sum())} of {wrong.size} elements differ"
            )
    if right.outcome.races and not left.outcome.races:
        return f"a race in the second kernel alone: {right.outcome.races[0]}"
    return None


def _array(argument: Argument) -> NDArray[Any] | None:
    if isinstance(argument, HostDescriptor):
        return _array(argument.array)
    if isinstance(argument, Uninitialized):
        return argument.array
    return argument if isinstance(argument, np.ndarray) else None


def _different(first: NDArray[Any], second: NDArray[Any], tolerance: float) -> NDArray[np.bool_]:
    bits = np.dtype(f"u{first.dtype.itemsize}")
    wrong = first.view(bits) != second.view(bits)
    if first.dtype.kind in "iub" or not wrong.any():
        return wrong
    one, other = first.astype(np.float64), second.astype(np.float64)
    wrong &= ~(np.isnan(one) & np.isnan(other))
    if tolerance:
        finite = np.abs(one[np.isfinite(one)])
        bound = tolerance * (float(finite.max()) if finite.size else 0.0)
        wrong &= ~(np.abs(one - other) <= bound)
    return wrong


_UNCOMPARED = (
    ("tt.print", "what is printed"),
    ("tt.assert", "assertions that hold"),
    ("tt.atomic_rmw", "the memory order of atomic operations"),
    ("tt.atomic_cas", "the memory order of atomic operations"),
)
# Attributes of loads and stores, and their values that ask for nothing.
_HINTS = (
    ("isVolatile", ("false",), "that a load is volatile"),
    ("cache", ("1 : i32",), "cache modifiers"),
    ("evict", ("1 : i32",), "eviction policies"),
)
_POLICY = "cachePolicy"
_POLICIES = {
    re.compile(r"cache_modifier = (?!none\b)"): "cache modifiers",
    re.compile(r"eviction_policy = (?!evict_normal\b)"): "eviction policies",
}


def not_compared(*programs: Program) -> list[str]:
    """What these kernels do besides leaving values in arrays, in words."""
    found: dict[str, None] = {}
    for program in programs:
        for operation in engine.operations(program.module):
            for name, said in _UNCOMPARED:
                if operation.name == name:
                    found[said] = None
            for attribute, plain, said in _HINTS:
                given = operation.attributes.get(attribute)
                if given is not None and str(given) not in plain:
                    found[said] = None
            # Triton 3.9 has both hints in one attribute.
            policy = str(operation.attributes.get(_POLICY, ""))
            found |= {said: None for field, said in _POLICIES.items() if field.search(policy)}
    return [*found, *(["arguments that overlap"] if any(map(_may_overlap, programs)) else [])]


def _may_overlap(program: Program) -> bool:
    """Whether what is stored through one argument could be what is loaded through another."""
    arrays = [
        (group, program.roles[group.name])
        for group in grouped(program.parameters)
        if group.rank is not None or group.parameter.type.of.kind == "pointer"
    ]
    return any(
        Role.STORED in role and Role.LOADED in other and one.name != two.name
        and one.element == two.element
        for one, role in arrays
        for two, other in arrays
    )  # fmt: skip


def reservations(runs: Sequence[Execution], before: Program, after: Program) -> list[str]:
    """What a comparison without a difference leaves open, in lines."""
    lines: list[str] = []
    for kind in ("special", "wide"):
        lacking = [run.lacking for run in runs if run.case.kind == kind and run.lacking]
        if lacking:
            first = lacking[0]
            where = f"{first.operation}: " if first.operation else ""
            lines.append(f"{kind} values in part only, the first kernel is undefined on them: "
                         f"{where}{first.message}")  # fmt: skip
    races = [race for run in runs for race in run.outcome.races]
    if races:
        lines.append(f"a race in the first kernel: {races[0]}")
    if uncompared := not_compared(before, after):
        lines.append(f"not compared: {', '.join(uncompared)}")
    return lines
