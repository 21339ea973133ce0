"""Shared memory: for every byte what any store of the kernel may leave there, whenever it runs.

Flow-insensitive and optimistic: a byte counts as zero until a store of something else is seen; the
kernel is interpreted again until a whole run changes nothing. Bytes that are read as zero but that
no store covers lose their facts in the end (`forget_uncovered`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilepass.analysis.zero_structure.intervals import Interval
from tilepass.analysis.zero_structure.program import SharedObject
from tilepass.analysis.zero_structure.values import Domain, Mask
from tilepass.analysis.zero_structure.zero_bytes import ALL, ZeroBytes

# Instead of an instruction's number: no store is known to write a byte.
UNCOVERED = -2
NOBODY = -1


class SharedMemory:
    """One variable in shared memory."""

    def __init__(self, domain: Domain, shared: SharedObject, capacity: int) -> None:
        self.shared = shared
        self._domain = domain
        size = capacity if shared.bytes is None else min(shared.bytes, capacity)
        self.size = size
        self.facts: NDArray[np.uint8] = np.full(size, ALL, np.uint8)
        self.covered = np.zeros(size, bool)
        self._read = np.zeros(size, bool)
        # Instruction numbers: the first that took facts from a byte; the first and the last that
        # stored a zero there.
        self.spoiled_by = np.full(size, NOBODY, np.int32)
        self.first_zero = np.full(size, NOBODY, np.int32)
        self.last_zero = np.full(size, NOBODY, np.int32)
        self.version = 0
        self._done: set[tuple[int, Interval, ZeroBytes, Mask]] = set()
        self._loads: dict[tuple[Interval, int], tuple[int, ZeroBytes]] = {}

    def start_run(self) -> None:
        """Forget what covers bytes: an address known in the last run may be known no more."""
        self.covered[:] = False
        self._done.clear()

    def store(self, offset: Interval, value: ZeroBytes, mask: Mask, number: int) -> None:
        """Threads of the mask may store a value at byte offsets."""
        key = (number, offset, value, mask)
        if key in self._done:
            return
        self._done.add(key)
        size = value.size
        low = self._domain.spread(offset.low)
        high = self._domain.spread(offset.high)
        exact = (low == high) & (low >= 0) & (low + size <= self.size) & mask.active
        facts = np.broadcast_to(value.facts, (self._domain.threads, size))
        if exact.any():
            place = low[exact][:, None] + np.arange(size)
            self._merge(place, facts[exact], number)
        vague = mask.active & ~exact
        # A zero stored at an unknown place takes nothing away, and covers nothing for certain.
        vague &= ~(facts == ALL).all(1)
        if vague.any():
            self.spoil(int(low[vague].min()), int(high[vague].max()) + size, number)

    def spoil(self, start: int, stop: int, number: int) -> None:
        """Anything may be stored to a range of bytes."""
        place = slice(max(0, start), stop)
        if place.start >= place.stop:
            return
        self.covered[place] = True
        if not self.facts[place].any():
            return
        fresh = (self.facts[place] != 0) & (self.spoiled_by[place] == NOBODY)
        self.spoiled_by[place][fresh] = number
        self.facts[place] = 0
        self.version += 1

    def spoil_all(self, number: int) -> None:
        """Anything may be stored anywhere."""
        self.spoil(0, self.size, number)

    def load(self, offset: Interval, size: int) -> ZeroBytes:
        """The facts about `size` bytes at byte offsets."""
        key = (offset, size)
        found = self._loads.get(key)
        if found is not None and found[0] == self.version:
            return found[1]
        low = self._domain.spread(offset.low)
        exact = (low == self._domain.spread(offset.high)) & (low >= 0) & (low + size <= self.size)
        if offset.uniform:
            low, exact = low[:1], exact[:1]
        place = np.where(exact, low, 0)[:, None] + np.arange(min(size, self.size))
        facts = np.where(exact[:, None], self.facts[place], 0).astype(np.uint8)
        self._read[place[exact]] = True
        value = self._domain.maps.of(facts)
        self._loads[key] = (self.version, value)
        return value

    def forget_uncovered(self) -> bool:
        """Take the facts from bytes that are read and never stored; whether there were any."""
        lost = self._read & ~self.covered & (self.facts != 0)
        if not lost.any():
            return False
        self.facts[lost] = 0
        self.spoiled_by[lost] = UNCOVERED
        self.version += 1
        return True

    def _merge(self, place: NDArray[np.int64], facts: NDArray[np.uint8], number: int) -> None:
        self.covered[place] = True
        changed = False
        # Threads may write the same byte: one value of facts at a time, so that all of them count.
        for level in np.unique(facts):
            targets = place[facts == level]
            if level:
                self.last_zero[targets] = number
                self.first_zero[targets[self.first_zero[targets] == NOBODY]] = number
            if level == ALL:
                continue
            losing = targets[(self.facts[targets] & ~level & ALL) != 0]
            if losing.size == 0:
                continue
            changed = True
            fresh = losing[self.spoiled_by[losing] == NOBODY]
            self.spoiled_by[fresh] = number
            self.facts[losing] &= level
        if changed:
            self.version += 1
