"""Registers that a kernel addresses (`llvm.alloca`): per thread, flow-sensitive.

An object is a list of cells of the size of its element type; lists are never changed in place, so
that a branch starts from a copy of the dictionary alone. A store replaces what all threads hold:
what a branch leaves in threads that do not take it is dropped where the branches meet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from tilepass.analysis.zero_structure import owners
from tilepass.analysis.zero_structure.intervals import Interval
from tilepass.analysis.zero_structure.owners import Owners
from tilepass.analysis.zero_structure.types import Scalar, Type, Vector
from tilepass.analysis.zero_structure.values import Domain, Number, Value
from tilepass.analysis.zero_structure.zero_bytes import ZeroBytes

Cells = list[Number]


@dataclass(frozen=True)
class PrivateObject:
    """The shape of an alloca: `count` cells of `cell` bytes."""

    number: int
    cell: int
    count: int

    @property
    def size(self) -> int:
        """Bytes."""
        return self.cell * self.count


class Registers:
    """The contents of all private objects at one point of the program."""

    __slots__ = ("cells", "owners")

    def __init__(
        self,
        cells: dict[int, Cells] | None = None,
        owners: dict[int, Owners] | None = None,
    ) -> None:
        self.cells: dict[int, Cells] = cells or {}
        # Which accumulator tiles lie in the cells, for objects that any was stored to.
        self.owners: dict[int, Owners] = owners or {}

    def copy(self) -> Registers:
        """A branch's own state."""
        return Registers(dict(self.cells), dict(self.owners))

    def become(self, other: Registers) -> None:
        """Take over another state."""
        self.cells, self.owners = other.cells, other.owners


def elements_of(kind: Type) -> tuple[Scalar, int] | None:
    """Element type and count of a scalar or vector that memory holds."""
    if isinstance(kind, Scalar):
        return kind, 1
    if isinstance(kind, Vector) and kind.element.width % 8 == 0:
        return kind.element, kind.count
    return None


def load(
    domain: Domain,
    shape: PrivateObject,
    cells: Cells,
    offset: Interval,
    kind: Type,
    alignment: int | None = None,
) -> Value:
    """The value of a type at a byte offset; `alignment`, in bytes, is the type's own if None."""
    found = elements_of(kind)
    if found is None:
        return domain.top(kind)
    element, count = found
    size = element.size * count
    if offset.least < 0 or offset.most + size > shape.size:
        return domain.top(kind)
    if offset.uniform:
        return _at(domain, shape, cells, offset.least, element, count, kind)
    # Any of the elements in reach.
    step = shape.cell if (alignment or element.size) % shape.cell == 0 else 1
    starts = range(-(-offset.least // step) * step, offset.most + 1, step)
    if count > 1 or not starts:
        return domain.top(kind)
    numbers = (_element(domain, shape, cells, start, element) for start in starts)
    result = reduce(domain.join_numbers, numbers)
    return result if isinstance(kind, Scalar) else (result,)


def _at(
    domain: Domain,
    shape: PrivateObject,
    cells: Cells,
    start: int,
    element: Scalar,
    count: int,
    kind: Type,
) -> Value:
    numbers = tuple(
        _element(domain, shape, cells, start + index * element.size, element)
        for index in range(count)
    )
    return numbers[0] if isinstance(kind, Scalar) else numbers


def _element(
    domain: Domain, shape: PrivateObject, cells: Cells, start: int, element: Scalar
) -> Number:
    size, cell = element.size, shape.cell
    first, inside = divmod(start, cell)
    if inside == 0 and size == cell:
        return _typed(domain, cells[first], element)
    last = -(-(start + size) // cell)
    parts = [domain.as_map(part, cell) for part in cells[first:last]]
    return domain.maps.part(domain.maps.together(parts), inside, size)


def _typed(domain: Domain, number: Number, element: Scalar) -> Number:
    """A cell as a number of a type: an interval is not a floating-point value."""
    if element.floating and isinstance(number, Interval):
        return domain.as_map(number, element.size)
    return number


def store(
    domain: Domain,
    shape: PrivateObject,
    cells: Cells,
    offset: Interval,
    value: Value,
    kind: Type,
) -> Cells:
    """The cells after a store of a value of a type at a byte offset."""
    found = elements_of(kind)
    if found is None or offset.least < 0 or offset.most + found[0].size * found[1] > shape.size:
        return [domain.maps.nothing(shape.cell)] * shape.count
    element, count = found
    numbers = value if isinstance(value, tuple) else (value,)
    if len(numbers) != count:
        return [domain.maps.nothing(shape.cell)] * shape.count
    size = element.size
    if offset.uniform and offset.least % shape.cell == 0 and size * count % shape.cell == 0:
        first = offset.least // shape.cell
        written = _as_cells(domain, numbers, size, shape.cell)
        result = list(cells)
        result[first : first + len(written)] = written
        return result
    return _scattered(domain, shape, cells, offset, numbers, size)


def _as_cells(domain: Domain, numbers: tuple[Value, ...], size: int, cell: int) -> Cells:
    if size == cell:
        return [
            number if isinstance(number, Interval | ZeroBytes) else domain.maps.nothing(cell)
            for number in numbers
        ]
    maps = [domain.as_map(number, size) for number in numbers]
    if size > cell:
        return [
            domain.maps.part(item, start, cell) for item in maps for start in range(0, size, cell)
        ]
    per_cell = cell // size
    return [
        domain.maps.together(maps[start : start + per_cell])
        for start in range(0, len(maps), per_cell)
    ]


def _scattered(
    domain: Domain,
    shape: PrivateObject,
    cells: Cells,
    offset: Interval,
    numbers: tuple[Value, ...],
    size: int,
) -> Cells:
    """A store whose place differs by thread or is not known: what every cell may hold after it."""
    result = list(cells)
    total = size * len(numbers)
    low, high = domain.spread(offset.low), domain.spread(offset.high)
    single = domain.as_map(numbers[0], size) if len(numbers) == 1 and size == shape.cell else None
    last = -(-(offset.most + total) // shape.cell)
    for index in range(offset.least // shape.cell, last):
        start = index * shape.cell
        touched = (low < start + shape.cell) & (high + total > start)
        if not touched.any():
            continue
        old = domain.as_map(cells[index], shape.cell)
        new = domain.maps.nothing(shape.cell) if single is None else single
        surely = touched & (low == start) & (high == start)
        # A store that begins inside a cell leaves a mixture.
        crooked = touched & ((low % shape.cell != 0) | (high % shape.cell != 0))
        new = domain.maps.where(~crooked, new, domain.maps.nothing(shape.cell))
        kept = domain.maps.where(surely, new, domain.maps.join(old, new))
        result[index] = domain.maps.where(touched, kept, old)
    return result


def join(domain: Domain, one: Registers, other: Registers, widen: bool = False) -> Registers:
    """What holds for either state; an object that only one has is of that one's branch alone.

    `widen` gives up on integers that differ, so that loops come to an end.
    """
    cells = _merged(one, other, lambda first, second: _joined(domain, first, second, widen))
    return Registers(cells, _joined_owners(domain, None, one.owners, other.owners))


def _merged(
    one: Registers, other: Registers, merge: Callable[[Number, Number], Number]
) -> dict[int, Cells]:
    """The cells of both states, those that differ merged."""
    merged = dict(one.cells)
    for number, cells in other.cells.items():
        mine = one.cells.get(number)
        if mine is None or mine is cells:
            merged[number] = cells
            continue
        merged[number] = [
            first if first is second else merge(first, second)
            for first, second in zip(mine, cells, strict=True)
        ]
    return merged


def _joined_owners(
    domain: Domain,
    condition: Interval | None,
    one: dict[int, Owners],
    other: dict[int, Owners],
) -> dict[int, Owners]:
    """An object that only one state has owners for has nobody in the other."""
    joined: dict[int, Owners] = {}
    for number in {**one, **other}:
        some = one.get(number) or other[number]
        nobody = [owners.NOBODY] * len(some)
        joined[number] = owners.pick(
            domain, condition, one.get(number) or nobody, other.get(number) or nobody
        )
    return joined


def _joined(domain: Domain, first: Number, second: Number, widen: bool) -> Number:
    both = domain.join_numbers(first, second)
    if widen and isinstance(first, Interval) and isinstance(both, Interval) and both is not first:
        return domain.intervals.top(64)
    return both


def pick(domain: Domain, condition: Interval, one: Registers, other: Registers) -> Registers:
    """`one` where the condition holds, `other` where it does not, what holds for both else."""

    def picked(first: Number, second: Number) -> Number:
        return domain.pick_numbers(condition, first, second)

    cells = _merged(one, other, picked)
    return Registers(cells, _joined_owners(domain, condition, one.owners, other.owners))


def same(one: Registers, other: Registers) -> bool:
    """Whether two states are equal (values are interned)."""
    return one.cells == other.cells and one.owners == other.owners


def everything_lost(domain: Domain, shape: PrivateObject) -> Cells:
    """An object of which nothing is known."""
    return [domain.maps.nothing(shape.cell)] * shape.count
