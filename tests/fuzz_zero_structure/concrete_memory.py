"""Memory of one block: an address is a region's number in the upper half, an offset below."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tilepass.analysis.zero_structure.program import Program

_SHIFT = 32
_SHARED_BYTES = 233_472
# The address at which dynamic shared memory begins; an odd multiple of the largest alignment.
_SHARED_START = 1024


class Memory:
    """Global tensors, shared variables and private objects, filled with random bytes at first."""

    def __init__(self, program: Program, threads: int, random: np.random.Generator) -> None:
        self._threads = threads
        self._random = random
        # Region 0 is shared memory: its addresses fit 32 bits, as on a GPU.
        self._regions: list[tuple[NDArray[np.uint8], bool]] = [
            (random.integers(0, 256, _SHARED_BYTES + _SHARED_START, np.uint8), False)
        ]
        self._shared: dict[str, int] = {}
        end = _SHARED_START
        for name, shared in program.objects.items():
            end = -(-end // shared.alignment) * shared.alignment
            self._shared[name] = end
            end += shared.bytes or 0

    def shared_address(self, name: str) -> int:
        """The address of a variable."""
        return self._shared[name]

    def place_global(self, data: NDArray[np.uint8]) -> int:
        """The address of a tensor's bytes."""
        self._regions.append((data, False))
        return (len(self._regions) - 1) << _SHIFT

    def place_private(self, size: int) -> int:
        """The address of a new object that every thread has its own of."""
        data = self._random.integers(0, 256, (self._threads, size), np.uint8)
        self._regions.append((data, True))
        return (len(self._regions) - 1) << _SHIFT

    def offset_of(self, address: int) -> int:
        """The offset of an address in its region."""
        return address & ((1 << _SHIFT) - 1)

    def load(
        self, address: NDArray[np.uint64], count: int, size: int, mask: NDArray[np.bool_]
    ) -> NDArray[np.uint64]:
        """`count` elements of `size` bytes behind each thread's address: (threads, count)."""
        result = np.zeros((self._threads, count), np.uint64)
        for data, private, threads, place in self._places(address, count * size, mask):
            loaded = data[threads[:, None], place] if private else data[place]
            parts = loaded.reshape(len(threads), count, size).astype(np.uint64)
            shifts = (8 * np.arange(size, dtype=np.uint64))[None, None]
            result[threads] = np.bitwise_or.reduce(parts << shifts, axis=2)
        return result

    def store(
        self,
        address: NDArray[np.uint64],
        value: NDArray[np.uint64],
        size: int,
        mask: NDArray[np.bool_],
    ) -> None:
        """Store elements of `size` bytes behind each thread's address."""
        count = value.shape[1]
        shifts = (8 * np.arange(size, dtype=np.uint64))[None, None]
        split = ((value[:, :, None] >> shifts) & np.uint64(255)).astype(np.uint8)
        flat = split.reshape(self._threads, count * size)
        for data, private, threads, place in self._places(address, count * size, mask):
            if private:
                data[threads[:, None], place] = flat[threads]
            else:
                data[place] = flat[threads]

    def _places(
        self, address: NDArray[np.uint64], size: int, mask: NDArray[np.bool_]
    ) -> Iterator[tuple[NDArray[np.uint8], bool, NDArray[np.int64], NDArray[np.int64]]]:
        region = (address >> np.uint64(_SHIFT)).astype(np.int64)
        offset = (address & np.uint64((1 << _SHIFT) - 1)).astype(np.int64)
        for number in np.unique(region[mask]).tolist():
            data, private = self._regions[int(number)]
            threads = np.nonzero(mask & (region == number))[0]
            yield data, private, threads, offset[threads][:, None] + np.arange(size)
