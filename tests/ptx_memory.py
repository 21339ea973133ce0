"""Global and shared memory of a PTX kernel, with what a GPU does not tell: reads and writes that no
barrier orders, reads of what nobody wrote, and addresses outside of every array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Threads = NDArray[np.int64]
Addresses = NDArray[np.int64]

_POISON = 0xFF
"""Both 16-bit formats, and fp32, read these bytes as NaN."""
_UNIT = 2
"""Bytes that races are told apart by: the smallest store of these kernels."""


class KernelFault(Exception):
    """What would be undefined on a GPU."""


class GlobalMemory:
    """Arrays at their own addresses, with a gap behind each."""

    def __init__(self) -> None:
        self._bytes: Bytes = np.zeros(0, np.uint8)
        self._valid: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._arrays: list[tuple[int, NDArray[Any]]] = []

    def place(self, array: NDArray[Any]) -> int:
        """The address of a copy of `array`, a multiple of 256 and never 0."""
        start = len(self._bytes) + 256
        size = -(-array.nbytes // 256) * 256
        self._bytes = np.concatenate([self._bytes, np.zeros(256 + size, np.uint8)])
        self._valid = np.concatenate([self._valid, np.zeros(256 + size, np.bool_)])
        self._bytes[start : start + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
        self._valid[start : start + array.nbytes] = True
        self._arrays.append((start, array))
        return start

    def read_back(self) -> None:
        """Copy what the kernel has stored into the arrays that were placed."""
        for start, array in self._arrays:
            stored = self._bytes[start : start + array.nbytes]
            array[...] = stored.view(array.dtype).reshape(array.shape)

    def load(self, threads: Threads, addresses: Addresses, size: int) -> Bytes:
        """[threads, size] bytes."""
        return self._bytes[self._places(addresses, size)]

    def store(self, threads: Threads, addresses: Addresses, data: Bytes) -> None:
        """Store `data` [threads, size]."""
        self._bytes[self._places(addresses, data.shape[1])] = data

    def _places(self, addresses: Addresses, size: int) -> NDArray[np.int64]:
        if np.any(addresses % size):
            raise KernelFault(f"global address not a multiple of {size}")
        places = addresses[:, None] + np.arange(size)
        if places.size and (places.max() >= len(self._bytes) or places.min() < 0):
            raise KernelFault("global address outside of every array")
        if not self._valid[places].all():
            raise KernelFault("global address outside of every array")
        return places


class SharedMemory:
    """Shared memory of one CTA. Only barriers order accesses of different threads (vector clocks);
    what was not written reads as NaN."""

    def __init__(self, size: int, threads: int) -> None:
        self._bytes: Bytes = np.full(size, _POISON, np.uint8)
        units = size // _UNIT
        self._writer = np.zeros(units, np.int64)
        self._written = np.zeros(units, np.int64)
        self._read = np.zeros((units, threads), np.int32)
        self._clocks = np.eye(threads, dtype=np.int32)

    def barrier(self, threads: Threads) -> None:
        """What these threads did before is ordered before what they do after."""
        seen = self._clocks[threads].max(axis=0)
        self._clocks[threads] = seen
        self._clocks[threads, threads] += 1

    def load(self, threads: Threads, addresses: Addresses, size: int) -> Bytes:
        """[threads, size] bytes."""
        places, units = self._places(addresses, size)
        owner = np.repeat(threads[:, None], units.shape[1], axis=1)
        self._ordered_after_write(owner, units)
        # A thread's own clock never goes back: the latest read is the one that counts.
        self._read[units, owner] = self._clocks[owner, owner]
        return self._bytes[places]

    def store(self, threads: Threads, addresses: Addresses, data: Bytes) -> None:
        """Store `data` [threads, size]; no unit is stored by two threads at once."""
        places, units = self._places(addresses, data.shape[1])
        owner = np.repeat(threads[:, None], units.shape[1], axis=1)
        self._ordered_after_write(owner, units)
        late = self._read[units] > self._clocks[owner]
        late[np.arange(len(threads))[:, None], np.arange(units.shape[1]), owner] = False
        if late.any():
            raise KernelFault("shared memory is overwritten while another thread may still read it")
        if len(np.unique(units)) != units.size:
            raise KernelFault("two threads store to the same place in shared memory at once")
        self._writer[units], self._written[units] = owner, self._clocks[owner, owner]
        self._bytes[places] = data

    def overwrite(self, addresses: Addresses, data: Bytes) -> None:
        """The data of a copy that has been announced by a `store` already."""
        self._bytes[addresses[:, None] + np.arange(data.shape[1])] = data

    def _ordered_after_write(self, owner: NDArray[np.int64], units: NDArray[np.int64]) -> None:
        writer = self._writer[units]
        if np.any((self._written[units] > self._clocks[owner, writer]) & (writer != owner)):
            raise KernelFault(
                "no barrier between a store to shared memory and another thread's use"
            )

    def _places(
        self, addresses: Addresses, size: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if np.any(addresses % size):
            raise KernelFault(f"shared address not a multiple of {size}")
        if addresses.size and (addresses.min() < 0 or addresses.max() + size > len(self._bytes)):
            raise KernelFault("address outside of shared memory")
        places = addresses[:, None] + np.arange(size)
        count = max(size // _UNIT, 1)
        return places, addresses[:, None] // _UNIT + np.arange(count)
