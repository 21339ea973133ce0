"""A copy loop replaced by vector copies."""

from __future__ import annotations

from dataclasses import replace

from tilepass.ir.build import Builder
from tilepass.ir.cute import SEGMENTS, Layout, StaticTensor, build, flat, joined, view_at
from tilepass.ir.engine import ir
from tilepass.passes.cute.cute_vectorize_copies.copy_loops import Coordinates, CopyLoop, Side

# A tensor, and neither a mask nor what stands for the elements that are masked out.
_UNMASKED = {SEGMENTS: "array<i32: 1, 0, 0>"}


def emit_vectors(copy: CopyLoop, width: int) -> None:
    """Replace a loop by one load and one store for every `width` elements."""
    builder = Builder.before(copy.loop.operation)
    begins = [_begin(builder, side) for side in (copy.source, copy.destination)]
    for at in range(0, copy.count, width):
        source, destination = (
            view_at(builder, *begin, side.offsets[at], joined((Layout(width, 1),)))
            for begin, side in zip(begins, (copy.source, copy.destination), strict=True)
        )
        vector = f"vector<{width}x{copy.source.tensor.element}>"
        loaded = build(builder, "cute.memref.load_vec", [source], vector, _UNMASKED)
        builder.create("cute.memref.store_vec", [loaded, destination])
    for carried in copy.loop.carried:
        carried.result.replace_all_uses_with(carried.initial)
    copy.loop.operation.erase()


def _begin(builder: Builder, side: Side) -> tuple[ir.Value, StaticTensor]:
    """A pointer to a side's first element, and a tensor that begins there."""
    pointer = build(builder, "cute.get_iter", [side.value], side.tensor.pointer)
    if side.coordinates is None:
        return pointer, side.tensor
    first = replace(side.tensor, align=side.align)
    index = _index(builder, side.coordinates, side.tensor)
    unit = side.align * 8 // side.tensor.bits
    assumed = build(builder, "cute.assume", [index], f"!cute.i32<divby {unit}>")
    step = build(builder, "cute.make_int_tuple", [assumed], f'!cute.int_tuple<"?{{div={unit}}}">')
    return build(builder, "cute.add_offset", [pointer, step], first.pointer), first


def _index(builder: Builder, coordinates: Coordinates, tensor: StaticTensor) -> ir.Value:
    """The offset of the first element, in elements."""
    leaves, whole = coordinates.tensor.begin, coordinates.tensor.text
    place = build(
        builder, "cute.get_iter", [coordinates.value], f'!cute.arith_tuple_iter<"{whole}">'
    )
    tuple_ = build(builder, "cute.deref_arith_tuple_iter", [place], f'!cute.int_tuple<"{whole}">')
    types = [builder.type(f'!cute.int_tuple<"{leaf.text}">') for leaf in leaves]
    values = builder.create("cute.get_leaves", [tuple_], types).results
    total = builder.constant(0)
    for stride, dimension in zip(flat(tensor.layout.stride), coordinates.dimensions, strict=True):
        leaf = leaves[dimension]
        number = (
            builder.constant(leaf.constant)
            if leaf.constant is not None
            else build(builder, "cute.get_scalars", [values[dimension]], "i32")
        )
        scaled = builder.integer("muli", number, builder.constant(stride))
        total = builder.integer("addi", total, scaled)
    return total
