"""Tensor descriptors: blocks of a strided array, clipped at its edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilepass.sim.effects import Effects
from tilepass.sim.elements import Element
from tilepass.sim.memory import GlobalMemory
from tilepass.sim.poison import mask_of, require_defined


@dataclass(frozen=True)
class Descriptor:
    """An array in global memory: `strides` in elements; `fill` is read outside of it."""

    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: Element
    fill: float = 0.0

    def _addresses(
        self, coordinates: Sequence[int], block: Sequence[int]
    ) -> tuple[tuple[slice, ...], NDArray[np.int64]]:
        """(the part of the block inside the array, the addresses of its elements)."""
        starts = [max(0, -at) for at in coordinates]
        ends = [
            min(size, extent - at)
            for size, extent, at in zip(block, self.shape, coordinates, strict=True)
        ]
        inside = tuple(
            slice(start, max(start, end)) for start, end in zip(starts, ends, strict=True)
        )
        addresses = np.asarray(self.base, np.int64)
        for axis, part in enumerate(inside):
            index = np.arange(part.start, part.stop, dtype=np.int64) + coordinates[axis]
            steps = index * self.strides[axis] * self.element.size
            addresses = addresses[..., None] + steps
        return inside, addresses

    def load(
        self,
        memory: GlobalMemory,
        effects: Effects,
        coordinates: Sequence[int],
        block: Sequence[int],
    ) -> NDArray[Any]:
        """The block at these coordinates, filled outside the array."""
        inside, addresses = self._addresses(coordinates, block)
        result = np.full(block, self.fill, self.element.dtype)
        values = effects.load(memory, np.ravel(addresses), self.element)
        result[inside] = values.reshape(addresses.shape)
        return result

    def store(
        self, memory: GlobalMemory, effects: Effects, coordinates: Sequence[int], values: Any
    ) -> None:
        """Write the part of a block that is inside the array."""
        inside, addresses = self._addresses(coordinates, values.shape)
        wanted = np.zeros(values.shape, np.bool_)
        wanted[inside] = True
        plain, poison = memory.storable(values, wanted)
        chosen = np.ravel(np.broadcast_to(plain, values.shape)[inside])
        effects.store(memory, np.ravel(addresses), chosen, self.element)
        if poison is not None:
            wrong = np.ravel(mask_of(values)[inside])
            memory.mark_poison(np.ravel(addresses), wrong, self.element, poison.cause)

    def update(
        self,
        memory: GlobalMemory,
        effects: Effects,
        coordinates: Sequence[int],
        values: Any,
        combine: Callable[[Any, Any], Any],
    ) -> None:
        """Combine a block with what the array holds, element by element."""
        inside, addresses = self._addresses(coordinates, values.shape)
        flat = np.ravel(addresses)
        new = np.ravel(require_defined(values, "a stored value")[inside])
        with memory.atomic():
            old = effects.load(memory, flat, self.element)
            combined = np.asarray(combine(old, new)).astype(self.element.dtype)
            effects.store(memory, flat, combined, self.element)

    def load_rows(
        self,
        memory: GlobalMemory,
        effects: Effects,
        rows: NDArray[Any],
        column: int,
        width: int,
    ) -> NDArray[Any]:
        """The rows with these indices, `width` columns from `column` on."""
        found = [self.load(memory, effects, (int(row), column), (1, width)) for row in rows]
        return np.concatenate(found)

    def store_rows(
        self, memory: GlobalMemory, effects: Effects, rows: NDArray[Any], column: int, values: Any
    ) -> None:
        """Write rows; indices outside the array write nothing."""
        plain = require_defined(values, "a stored value")
        for row, value in zip(rows, plain, strict=True):
            self.store(memory, effects, (int(row), column), value[None, :])


def reduction(kind: int) -> Callable[[Any, Any], Any]:
    """The combination that a case of DescriptorReduceKind stands for."""
    table: dict[int, Callable[[Any, Any], Any]] = {
        1: np.add,
        2: np.minimum,
        3: np.maximum,
        6: np.bitwise_and,
        7: np.bitwise_or,
        8: np.bitwise_xor,
    }
    return table[kind]
