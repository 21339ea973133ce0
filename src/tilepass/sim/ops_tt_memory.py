"""`tt`: pointers, loads, stores, atomics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilepass.ir.layouts import TensorType, parse_type
from tilepass.sim.elements import Element, ValueType, element_of
from tilepass.sim.poison import elementwise, require_defined
from tilepass.sim.scattered import gather, scatter
from tilepass.sim.site import Site, operation
from tilepass.sim.state import Frame, Step


def pointee(site: Site, operand: int = 0) -> Element:
    """The type that a pointer operand points to."""
    text = site.operand_types[operand].of.pointee
    assert text is not None
    return element_of(text)


@operation("tt.addptr")
def add_pointer(site: Site) -> Step:
    size = pointee(site).size
    if site.arrays(site.result_type):
        return site.compute(elementwise(lambda a, b: a + b.astype(np.int64) * size))
    return site.compute(lambda a, b: a + b * size)


@operation("tt.load")
def load(site: Site) -> Step:
    """Masked-off elements are those of `other`; without one they are poison."""
    if is_block_pointer(site.operand_types[0]):
        return block_load(site)
    element, result = pointee(site), site.result
    (pointers,), mask, other = site.groups[0], site.optional(1), site.optional(2)
    shape = site.result_type.shape if site.result_type.form == "tensor" else None

    def scalar(frame: Frame) -> None:
        state = frame[0]
        if mask is not None and not frame[mask]:
            frame[result] = element.scalar(0) if other is None else frame[other]
            return
        address = frame[pointers] + 0
        value = state.effects.load(state.memory, address.__index__(), element)
        frame[result] = value.item() if element.kind != "float" else value

    def tensor(frame: Frame) -> None:
        filler = None if other is None else frame[other]
        chosen = None if mask is None else frame[mask]
        frame[result] = gather(frame, frame[pointers], chosen, filler, element)

    step = scalar if shape is None else tensor
    return _atomically(step) if site.flag("isVolatile") else step


def _atomically(step: Step) -> Step:
    """Programs may wait for each other by volatile loads."""

    def inside(frame: Frame) -> None:
        with frame[0].memory.atomic():
            step(frame)

    return inside


@operation("tt.store")
def store(site: Site) -> Step:
    if is_block_pointer(site.operand_types[0]):
        return block_store(site)
    element = pointee(site)
    pointers, stored = site.operands[:2]
    mask = site.operands[2] if len(site.operands) > 2 else None

    def scalar(frame: Frame) -> None:
        state = frame[0]
        if mask is not None and not frame[mask]:
            return
        value, poison = state.memory.storable(frame[stored])
        address = frame[pointers].__index__()
        state.effects.store(state.memory, address, value, element)
        if poison is not None:
            state.memory.mark_poison(np.array([address]), np.array([True]), element, poison.cause)

    def tensor(frame: Frame) -> None:
        chosen = None if mask is None else frame[mask]
        scatter(frame, frame[pointers], frame[stored], chosen, element)

    return tensor if site.operand_types[0].form == "tensor" else scalar


Combine = Callable[[Any, Any, Element], Any]


def _extremum(larger: bool, is_unsigned: bool) -> Combine:
    def combine(old: Any, new: Any, element: Element) -> Any:
        a, b = old, new
        if is_unsigned:
            mask = (1 << element.bits) - 1
            a, b = int(a) & mask, int(b) & mask
        first = a >= b
        return old if bool(first) == larger else new

    return combine


# The cases of tt.atomic_rmw's attribute `atomic_rmw_op`.
_ATOMICS: dict[int, Combine] = {
    1: lambda a, b, _: a & b,
    2: lambda a, b, _: a | b,
    3: lambda a, b, _: a ^ b,
    4: lambda a, b, element: element.scalar(int(a) + int(b)),
    5: lambda a, b, _: a + b,
    6: _extremum(larger=True, is_unsigned=False),
    7: _extremum(larger=False, is_unsigned=False),
    8: _extremum(larger=True, is_unsigned=True),
    9: _extremum(larger=False, is_unsigned=True),
    10: lambda a, b, _: b,
}


@operation("tt.atomic_rmw")
def atomic(site: Site) -> Step:
    """Elements one after the other, in order of their index."""
    combine = _ATOMICS[site.integer("atomic_rmw_op")]
    pointers, operand = site.operands[:2]
    mask = site.operands[2] if len(site.operands) > 2 else None
    element, type_, result = pointee(site), site.result_type, site.result

    def update(frame: Frame, address: int, value: Any) -> Any:
        state = frame[0]
        with state.memory.atomic():
            old = state.effects.load(state.memory, address, element)
            plain = old.item() if element.kind != "float" else old
            state.effects.store(state.memory, address, combine(plain, value, element), element)
        return plain

    def scalar(frame: Frame) -> None:
        if mask is not None and not frame[mask]:
            frame[result] = element.scalar(0)
            return
        value = require_defined(frame[operand], "an operand of an atomic operation")
        frame[result] = update(frame, frame[pointers].__index__(), value)

    def tensor(frame: Frame) -> None:
        chosen = np.ones(type_.shape, np.bool_) if mask is None else frame[mask]
        chosen = require_defined(chosen, "the mask of an atomic operation")
        addresses = require_defined(frame[pointers], "an address", chosen)
        values = require_defined(frame[operand], "an operand of an atomic operation", chosen)
        found = np.zeros(type_.shape, element.dtype)
        for index in zip(*np.nonzero(chosen), strict=True):
            value = values[index]
            value = value if element.kind == "float" else value.item()
            found[index] = update(frame, int(addresses[index]), value)
        frame[result] = found

    return tensor if type_.form == "tensor" else scalar


@operation("tt.atomic_cas")
def compare_and_swap(site: Site) -> Step:
    pointers, expected, wanted = site.operands
    element, type_, result = pointee(site), site.result_type, site.result

    def swap(frame: Frame, address: int, old: Any, new: Any) -> Any:
        state = frame[0]
        with state.memory.atomic():
            found = state.effects.load(state.memory, address, element)
            if found == old:
                state.effects.store(state.memory, address, new, element)
        return found if element.kind == "float" else found.item()

    def scalar(frame: Frame) -> None:
        old = require_defined(frame[expected], "the expected value")
        new = require_defined(frame[wanted], "the new value")
        frame[result] = swap(frame, frame[pointers].__index__(), old, new)

    def tensor(frame: Frame) -> None:
        addresses = require_defined(frame[pointers], "an address")
        old = require_defined(frame[expected], "the expected value")
        new = require_defined(frame[wanted], "the new value")
        found = np.zeros(type_.shape, element.dtype)
        for index in np.ndindex(type_.shape):
            found[index] = swap(frame, int(addresses[index]), old[index], new[index])
        frame[result] = found

    return tensor if type_.form == "tensor" else scalar


_PAD_WITH_NAN = 2


@dataclass(frozen=True)
class BlockPointer:
    """A place in a strided array: extents and strides in elements, offsets of the block."""

    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offsets: tuple[int, ...]

    def addresses(self, block: tuple[int, ...], element: Element) -> NDArray[np.int64]:
        """The address of every element of the block."""
        found = np.asarray(self.base, np.int64)
        for size, offset, stride in zip(block, self.offsets, self.strides, strict=True):
            index = np.arange(size, dtype=np.int64) + offset
            found = found[..., None] + index * stride * element.size
        return found

    def inside(self, block: tuple[int, ...], checked: tuple[int, ...]) -> NDArray[np.bool_]:
        """Which elements lie inside the array in the dimensions that are checked."""
        found = np.ones(block, np.bool_)
        for axis in checked:
            index = np.arange(block[axis]) + self.offsets[axis]
            within = (index >= 0) & (index < self.shape[axis])
            found &= within.reshape([-1 if each == axis else 1 for each in range(len(block))])
        return found


def is_block_pointer(type_: ValueType) -> bool:
    """Whether values of a type point to blocks."""
    pointee = type_.element.pointee if type_.element else None
    return pointee is not None and pointee.startswith("tensor<")


def _block(type_: ValueType) -> tuple[tuple[int, ...], Element]:
    view = parse_type(type_.of.pointee)
    assert isinstance(view, TensorType)
    return view.shape, element_of(view.element)


def _checked(site: Site) -> tuple[int, ...]:
    return site.integers("boundaryCheck") if site.attribute("boundaryCheck") is not None else ()


@operation("tt.make_tensor_ptr")
def make(site: Site) -> Step:
    rank, result = len(_block(site.result_type)[0]), site.result
    base, *rest = site.operands

    def step(frame: Frame) -> None:
        numbers = [require_defined(frame[slot], "a part of a block pointer") for slot in rest]
        frame[result] = BlockPointer(
            require_defined(frame[base], "the address of a block pointer"),
            tuple(numbers[:rank]),
            tuple(numbers[rank : 2 * rank]),
            tuple(numbers[2 * rank :]),
        )

    return step


@operation("tt.advance")
def advance(site: Site) -> Step:
    pointer, *steps = site.operands
    result = site.result

    def step(frame: Frame) -> None:
        old = frame[pointer]
        by = [require_defined(frame[slot], "an offset") for slot in steps]
        moved = tuple(a + b for a, b in zip(old.offsets, by, strict=True))
        frame[result] = replace(old, offsets=moved)

    return step


def block_load(site: Site) -> Step:
    """`tt.load` of a block; what is outside is padded, or poison without a padding."""
    (block, element), checked = _block(site.operand_types[0]), _checked(site)
    (pointer,), result = site.groups[0], site.result
    padding = None
    if site.attribute("padding") is not None:
        with_nan = site.integer("padding") == _PAD_WITH_NAN
        padding = np.full(block, np.nan if with_nan else 0, element.dtype)

    def step(frame: Frame) -> None:
        addresses = frame[pointer].addresses(block, element)
        inside: Any = frame[pointer].inside(block, checked)
        frame[result] = gather(frame, addresses, inside, padding, element)

    return step


def block_store(site: Site) -> Step:
    """`tt.store` of a block; what is outside is left out."""
    (block, element), checked = _block(site.operand_types[0]), _checked(site)
    pointer, stored = site.operands[:2]

    def step(frame: Frame) -> None:
        addresses = frame[pointer].addresses(block, element)
        inside: Any = frame[pointer].inside(block, checked)
        scatter(frame, addresses, frame[stored], inside, element)

    return step
