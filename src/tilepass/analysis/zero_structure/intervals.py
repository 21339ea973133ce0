"""Integers as one interval per thread, interned so that equal values are one object.

An interval is a pair of int64 arrays of shape (1,) where all threads agree, else (threads,).
Bounds are those of the signed value of the type's width; an i1 is 0 or 1. `base` names a shared
object: the value is then the unknown address of that object plus the interval.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Interval:
    """`low[t] <= value[t] <= high[t]`; `low is high` where the value is known in every thread."""

    __slots__ = ("base", "high", "least", "low", "most")

    def __init__(self, low: IntArray, high: IntArray, base: str | None) -> None:
        self.low = low
        self.high = high
        self.base = base
        self.least = int(low.min())
        self.most = int(high.max())

    @property
    def exact(self) -> bool:
        """Whether the value is known in every thread (up to the address of `base`)."""
        return self.low is self.high

    @property
    def uniform(self) -> bool:
        """Whether the value is known and the same in all threads."""
        return self.low is self.high and self.low.shape[0] == 1

    @property
    def known(self) -> BoolArray:
        """The threads in which the value is known."""
        return self.low == self.high


def limits_of(width: int) -> tuple[int, int]:
    """Least and greatest value of an integer type; an i1 is 0 or 1."""
    if width == 1:
        return 0, 1
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


class Intervals:
    """The table of intervals of one analysis."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bytes, str | None], Interval] = {}
        self._constants: dict[int, Interval] = {}
        self.held_bytes = 0
        self._tops = {width: self._top(width) for width in (1, 8, 16, 32, 64)}

    def of(self, low: IntArray, high: IntArray, base: str | None = None) -> Interval:
        """The interval with these bounds."""
        if low is not high and np.array_equal(low, high):
            high = low
        if low.shape[0] > 1 and (low == low[0]).all() and (low is high or (high == high[0]).all()):
            single = low is high
            low, high = low[:1], high[:1]
            high = low if single else high
        key = (low.tobytes(), b"" if low is high else high.tobytes(), base)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Interval(low, high, base)
            self.held_bytes += low.nbytes * 4 + 400
        return found

    def exact(self, values: IntArray, base: str | None = None) -> Interval:
        """The interval of values that are known."""
        return self.of(values, values, base)

    def constant(self, value: int) -> Interval:
        """The same value in all threads."""
        found = self._constants.get(value)
        if found is None:
            array = np.array([value], np.int64)
            found = self._constants[value] = self.of(array, array)
        return found

    def between(self, low: int, high: int) -> Interval:
        """The same bounds in all threads."""
        return self.of(np.array([low], np.int64), np.array([high], np.int64))

    def top(self, width: int) -> Interval:
        """Any value of a type."""
        return self._tops[width]

    def fit(self, low: IntArray, high: IntArray, width: int, outside: Any = None) -> Interval:
        """Bounds of a result before it wraps: a known value wraps, an interval becomes any value.

        `outside` marks threads whose bounds are not to be trusted.
        """
        least, most = limits_of(width)
        bad = (low < least) | (high > most)
        if outside is not None:
            bad = bad | outside
        if not bad.any():
            return self.of(low, high)
        if low is high and width < 64:
            span = 1 << width
            wrapped = low & (span - 1)
            return self.exact(np.where(wrapped > most, wrapped - span, wrapped))
        return self.of(np.where(bad, least, low), np.where(bad, most, high))

    def join(self, one: Interval, other: Interval, width: int = 64) -> Interval:
        """What holds for either."""
        if one is other:
            return one
        if one.base != other.base:
            return self.top(width)
        return self.of(np.minimum(one.low, other.low), np.maximum(one.high, other.high), one.base)

    def widen(self, old: Interval, new: Interval, width: int) -> Interval:
        """`new` with the bounds that moved since `old` at the ends of the type."""
        least, most = limits_of(width)
        if new.base is not None or old.base != new.base:
            return self.top(width)
        return self.of(
            np.where(new.low < old.low, least, new.low),
            np.where(new.high > old.high, most, new.high),
        )

    def pick(self, condition: Interval, one: Interval, other: Interval, width: int) -> Interval:
        """`one` where the condition holds, `other` where it does not, what holds for both else."""
        if one is other or condition.least == 1:
            return one
        if condition.most == 0:
            return other
        if one.base != other.base:
            return self.top(width)
        true, false = condition.low >= 1, condition.high <= 0
        low = np.minimum(one.low, other.low)
        high = np.maximum(one.high, other.high)
        return self.of(
            np.where(true, one.low, np.where(false, other.low, low)),
            np.where(true, one.high, np.where(false, other.high, high)),
            one.base,
        )

    def lanes(self, value: Interval, source: IntArray) -> Interval:
        """The values of other threads: `source[t]` is where thread t looks."""
        if value.low.shape[0] == 1:
            return value
        low = value.low[source]
        return self.of(low, low if value.exact else value.high[source], value.base)

    def over_warps(self, value: Interval) -> Interval:
        """Bounds over all lanes of a thread's warp."""
        if value.low.shape[0] == 1:
            return value
        low = np.repeat(value.low.reshape(-1, 32).min(1), 32)
        high = np.repeat(value.high.reshape(-1, 32).max(1), 32)
        return self.of(low, high, value.base)

    def _top(self, width: int) -> Interval:
        least, most = limits_of(width)
        return self.of(np.array([least], np.int64), np.array([most], np.int64))
