"""Whether two forms of a kernel compute the same: same inputs, same bits in every array.

    assert_equivalent(before, after, shapes=["64", "64,K=100"])

Kernels are modules of the engine; `tilepass.testing.program_of` reads them from text and files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilepass.core.errors import TilepassError
from tilepass.ir import engine
from tilepass.sim.arguments import Argument, HostDescriptor, Uninitialized
from tilepass.sim.compiler import Program
from tilepass.sim.faults import Fault
from tilepass.sim.inputs import Shapes, make_arguments, parse_shapes
from tilepass.sim.parameter_groups import grouped
from tilepass.sim.values import STEP_LIMIT, run

Kernel = engine.Module | Program
"""A module, or one that is compiled for the simulator."""

DEFAULT_SHAPES = ("64", "100")
DEFAULT_SEEDS = 3


class NotEquivalentError(TilepassError, AssertionError):
    """Two kernels that computed different values; the message says where."""


@dataclass(frozen=True)
class Case:
    """What a kernel is run on."""

    shapes: Shapes
    seed: int
    grid: tuple[int, ...]

    def __str__(self) -> str:
        grid = ",".join(map(str, self.grid))
        return f"shapes {self.shapes}, seed {self.seed}, grid {grid}"


def assert_equivalent(
    before: Kernel,
    after: Kernel,
    *,
    shapes: Sequence[str | Shapes] = DEFAULT_SHAPES,
    seeds: int = DEFAULT_SEEDS,
    grid: Sequence[int] | None = None,
    kernel: str | None = None,
    tolerance: float = 0.0,
    step_limit: int = STEP_LIMIT,
) -> None:
    """Run both on random arguments of these shapes and compare all arrays.

    `tolerance` is relative to the largest magnitude of an array; 0 means equal bits (any NaN equals
    any other). Raises NotEquivalentError; Fault where one of the two does something undefined;
    UnsupportedOperationsError.
    """
    one, other = _program(before, kernel), _program(after, kernel)
    for case in cases(one, shapes, seeds, grid):
        compare(one, other, case, tolerance, step_limit)


def _program(source: Kernel, kernel: str | None) -> Program:
    return source if isinstance(source, Program) else Program(source, kernel)


def cases(
    program: Program,
    shapes: Sequence[str | Shapes],
    seeds: int,
    grid: Sequence[int] | None,
) -> Iterator[Case]:
    """Every shape with every seed."""
    chosen = tuple(grid) if grid is not None else default_grid(program)
    for each in shapes:
        parsed = parse_shapes(each) if isinstance(each, str) else each
        for seed in range(seeds):
            yield Case(parsed, seed, chosen)


def default_grid(program: Program) -> tuple[int, ...]:
    """Two programs in each dimension that the kernel asks about."""
    axes = {
        int(axis.value)
        for operation in engine.operations(program.module)
        if operation.name == "tt.get_program_id"
        and isinstance(axis := operation.attributes["axis"], engine.ir.IntegerAttr)
    }
    return tuple(2 if axis in axes else 1 for axis in range(3))


def execute(program: Program, case: Case, step_limit: int = STEP_LIMIT) -> dict[str, Argument]:
    """Run on random arguments and return them, arrays as the kernel leaves them."""
    arguments = make_arguments(program.parameters, case.shapes, case.seed)
    try:
        run(program, arguments, case.grid, step_limit=step_limit)
    except Fault as fault:
        fault.note(f"with {case}")
        raise
    return arguments


def compare(
    before: Program,
    after: Program,
    case: Case,
    tolerance: float = 0.0,
    step_limit: int = STEP_LIMIT,
) -> None:
    """Run both on one case. Raises as `assert_equivalent`."""
    compare_with(execute(before, case, step_limit), before, after, case, tolerance, step_limit)


def compare_with(
    left: Mapping[str, Argument],
    before: Program,
    after: Program,
    case: Case,
    tolerance: float = 0.0,
    step_limit: int = STEP_LIMIT,
) -> None:
    """Run `after` alone: `left` is what `execute(before, case)` returned. Raises as `compare`."""
    names = [group.name for group in grouped(before.parameters)]
    others = [group.name for group in grouped(after.parameters)]
    if len(names) != len(others):
        raise NotEquivalentError(f"the kernels take {len(names)} and {len(others)} parameters")
    arguments = make_arguments(before.parameters, case.shapes, case.seed)
    renamed = {other: arguments[name] for name, other in zip(names, others, strict=True)}
    try:
        run(after, renamed, case.grid, step_limit=step_limit)
    except Fault as fault:
        fault.note(f"in the second kernel, with {case}; the first runs through")
        raise
    if difference := first_difference(left, arguments, tolerance):
        raise NotEquivalentError(f"{difference}\nnote: with {case}")


def first_difference(
    left: Mapping[str, Argument], right: Mapping[str, Argument], tolerance: float
) -> str | None:
    """What distinguishes two sets of arguments of the same kernel, None if nothing does."""
    for name, one in left.items():
        first, second = _array(one), _array(right[name])
        if first is None or second is None:
            continue
        wrong = _different(first, second, tolerance)
        if wrong.any():
            at = tuple(int(index[0]) for index in np.nonzero(wrong))
            return (
                f"{name}{list(at)} is {first[at]} in the first kernel and {second[at]} in the "
                f"second; {int(wrong.sum())} of {wrong.size} elements differ"
            )
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
