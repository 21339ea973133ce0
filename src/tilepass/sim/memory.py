"""Global memory: one buffer per array argument, far from each other in one address space."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilepass.sim.elements import Element
from tilepass.sim.faults import (
    Fault,
    MemoryMisuse,
    OutOfBounds,
    UndefinedBehaviour,
    UninitializedRead,
)
from tilepass.sim.poison import PartialPoison, Poison, require_defined, values_of
from tilepass.sim.races import Watch

# Buffer n lies in the middle of the n-th of these spans of addresses: an offset that an i32 can
# hold, times the largest element, does not reach another buffer.
_SPAN_BITS = 42
_HALF = 1 << (_SPAN_BITS - 1)

POISONED, WRITTEN = 1, 255
"""The states of a byte in a buffer's `defined`; 0 is that of one that nobody wrote."""


class Buffer:
    """Bytes with an address and a name, and their states in `defined`, None where all are written.

    `unit` is the size of the elements of the array that it holds.
    """

    def __init__(self, name: str, base: int, size: int, unit: int = 1) -> None:
        self.name = name
        self.base = base
        self.unit = unit
        self.cause = ""
        """Why there is poison in it."""
        self.bytes: NDArray[np.uint8] = np.zeros(size, np.uint8)
        self.defined: NDArray[np.uint8] | None = np.zeros(size, np.uint8)
        self._typed: dict[Any, NDArray[Any]] = {}

    def typed(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The bytes as elements, those that fill one only in part left out."""
        view = self._typed.get(dtype)
        if view is None:
            whole = len(self.bytes) // dtype.itemsize * dtype.itemsize
            view = self._typed[dtype] = self.bytes[:whole].view(dtype)
        return view

    def typed_defined(self, size: int) -> NDArray[Any] | None:
        """For each element of `size` bytes, -1 if all its bytes were written."""
        if self.defined is None:
            return None
        whole = len(self.defined) // size * size
        return self.defined[:whole].view(f"i{size}")

    def __repr__(self) -> str:
        return f"{self.name} ({len(self.bytes)} bytes)"


class GlobalMemory:
    """The buffers of a launch.

    With `keeps_poison` a value that is poison may be stored: what it leaves is marked, and may not
    be read. `watch` is told of every access.
    """

    def __init__(self, *, keeps_poison: bool = False, watch: Watch | None = None) -> None:
        self.buffers: list[Buffer] = []
        self.keeps_poison = keeps_poison
        self.watch = watch

    def allocate(self, name: str, size: int, unit: int = 1) -> Buffer:
        """A new buffer of `size` bytes that nobody wrote."""
        index = len(self.buffers)
        buffer = Buffer(name, ((index + 1) << _SPAN_BITS) + _HALF, size, unit)
        self.buffers.append(buffer)
        return buffer

    def add_array(self, name: str, array: NDArray[Any], defined: bool = True) -> Buffer:
        """A buffer that holds an array as it lies in memory, gaps between rows included.

        The gaps, and everything if `defined` is false, count as not written.
        """
        dtype = array.dtype
        buffer = self.allocate(name, _extent(array), dtype.itemsize)
        _strided(buffer.bytes, array)[...] = array
        if not defined:
            return buffer
        if _extent(array) == array.size * dtype.itemsize:
            buffer.defined = None
            return buffer
        assert buffer.defined is not None
        kind = np.dtype(f"i{dtype.itemsize}")
        np.ndarray(array.shape, kind, buffer.defined, 0, array.strides)[...] = -1
        return buffer

    @staticmethod
    def copy_back(buffer: Buffer, array: NDArray[Any]) -> None:
        """Write a buffer's contents into the array that it was made from."""
        array[...] = _strided(buffer.bytes, array)

    @staticmethod
    def poisoned(buffer: Buffer, array: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Which elements of the array that a buffer was made from hold poison, None for none."""
        if not buffer.cause or buffer.defined is None:
            return None
        states = np.ndarray(
            (*array.shape, array.itemsize), np.uint8, buffer.defined, 0, (*array.strides, 1)
        )
        return np.asarray((states == POISONED).any(-1))

    @contextmanager
    def atomic(self) -> Generator[None]:
        """What is accessed inside is accessed atomically."""
        if self.watch is None:
            yield
            return
        self.watch.atomic = True
        try:
            yield
        finally:
            self.watch.atomic = False

    def buffer_at(self, address: int) -> Buffer:
        """The buffer in whose span an address lies."""
        index = (address >> _SPAN_BITS) - 1
        if not 0 <= index < len(self.buffers):
            raise OutOfBounds(f"address {address:#x} belongs to no buffer")
        return self.buffers[index]

    def load(self, address: int, element: Element) -> Any:
        """One element."""
        buffer, index = self._locate(address, element, "reads")
        if buffer.defined is not None:
            marks = buffer.typed_defined(element.size)
            if marks is not None and marks[index] != -1:
                raise _unreadable(buffer, index, element)
        return buffer.typed(element.dtype)[index]

    def store(self, address: int, value: Any, element: Element) -> None:
        """One element."""
        buffer, index = self._locate(address, element, "writes")
        buffer.typed(element.dtype)[index] = value
        if buffer.defined is not None:
            marks = buffer.typed_defined(element.size)
            assert marks is not None
            marks[index] = -1

    def gather(self, addresses: NDArray[np.int64], element: Element) -> NDArray[Any]:
        """The elements at an array of addresses, one dimension."""
        result = np.empty(addresses.shape, element.dtype)
        for buffer, chosen, indices in self._split(addresses, element, "reads"):
            marks = buffer.typed_defined(element.size)
            if marks is not None and (unwritten := marks[indices] != -1).any():
                raise _unreadable(buffer, int(indices[unwritten][0]), element)
            result[chosen] = buffer.typed(element.dtype)[indices]
        return result

    def scatter(self, addresses: NDArray[np.int64], values: Any, element: Element) -> None:
        """Write elements; where an address occurs twice the last one stays."""
        for buffer, chosen, indices in self._split(addresses, element, "writes"):
            buffer.typed(element.dtype)[indices] = values[chosen]
            marks = buffer.typed_defined(element.size)
            if marks is not None:
                marks[indices] = -1

    def storable(self, value: Any, mask: Any = True) -> tuple[Any, Poison | PartialPoison | None]:
        """(what to write for a value, the value if poison is to be marked once it is written)."""
        if not self.keeps_poison:
            return require_defined(value, "a stored value", mask), None
        if type(value) is Poison:
            return 0, value
        return values_of(value), value if type(value) is PartialPoison else None

    def mark_poison(
        self, addresses: NDArray[np.int64], wrong: NDArray[np.bool_], element: Element, cause: str
    ) -> None:
        """What was written to some of these addresses was poison."""
        for buffer, _, indices in self._split(addresses[wrong], element, "writes"):
            if buffer.defined is None:
                buffer.defined = np.full(len(buffer.bytes), WRITTEN, np.uint8)
            marks = buffer.typed_defined(element.size)
            assert marks is not None
            marks[indices] = int.from_bytes([POISONED] * element.size, "little")
            buffer.cause = cause

    def _locate(self, address: int, element: Element, verb: str) -> tuple[Buffer, int]:
        buffer = self.buffer_at(address)
        index, rest = divmod(address - buffer.base, element.size)
        if rest:
            raise MemoryMisuse(f"{verb} {buffer.name} at byte {address - buffer.base}, which is "
                               f"not aligned for {element}")  # fmt: skip
        if not 0 <= index < len(buffer.typed(element.dtype)):
            raise _outside(buffer, index, element, verb)
        if self.watch is not None:
            self.watch.note(buffer, index, element.size, verb == "writes")
        return buffer, index

    def _split(
        self, addresses: NDArray[np.int64], element: Element, verb: str
    ) -> list[tuple[Buffer, Any, NDArray[np.int64]]]:
        """(buffer, which of the addresses, their indices in it) for each buffer concerned."""
        if not addresses.size:
            return []
        spans = addresses >> _SPAN_BITS
        parts: list[tuple[Buffer, Any, NDArray[np.int64]]] = []
        alone = bool((spans == spans[0]).all())
        for span in [int(spans[0])] if alone else sorted(set(spans.tolist())):
            buffer = self.buffer_at(span << _SPAN_BITS)
            chosen: Any = slice(None) if alone else spans == span
            offsets = addresses[chosen] - buffer.base
            indices, rest = np.divmod(offsets, element.size)
            if rest.any():
                raise MemoryMisuse(f"{verb} {buffer.name} at byte {int(offsets[rest != 0][0])}, "
                                   f"which is not aligned for {element}")  # fmt: skip
            count = len(buffer.typed(element.dtype))
            if int(indices.min()) < 0 or int(indices.max()) >= count:
                wrong = indices[(indices < 0) | (indices >= count)]
                raise _outside(buffer, int(wrong[0]), element, verb)
            if self.watch is not None:
                self.watch.note(buffer, indices, element.size, verb == "writes")
            parts.append((buffer, chosen, indices))
        return parts


def _outside(buffer: Buffer, index: int, element: Element, verb: str) -> OutOfBounds:
    count = len(buffer.typed(element.dtype))
    return OutOfBounds(
        f"{verb} element {index} of {buffer.name}, which holds {count} of type {element}"
    )


def _unreadable(buffer: Buffer, index: int, element: Element) -> Fault:
    assert buffer.defined is not None
    states = buffer.defined[index * element.size : (index + 1) * element.size]
    what = f"reads element {index} of {buffer.name}"
    if (states == POISONED).any():
        return UndefinedBehaviour(f"{what}, which was stored as poison ({buffer.cause})")
    return UninitializedRead(f"{what}, never written")


def _extent(array: NDArray[Any]) -> int:
    """Bytes from an array's first element to the end of its last; its strides are not negative."""
    if not array.size:
        return 0
    last = sum((size - 1) * step for size, step in zip(array.shape, array.strides, strict=True))
    return last + array.dtype.itemsize


def _strided(data: NDArray[np.uint8], array: NDArray[Any]) -> NDArray[Any]:
    """The bytes seen with an array's dtype, shape and strides."""
    return np.ndarray(array.shape, array.dtype, data, 0, array.strides)
