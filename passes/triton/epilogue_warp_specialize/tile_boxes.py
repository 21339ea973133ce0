"""Descriptors of another box: half a tile, or one piece of an epilogue.

The launcher builds each tensor map from the types of the compiled kernel's arguments, so that a
descriptor argument may be given another type where every use of it is rewritten; the same holds for
descriptors that the kernel makes itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilepass.ir.build import set_attribute
from tilepass.ir.engine import Operation, ir, plain
from tilepass.ir.layouts import TensorDescType, element_bits, parse_type
from tilepass.ir.loops import defining_operation
from tilepass.passes.triton.epilogue_warp_specialize.description import (
    PersistentNest,
    Refusal,
    once,
)
from tilepass.passes.triton.epilogue_warp_specialize.tile_axes import TileSlice
from tilepass.passes.triton.epilogue_warp_specialize.tile_shapes import (
    LayoutError,
    Window,
    descriptor_of_box,
)

Boxes = Mapping[ir.Value, TensorDescType]
"""Descriptors and the types that they shall have."""

# A row of a box is a multiple of so many bytes (CUDA driver API, cuTensorMapEncodeTiled).
_ROW_BYTES = 16


@once
def boxes_of(nest: PersistentNest, source: TileSlice, size: tuple[int, int]) -> Boxes | Refusal:
    """The types with which the epilogue's descriptors move one window, or why they cannot."""
    del nest
    window = Window.whole(size)
    found: dict[ir.Value, TensorDescType] = {}
    for needed in source.needed:
        if needed.operation.name not in ("tt.descriptor_load", "tt.descriptor_store"):
            continue
        descriptor = plain(needed.operation.operands[0])
        before = parse_type(descriptor.type)
        assert isinstance(before, TensorDescType)
        try:
            after = descriptor_of_box(before, window.shape(before.block.shape, needed.axes))
        except LayoutError as error:
            return Refusal(needed.operation, str(error))
        if found.setdefault(descriptor, after) != after:
            return Refusal(needed.operation, "a descriptor has boxes of several shapes")
        if after.block.shape != before.block.shape:
            wrong = _too_narrow(needed.operation, after)
            wrong = wrong or _used_elsewhere(source, needed.operation)
            if wrong is not None:
                return wrong
    return found


def retype(boxes: Boxes, triton_version: tuple[int, ...], function: Operation) -> None:
    """Give the descriptors their types."""
    for descriptor, view in boxes.items():
        descriptor.set_type(ir.Type.parse(view.spell(triton_version), function.context))
    arguments = ", ".join(str(each.type) for each in function.regions[0].blocks[0].arguments)
    before = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    results = ", ".join(map(str, before.results))
    set_attribute(function, "function_type", f"({arguments}) -> ({results})")


def _too_narrow(operation: Operation, after: TensorDescType) -> Refusal | None:
    row = after.block.shape[-1] * element_bits(after.block.element) // 8
    if row >= _ROW_BYTES:
        return None
    return Refusal(operation, f"a row of {row} bytes is too short for TMA")


def _used_elsewhere(source: TileSlice, operation: Operation) -> Refusal | None:
    """Every use must be one that the epilogue's rewrite changes."""
    descriptor = operation.operands[0]
    moving = {needed.operation for needed in source.needed}
    for use in descriptor.uses:
        if use.owner.operation not in moving:
            return Refusal(
                use.owner.operation,
                "the descriptor of a store or tile load is used otherwise too: it cannot move "
                "parts of a tile",
            )
    maker = defining_operation(descriptor)
    if maker is not None and maker.name != "tt.make_tensor_descriptor":
        return Refusal(maker, f"a descriptor that comes from {maker.name} keeps its box")
    return None
