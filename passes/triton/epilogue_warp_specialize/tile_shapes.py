"""The same tile computed by parts: what types and layouts become at another shape.

A `Window` is a part of the tile that a kernel computes: half of it for one of two consumers, or one
sub-tile of an epilogue. Layouts depend on the window's size and on the number of warps that hold
it: `Layouts` rewrites each encoding in one way for the whole slice of code, so that two values that
had the same layout before have the same afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from tilepass.ir.engine import ir
from tilepass.ir.layouts import (
    Blocked,
    DotOperand,
    Encoding,
    NvidiaMma,
    NvmmaShared,
    Slice,
    TensorDescType,
    TensorType,
    parse_type,
)

Axes = tuple[int | None, ...]
"""For each dimension of a value the dimension of the tile that it runs along (0: M, 1: N), None
where it runs along neither and stays whole. `()` is a scalar."""

# A wgmma instruction is 64 rows by 8 to 256 columns, 16 rows to each of 4 warps (PTX ISA,
# wgmma.mma_async).
WGMMA_WARPS = 4
WGMMA_ROWS = 64
_WGMMA_COLUMNS = 256
# TMA and wgmma know swizzles of these widths in bytes (PTX ISA, tensor swizzling modes).
_SWIZZLES = (128, 64, 32)


@dataclass(frozen=True)
class Window:
    """A part of a tile: `size` elements from `offset`, both along M and N."""

    offset: tuple[int, int]
    size: tuple[int, int]

    @classmethod
    def whole(cls, tile: tuple[int, int]) -> Window:
        """All of a tile."""
        return cls((0, 0), tile)

    def split(self, axis: int, parts: int) -> tuple[Window, ...]:
        """Equal parts along an axis; `parts` divides the size."""
        size = self.size[axis] // parts
        return tuple(
            Window(_with(self.offset, axis, self.offset[axis] + size * index), narrowed)
            for index in range(parts)
            for narrowed in [_with(self.size, axis, size)]
        )

    def shape(self, shape: Sequence[int], axes: Axes) -> tuple[int, ...]:
        """What is in the window of a value of this shape."""
        return tuple(
            extent if axis is None else self.size[axis]
            for extent, axis in zip(shape, axes, strict=True)
        )

    def start(self, axes: Axes) -> tuple[int, ...]:
        """Where the window begins in each dimension of a value."""
        return tuple(0 if axis is None else self.offset[axis] for axis in axes)


def _with(pair: tuple[int, int], index: int, value: int) -> tuple[int, int]:
    return (value, pair[1]) if index == 0 else (pair[0], value)


class LayoutError(ValueError):
    """A layout that has no counterpart at another shape or number of warps."""


class Layouts:
    """The encodings of a slice of code, fitted to a window and a number of warps.

    `types` are the tensors of the slice with the axes that they are needed along. Encodings stay as
    they are where neither the shape nor the number of warps changes.
    """

    def __init__(
        self, types: Iterable[tuple[TensorType, Axes]], window: Window, warps: int
    ) -> None:
        self._warps = warps
        self._window = window
        # The largest tensor of each layout, before and after.
        self._shapes: dict[Encoding, tuple[list[int], list[int]]] = {}
        self._fitted: dict[Encoding, Encoding] = {}
        self._parts: dict[tuple[ir.Type, Axes, Encoding | None], ir.Type] = {}
        for type_, axes in types:
            if type_.encoding is not None:
                shape = list(window.shape(type_.shape, axes))
                self._note(type_.encoding, list(type_.shape), shape)

    def type(self, type_: TensorType, axes: Axes) -> TensorType:
        """A tensor's type in the window. Raises LayoutError."""
        encoding = None if type_.encoding is None else self.encoding(type_.encoding)
        return TensorType(self._window.shape(type_.shape, axes), type_.element, encoding)

    def part(self, type_: ir.Type, axes: Axes, encoding: Encoding | None = None) -> ir.Type:
        """The same of a tensor's MLIR type, with the given encoding if there is one; each is parsed
        once, for all pieces. Raises LayoutError."""
        key = type_, axes, encoding
        if key not in self._parts:
            view = parse_type(type_)
            assert isinstance(view, TensorType)
            part = self.type(view, axes)
            part = part if encoding is None else replace(part, encoding=encoding)
            self._parts[key] = ir.Type.parse(str(part), type_.context)
        return self._parts[key]

    def encoding(self, encoding: Encoding) -> Encoding:
        """An encoding's counterpart. Raises LayoutError."""
        if encoding not in self._fitted:
            self._fitted[encoding] = self._fit(encoding)
        return self._fitted[encoding]

    def _fit(self, encoding: Encoding) -> Encoding:
        if isinstance(encoding, Slice | DotOperand):
            return replace(encoding, parent=self.encoding(encoding.parent))
        before, after = self._shapes[encoding]
        if isinstance(encoding, Blocked):
            if before == after and prod(encoding.warps_per_cta) == self._warps:
                return encoding
            return fitted_blocked(encoding, after, self._warps)
        if isinstance(encoding, NvidiaMma) and encoding.version_major == 3:
            return fitted_mma(encoding, after, self._warps)
        raise LayoutError(f"the layout {encoding} cannot be given another shape")

    def _note(self, encoding: Encoding, *shapes: list[int]) -> None:
        """A tensor's shape before and after."""
        if isinstance(encoding, Slice):
            dim = encoding.dim
            shapes = tuple([*shape[:dim], 1, *shape[dim:]] for shape in shapes)
        if isinstance(encoding, Slice | DotOperand):
            self._note(encoding.parent, *shapes)
            return
        known = self._shapes.get(encoding, shapes)
        before, after = (list(map(max, *pair)) for pair in zip(known, shapes, strict=True))
        self._shapes[encoding] = before, after


def fitted_blocked(layout: Blocked, shape: Sequence[int], warps: int) -> Blocked:
    """A blocked layout for another shape: as before along each dimension, as far as that is filled;
    what is left over of lanes and warps goes to the slowest dimensions that have room."""
    size = [min(pair) for pair in zip(layout.size_per_thread, shape, strict=True)]
    room = [extent // each for extent, each in zip(shape, size, strict=True)]
    lanes = _spread(layout.threads_per_warp, room, layout.order)
    room = [max(1, extent // each) for extent, each in zip(room, lanes, strict=True)]
    spread = _spread(layout.warps_per_cta, room, layout.order, warps)
    return replace(
        layout,
        size_per_thread=tuple(size),
        threads_per_warp=lanes,
        warps_per_cta=spread,
    )


def _spread(
    wanted: Sequence[int], room: Sequence[int], order: Sequence[int], total: int | None = None
) -> tuple[int, ...]:
    """`total` (by default as many as before) units over the dimensions, `order` fastest first."""
    left = prod(wanted) if total is None else total
    given = [1] * len(wanted)
    for limits in (wanted, room):
        for dim in reversed(order) if limits is room else order:
            limit = min(limits[dim], room[dim])
            while left > 1 and given[dim] * 2 <= limit:
                given[dim] *= 2
                left //= 2
    given[order[-1]] *= left
    return tuple(given)


def fitted_mma(layout: NvidiaMma, shape: Sequence[int], warps: int) -> NvidiaMma:
    """A wgmma accumulator of another shape, rows over the warps. Raises LayoutError."""
    if prod(layout.warps_per_cta) == warps and layout.instr_shape[1] <= shape[1]:
        return layout
    if shape[0] % WGMMA_ROWS or warps % WGMMA_WARPS:
        raise LayoutError(
            f"wgmma computes {WGMMA_ROWS} rows with {WGMMA_WARPS} warps: "
            f"{shape[0]} rows and {warps} warps are no multiple of that"
        )
    rows, columns = layout.warps_per_cta
    if prod(layout.warps_per_cta) != warps:
        rows = min(warps, max(WGMMA_WARPS, shape[0] // (WGMMA_ROWS // WGMMA_WARPS)))
        columns = warps // rows
    widest = layout.instr_shape[1] * layout.warps_per_cta[1] // columns
    m, _, k = layout.instr_shape
    instruction = (m, min(widest, shape[1] // columns, _WGMMA_COLUMNS), k)
    return replace(layout, warps_per_cta=(rows, columns), instr_shape=instruction)


def descriptor_of_box(type_: TensorDescType, box: Sequence[int]) -> TensorDescType:
    """The type of a descriptor of the same array that moves other boxes; its swizzle is no wider
    than a row of the box. Raises LayoutError."""
    encoding = type_.block.encoding
    if tuple(box) == type_.block.shape:
        return type_
    if isinstance(encoding, NvmmaShared):
        encoding = _fitted_swizzle(encoding, box)
    elif encoding is not None:
        raise LayoutError(f"a descriptor with the layout {encoding} cannot move other boxes")
    return replace(type_, block=TensorType(tuple(box), type_.block.element, encoding))


def _fitted_swizzle(encoding: NvmmaShared, box: Sequence[int]) -> NvmmaShared:
    fastest = box[0] if encoding.transposed else box[-1]
    row = fastest * encoding.element_bit_width // 8
    width = next((width for width in _SWIZZLES if width <= row), 0)
    return replace(encoding, swizzling_byte_width=min(width, encoding.swizzling_byte_width))
