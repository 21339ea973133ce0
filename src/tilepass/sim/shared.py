"""Shared and tensor memory: allocations and the views that `memdesc` values are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilepass.sim.elements import Element
from tilepass.sim.faults import MemoryMisuse
from tilepass.sim.poison import PartialPoison, Poison, mask_of, values_of


@dataclass
class Barrier:
    """An mbarrier as the PTX ISA describes it: a phase ends when no arrival is pending and no byte
    outstanding; `phase` counts those that ended."""

    count: int
    pending: int
    bytes: int = 0
    phase: int = 0

    @staticmethod
    def of(count: int) -> Barrier:
        """A barrier whose phases need `count` arrivals."""
        return Barrier(count, count)

    def arrive(self, count: int) -> None:
        """Raises MemoryMisuse for more arrivals than are pending."""
        if count > self.pending:
            raise MemoryMisuse(f"{count} arrivals at a barrier with {self.pending} pending")
        self.pending -= count
        self._end_phase()

    def expect(self, size: int) -> None:
        """Wait for `size` bytes more; arrives once, as mbarrier.arrive.expect_tx does."""
        self.bytes += size
        self.arrive(1)

    def complete(self, size: int) -> None:
        """`size` bytes have come."""
        self.bytes -= size
        self._end_phase()

    def passed(self, parity: int) -> bool:
        """Whether the phase of this parity has ended, by mbarrier.test_wait.parity."""
        return self.phase & 1 != parity & 1

    def _end_phase(self) -> None:
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.count


UNWRITTEN, WRITTEN, POISONED = 0, 1, 2
"""The states of an element."""


class Allocation:
    """One buffer; values and states of its elements in logical order, whatever the layout."""

    def __init__(self, name: str, shape: tuple[int, ...], element: Element) -> None:
        self.name = name
        self.element = element
        self.values: NDArray[Any] = np.zeros(shape, element.dtype)
        self.states: NDArray[np.uint8] = np.zeros(shape, np.uint8)
        self.cause = ""
        self.alive = True
        self.barriers: dict[int, Barrier] = {}


class View:
    """A part of an allocation as a `memdesc` value: arrays that share its memory."""

    __slots__ = ("allocation", "states", "values")

    def __init__(
        self, allocation: Allocation, values: NDArray[Any], states: NDArray[np.uint8]
    ) -> None:
        self.allocation = allocation
        self.values = values
        self.states = states

    @staticmethod
    def whole(allocation: Allocation) -> View:
        """All of an allocation."""
        return View(allocation, allocation.values, allocation.states)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def offset(self) -> int:
        """Elements between the allocation's first and this view's first."""
        own = self.states.__array_interface__["data"][0]
        return own - self.allocation.states.__array_interface__["data"][0]

    def index(self, position: int) -> View:
        """One element of the first dimension."""
        count = self.shape[0]
        if not 0 <= position < count:
            raise MemoryMisuse(f"index {position} of {self.allocation.name}, which holds {count}")
        return View(self.allocation, self.values[position], self.states[position])

    def window(self, offsets: Sequence[int], shape: Sequence[int]) -> View:
        """The part of this shape that begins at these offsets."""
        cut = tuple(slice(at, at + size) for at, size in zip(offsets, shape, strict=True))
        part = View(self.allocation, self.values[cut], self.states[cut])
        if part.shape != tuple(shape):
            raise MemoryMisuse(f"a window {tuple(shape)} at {tuple(offsets)} of {self.shape}")
        return part

    def transposed(self, order: Sequence[int]) -> View:
        """The dimensions in another order."""
        return View(self.allocation, self.values.transpose(order), self.states.transpose(order))

    def reshaped(self, shape: Sequence[int]) -> View:
        """The same elements in another shape. Raises MemoryMisuse where that needs a copy."""
        values, states = self.values.reshape(shape), self.states.reshape(shape)
        if not np.shares_memory(states, self.states):
            raise MemoryMisuse(f"a view of shape {self.shape} cannot be seen as {tuple(shape)}")
        return View(self.allocation, values, states)

    def read(self) -> Any:
        """The values. Elements that nobody wrote are poison, as are those written as poison: a
        pipelined loop reads ahead what it then does not use."""
        self.require_alive()
        wrong = self.states != WRITTEN
        if not wrong.any():
            return self.values.copy()
        unwritten = self.states == UNWRITTEN
        cause = self.allocation.cause
        if unwritten.any():
            at = [int(index[0]) for index in np.nonzero(unwritten)]
            cause = f"read of {self.allocation.name} at {at}, which nobody wrote"
        return PartialPoison(self.values.copy(), wrong, cause)

    def write(self, value: Any) -> None:
        """Overwrite all elements."""
        self.require_alive()
        if type(value) is Poison:
            self.states[...] = POISONED
            self.allocation.cause = value.cause
            return
        self.values[...] = values_of(value)
        self.states[...] = WRITTEN
        if type(value) is PartialPoison:
            self.states[mask_of(value)] = POISONED
            self.allocation.cause = value.cause

    def require_alive(self) -> None:
        """Raise MemoryMisuse after the allocation was freed."""
        if not self.allocation.alive:
            raise MemoryMisuse(f"{self.allocation.name} is used after it was freed")

    def __repr__(self) -> str:
        return f"{self.allocation.name}+{self.offset}{list(self.shape)}"
