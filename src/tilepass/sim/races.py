"""Programs of a grid that meet in global memory although nothing orders them.

Programs are executed one after the other, so that a race between two of them shows as a difference
on a GPU alone. A Watch sees every access, and says where what one program leaves or reads depends
on another: both write an element, and leave different values; one reads what the other changes; one
changes atomically what the other accesses otherwise.

Two programs that access one element atomically (locks, counters, volatile loads) count as ordered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_READ, _WRITTEN, _ATOMIC = range(3)
# (what this program does, what an earlier one did, whether only a changed value matters, in words)
_RACES = (
    (_WRITTEN, _WRITTEN, True, "write different values to {element}: which stays depends on their "
     "order"),
    (_WRITTEN, _READ, True, "read and write {element}: what is read depends on their order"),
    (_READ, _WRITTEN, False, "write and read {element}: what is read depends on their order"),
    (_ATOMIC, _WRITTEN, True, "write {element}, only one of them atomically"),
    (_ATOMIC, _READ, True, "read and update {element}, only one of them atomically"),
    (_WRITTEN, _ATOMIC, True, "write {element}, only one of them atomically"),
    (_READ, _ATOMIC, False, "update and read {element}, only one of them atomically"),
)  # fmt: skip


class Buffer(Protocol):
    """An array in global memory, `base` its address and `unit` the size of its elements."""

    name: str
    base: int
    unit: int
    bytes: NDArray[np.uint8]


class Watch:
    """What the programs of a launch access; `races` holds a line for each kind and array."""

    def __init__(self) -> None:
        self.races: list[str] = []
        self.atomic = False
        """Whether the accesses that follow are atomic."""
        self._known: dict[int, _Accesses] = {}
        self._places: list[tuple[int, ...]] = []
        # For each program, the elements of each buffer that it accesses atomically.
        self._ordering: list[dict[int, NDArray[np.int64]]] = []

    def note(self, buffer: Buffer, indices: Any, size: int, writes: bool) -> None:
        """An access to elements of `size` bytes, one or an array of them."""
        accesses = self._known.get(buffer.base)
        if accesses is None:
            accesses = self._known[buffer.base] = _Accesses(buffer)
        accesses.note(indices, size, _ATOMIC if self.atomic else _WRITTEN if writes else _READ,
                      writes)  # fmt: skip

    def end_program(self, place: tuple[int, ...]) -> None:
        """A program has ended: compare it with those before it."""
        self._places.append(place)
        touched = {base: each for base, each in self._known.items() if each.touched}
        self._ordering.append(
            {base: found for base, each in touched.items() if len(found := each.atomic())}
        )
        for accesses in touched.values():
            for what, earlier, element in accesses.meetings():
                self._report(what, earlier, accesses.buffer.name, element)
            accesses.end_program(len(self._places))

    def _report(self, what: str, earlier: set[int], array: str, element: int) -> None:
        here = len(self._places)
        other = next((each for each in sorted(earlier) if not self._ordered(each, here)), None)
        if other is None:
            return
        said = what.format(element=f"element {element} of {array}")
        if not any(said.split(" element ")[0] in race and array in race for race in self.races):
            self.races.append(f"programs {self._places[other - 1]} and {self._places[-1]} {said}")

    def _ordered(self, one: int, other: int) -> bool:
        first, second = self._ordering[one - 1], self._ordering[other - 1]
        return any(
            len(np.intersect1d(elements, second[base])) > 0
            for base, elements in first.items()
            if base in second
        )


class _Accesses:
    """Accesses to one buffer, by elements of the array that it holds.

    `_now` marks those of the program that runs, `_before` says which program was the last before
    it, counted from 1; both have an array for each kind of access.
    """

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        count = len(buffer.bytes) // buffer.unit
        self._now = np.zeros((3, count), np.bool_)
        self._before = np.zeros((3, count), np.int32)
        self._old: NDArray[np.uint8] | None = None
        self._low, self._high = count, 0
        # Parts of elements are accessed: what two programs access may differ all the same.
        self._mixed = False

    @property
    def touched(self) -> bool:
        return self._high > self._low and not self._mixed

    def note(self, indices: Any, size: int, kind: int, writes: bool) -> None:
        """An access, which follows."""
        if writes and self._old is None:
            self._old = self.buffer.bytes.copy()
        if size != self.buffer.unit:
            indices = self._units(indices, size)
            if self._mixed:
                return
        self._now[kind][indices] = True
        array = isinstance(indices, np.ndarray)
        first = int(indices.min()) if array else indices
        last = int(indices.max()) if array else indices
        self._low, self._high = min(self._low, first), max(self._high, last + 1)

    def _units(self, indices: Any, size: int) -> Any:
        ratio, rest = divmod(size, self.buffer.unit)
        self._mixed |= ratio == 0 or rest != 0
        return np.ravel(np.asarray(indices)[..., None] * ratio + np.arange(ratio))

    @property
    def _part(self) -> slice:
        return slice(self._low, self._high)

    def atomic(self) -> NDArray[np.int64]:
        """The elements that the program accessed atomically."""
        return np.flatnonzero(self._now[_ATOMIC, self._part]) + self._low

    def _changed(self) -> NDArray[np.bool_]:
        """Which elements of the part differ from what they were when the program began."""
        if self._old is None:
            return np.zeros(self._high - self._low, np.bool_)
        unit = self.buffer.unit
        part = slice(self._low * unit, self._high * unit)
        kind = np.dtype(f"u{unit}")
        new: Any = self.buffer.bytes[part].view(kind)
        return np.asarray(new != self._old[part].view(kind))

    def meetings(self) -> Iterator[tuple[str, set[int], int]]:
        """(in words, the earlier programs, the first element) for each kind of race."""
        now, before, changed = self._now[:, self._part], self._before[:, self._part], None
        for own, other, only_changed, said in _RACES:
            meet = now[own] & (before[other] > 0)
            if own == _READ:
                # What the program wrote itself it may read.
                meet &= ~(now[_WRITTEN] | now[_ATOMIC])
            if not meet.any():
                continue
            if only_changed:
                changed = self._changed() if changed is None else changed
                meet &= changed
            if meet.any():
                earlier = {int(each) for each in np.unique(before[other][meet])}
                yield said, earlier, int(np.argmax(meet)) + self._low

    def end_program(self, number: int) -> None:
        """Accesses of the program become those of an earlier one; writes that changed nothing do
        not count."""
        part, changed = self._part, self._changed()
        for kind in (_READ, _WRITTEN, _ATOMIC):
            marks = self._now[kind, part]
            self._before[kind, part][marks if kind == _READ else marks & changed] = number
        self._now[:, part] = False
        self._low, self._high, self._old = self._now.shape[1], 0, None
