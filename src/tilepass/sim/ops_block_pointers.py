"""`tt`: pointers to blocks of a strided array (Triton 3.6; later ones rewrite them at once)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilepass.ir.layouts import TensorType, parse_type
from tilepass.sim.elements import Element, ValueType, element_of
from tilepass.sim.poison import require_defined
from tilepass.sim.scattered import gather, scatter
from tilepass.sim.site import Site, operation
from tilepass.sim.state import Frame, Step

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
