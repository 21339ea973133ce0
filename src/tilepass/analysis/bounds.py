"""Between which numbers an integer that the IR computes is sure to be."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

from tilepass.ir.engine import Operation, ir
from tilepass.ir.loops import FOR, Loop, constant_int, defining_operation
from tilepass.ir.walks import dominates, users


class Bounds(NamedTuple):
    """The least and the greatest value, both included, read as signed numbers."""

    least: int
    greatest: int

    def inside(self, other: Bounds) -> bool:
        """Whether `other` allows all that this allows."""
        return other.least <= self.least and self.greatest <= other.greatest


# Operations on a grid: CUDA has at most 2^31 - 1 programs in a dimension.
_GRID = {
    "tt.get_program_id": Bounds(0, (1 << 31) - 2),
    "tt.get_num_programs": Bounds(1, (1 << 31) - 1),
}
# Predicates of arith.cmpi: signed ones only; those of swapped operands.
_LESS, _LESS_EQUAL, _GREATER, _GREATER_EQUAL = 2, 3, 4, 5
_MIRRORED = {2: 4, 3: 5, 4: 2, 5: 3}
_DEPTH = 8


def width_of(value: ir.Value) -> int:
    """Bits of an integer; of an index 64."""
    return value.type.width if isinstance(value.type, ir.IntegerType) else 64


def all_of(value: ir.Value) -> Bounds:
    """What the type of a value allows."""
    half = 1 << (width_of(value) - 1)
    return Bounds(-half, half - 1)


def bounds_of(value: ir.Value, at: Operation, depth: int = _DEPTH) -> Bounds:
    """What a scalar integer is between wherever `at` runs, by constants, the operations that
    compute it, and the assumptions in force at `at`."""
    everything = all_of(value)
    constant = constant_int(value)
    if constant is not None:
        return Bounds(constant, constant)
    if depth == 0:
        return everything
    found = _by_definition(value, at, depth - 1)
    if found is None or not found.inside(everything):
        # What does not fit wraps around.
        found = everything
    return _assumed(value, at, found)


def _by_definition(value: ir.Value, at: Operation, depth: int) -> Bounds | None:
    source = defining_operation(value)
    if source is None:
        return _of_argument(ir.BlockArgument(value), at, depth)
    if source.name in _GRID:
        return _GRID[source.name]
    if source.name == "arith.select":
        chosen = [bounds_of(each, at, depth) for each in source.operands[1:]]
        return Bounds(min(c.least for c in chosen), max(c.greatest for c in chosen))
    combine = _COMBINED.get(source.name)
    if combine is None:
        return None
    return combine(*(bounds_of(each, at, depth) for each in source.operands))


def _of_argument(argument: ir.BlockArgument, at: Operation, depth: int) -> Bounds | None:
    """A loop's index stays between its bounds, where the loop compares signed numbers."""
    holder = argument.owner.owner.operation
    if holder.name != FOR or argument.arg_number or "unsignedCmp" in holder.attributes:
        return None
    loop = Loop(holder)
    lower, upper = (bounds_of(each, at, depth) for each in (loop.lower_bound, loop.upper_bound))
    return Bounds(lower.least, max(lower.least, upper.greatest - 1))


def _assumed(value: ir.Value, at: Operation, known: Bounds) -> Bounds:
    """What is known, and what the assumptions say that compare with a constant."""
    least, greatest = known
    for compare in users(value):
        if compare.name != "arith.cmpi" or not _holds(compare, at):
            continue
        predicate = compare.attributes["predicate"]
        assert isinstance(predicate, ir.IntegerAttr)
        other, code = compare.operands[1], predicate.value
        if other == value:
            other, code = compare.operands[0], _MIRRORED.get(code)
        limit = constant_int(other)
        if limit is None:
            continue
        if code in (_GREATER, _GREATER_EQUAL):
            least = max(least, limit + (code == _GREATER))
        if code in (_LESS, _LESS_EQUAL):
            greatest = min(greatest, limit - (code == _LESS))
    # Assumptions that contradict what is known: nothing runs there.
    return Bounds(least, greatest) if least <= greatest else known


def _holds(compare: Operation, at: Operation) -> bool:
    uses = users(compare.result)
    return any(use.name == "llvm.intr.assume" and dominates(use, at) for use in uses)


def _of_corners(compute: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Bounds]:
    """The bounds of an operation that grows or falls steadily in each of its operands."""

    def combine(one: Bounds, other: Bounds) -> Bounds:
        corners = [compute(a, b) for a, b in product(one, other)]
        return Bounds(min(corners), max(corners))

    return combine


def _quotient(one: Bounds, other: Bounds) -> Bounds | None:
    """Of a division by what is above zero, rounded in whatever way."""
    if other.least <= 0:
        return None
    corners = list(product(one, other))
    return Bounds(min(a // b for a, b in corners), max(-(-a // b) for a, b in corners))


def _remainder(one: Bounds, other: Bounds) -> Bounds | None:
    """Of a division by what is above zero; it has the sign of what is divided."""
    if other.least <= 0:
        return None
    most = other.greatest - 1
    return Bounds(-most if one.least < 0 else 0, most if one.greatest > 0 else 0)


def _masked(one: Bounds, other: Bounds) -> Bounds | None:
    limits = [each.greatest for each in (one, other) if each.least >= 0]
    return Bounds(0, min(limits)) if limits else None


def _same(one: Bounds) -> Bounds:
    return one


def _where_not_negative(one: Bounds) -> Bounds | None:
    return one if one.least >= 0 else None


_COMBINED: dict[str, Callable[..., Bounds | None]] = {
    "arith.addi": _of_corners(lambda a, b: a + b),
    "arith.subi": _of_corners(lambda a, b: a - b),
    "arith.muli": _of_corners(lambda a, b: a * b),
    "arith.maxsi": _of_corners(max),
    "arith.minsi": _of_corners(min),
    "arith.divsi": _quotient,
    "arith.ceildivsi": _quotient,
    "arith.floordivsi": _quotient,
    "arith.remsi": _remainder,
    "arith.andi": _masked,
    "arith.extsi": _same,
    "arith.trunci": _same,
    "arith.extui": _where_not_negative,
}
