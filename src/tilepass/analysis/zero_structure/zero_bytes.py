"""Data as "which bytes are zero", one map per thread, interned so that equal maps are one object.

Four facts per byte, as bits of a uint8:

| bit | meaning |
|---|---|
| FREE_SIGN   | 0, or the 0x80 of the top byte of a floating-point -0.0 |
| FREE_ZERO   | exactly 0 |
| STRICT_SIGN, STRICT_ZERO | the same, without taking 0 * x to be 0 |

So one run answers with and without that assumption. The little-endian element of w bytes is a
floating-point zero where the lower w - 1 bytes are exactly 0 and the top byte is 0 or 0x80. What
holds for either of two values is the bitwise and.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilepass.analysis.zero_structure.intervals import BoolArray, IntArray, Interval

FREE_SIGN, FREE_ZERO, STRICT_SIGN, STRICT_ZERO = 1, 2, 4, 8
SIGNS = FREE_SIGN | STRICT_SIGN
ZEROS = FREE_ZERO | STRICT_ZERO
FREE = FREE_SIGN | FREE_ZERO
STRICT = STRICT_SIGN | STRICT_ZERO
ALL = FREE | STRICT

ByteArray = NDArray[np.uint8]


class ZeroBytes:
    """The facts about a scalar: uint8 of shape (1 or threads, bytes)."""

    __slots__ = ("_code", "any", "facts", "size")

    def __init__(self, facts: ByteArray) -> None:
        self.facts = facts
        self.size = int(facts.shape[1])
        self.any = bool(facts.any())
        self._code: ByteArray | None = None

    @property
    def code(self) -> ByteArray:
        """The facts of the floating-point value: shape (1 or threads,).

        SIGNS bits where it is a zero, ZEROS bits where it is +0.0.
        """
        code = self._code
        if code is None:
            lower = np.bitwise_and.reduce(self.facts[:, :-1], axis=1) & ZEROS
            top = self.facts[:, -1]
            self._code = code = (top & (lower | lower >> 1)).astype(np.uint8)
        return code


class ZeroMaps:
    """The table of zero maps of one analysis."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._known: dict[tuple[int, bytes], ZeroBytes] = {}
        self._joined: dict[tuple[ZeroBytes, ZeroBytes], ZeroBytes] = {}
        self._parts: dict[tuple[ZeroBytes, int, int], ZeroBytes] = {}
        self._together: dict[tuple[ZeroBytes, ...], ZeroBytes] = {}
        self._nothing: dict[int, ZeroBytes] = {}
        self._zero: dict[int, ZeroBytes] = {}
        self.held_bytes = 0

    def of(self, facts: ByteArray) -> ZeroBytes:
        """The map with these facts."""
        if facts.shape[0] > 1 and (facts == facts[0]).all():
            facts = facts[:1]
        key = (facts.shape[1], facts.tobytes())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = ZeroBytes(facts)
            self.held_bytes += facts.nbytes * 2 + 300
        return found

    def nothing(self, size: int) -> ZeroBytes:
        """A value of which nothing is known."""
        found = self._nothing.get(size)
        if found is None:
            found = self._nothing[size] = self.of(np.zeros((1, size), np.uint8))
        return found

    def zero(self, size: int) -> ZeroBytes:
        """+0.0, or the integer 0."""
        found = self._zero.get(size)
        if found is None:
            found = self._zero[size] = self.of(np.full((1, size), ALL, np.uint8))
        return found

    def from_code(self, code: ByteArray, size: int) -> ZeroBytes:
        """A floating-point value of `size` bytes from its facts (see `ZeroBytes.code`)."""
        if not code.any():
            return self.nothing(size)
        facts = np.empty((code.shape[0], size), np.uint8)
        # Every byte of either zero but the top one is exactly 0.
        facts[:, :-1] = ((code & SIGNS) * 3)[:, None]
        facts[:, -1] = code
        return self.of(facts)

    def join(self, one: ZeroBytes, other: ZeroBytes) -> ZeroBytes:
        """What holds for either."""
        if one is other:
            return one
        key = (one, other)
        found = self._joined.get(key)
        if found is None:
            found = self._joined[key] = self.of(one.facts & other.facts)
        return found

    def pick(self, condition: Interval, one: ZeroBytes, other: ZeroBytes) -> ZeroBytes:
        """`one` where the condition holds, `other` where it does not, what holds for both else."""
        if one is other or condition.least == 1:
            return one
        if condition.most == 0:
            return other
        true, false = (condition.low >= 1)[:, None], (condition.high <= 0)[:, None]
        either = one.facts & other.facts
        return self.of(np.where(true, one.facts, np.where(false, other.facts, either)))

    def where(self, mask: BoolArray, one: ZeroBytes, other: ZeroBytes) -> ZeroBytes:
        """`one` in the threads of the mask, `other` in the rest."""
        if one is other:
            return one
        return self.of(np.where(mask[:, None], one.facts, other.facts))

    def part(self, value: ZeroBytes, start: int, size: int) -> ZeroBytes:
        """Some of the bytes."""
        if start == 0 and size == value.size:
            return value
        key = (value, start, size)
        found = self._parts.get(key)
        if found is None:
            facts = np.ascontiguousarray(value.facts[:, start : start + size])
            found = self._parts[key] = self.of(facts)
        return found

    def together(self, parts: list[ZeroBytes]) -> ZeroBytes:
        """Values side by side, the first at the lowest address."""
        if len(parts) == 1:
            return parts[0]
        key = tuple(parts)
        found = self._together.get(key)
        if found is None:
            rows = max(part.facts.shape[0] for part in parts)
            spread = [np.broadcast_to(part.facts, (rows, part.size)) for part in parts]
            found = self._together[key] = self.of(np.concatenate(spread, axis=1))
        return found

    def lanes(self, value: ZeroBytes, source: IntArray) -> ZeroBytes:
        """The values of other threads: `source[t]` is where thread t looks."""
        if value.facts.shape[0] == 1:
            return value
        return self.of(np.ascontiguousarray(value.facts[source]))

    def over_warps(self, value: ZeroBytes) -> ZeroBytes:
        """What holds in all lanes of a thread's warp."""
        if value.facts.shape[0] == 1:
            return value
        shaped = value.facts.reshape(-1, 32, value.size)
        return self.of(np.repeat(np.bitwise_and.reduce(shaped, axis=1), 32, axis=0))

    def from_interval(self, value: Interval, size: int) -> ZeroBytes:
        """The bytes of an integer."""
        if value.base is not None or value.least > 0 or value.most < 0:
            return self.nothing(size)
        zero = (value.low == 0) & (value.high == 0)
        if not zero.any():
            return self.nothing(size)
        return self.of(np.repeat((zero * np.uint8(ALL)).astype(np.uint8)[:, None], size, axis=1))

    def exactly_zero(self, value: ZeroBytes) -> BoolArray:
        """The threads in which all bytes are 0, whatever 0 * x is: shape (1 or threads,)."""
        return np.bitwise_and.reduce(value.facts, axis=1) & STRICT_ZERO != 0
