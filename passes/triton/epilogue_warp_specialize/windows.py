"""Windows of a tile: what types and layouts become at another shape.

Layouts depend on the window's size and on the number of warps that hold
it: `Layouts` rewrites each encoding in one way for the whole slice of code, so that two values that
had the same layout before have the same afterwards.

An accumulator's columns are cut in two, and again, without moving a register:

Before:  %acc : tensor<64x256xf32, #mma>                         // #mma: wgmma, 64x256
After:   %0 = tt.reshape %acc : tensor<64x256> -> tensor<64x2x128>
         %1 = tt.trans %0 {order = [0, 2, 1]}
         %left, %right = tt.split %1 : tensor<64x128x2> -> tensor<64x128>
         %x = ttg.convert_layout %left : tensor<64x128xf32, #linear> -> tensor<64x128xf32, #half>
Sound always. It costs nothing: `#linear` and `#half`, wgmma of half the columns, are the same
layout, so that the conversion is the identity and all else renames registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tilepass.ir.build import Builder
from tilepass.ir.engine import ir
from tilepass.ir.layouts import (
    Bases,
    Blocked,
    DotOperand,
    Encoding,
    Linear,
    NvidiaMma,
    NvmmaShared,
    Slice,
    TensorDescType,
    TensorType,
    parse_type,
)

M, N = 0, 1


@dataclass(frozen=True)
class Columns:
    """Some of the `of` columns of the tile: `size` of them, from `first` on. What the kernel itself
    has cut from the tile runs along them."""

    first: int
    size: int
    of: int

    def half(self, index: int) -> Columns:
        """The left (0) or the right (1) half of these."""
        size = self.size // 2
        return Columns(self.first + index * size, size, self.of)

    @property
    def index(self) -> int:
        """Which half of a wider block these are: 0 or 1."""
        return self.first // self.size % 2

    @property
    def doubled(self) -> int | Columns:
        """The block that these are a half of; `N` where that is all of the tile."""
        size = 2 * self.size
        return N if size == self.of else Columns(self.first - self.index * self.size, size, self.of)


Axes = tuple[int | Columns | None, ...]
"""For each dimension of a value the dimension of the tile that it runs along (0: M, 1: N, or part
of it), None where it runs along neither and stays whole. `()` is a scalar."""

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
            extent if axis is None else self._extent(axis)
            for extent, axis in zip(shape, axes, strict=True)
        )

    def _extent(self, axis: int | Columns) -> int:
        return min(self.size[N], axis.size) if isinstance(axis, Columns) else self.size[axis]

    def start(self, axes: Axes) -> tuple[int, ...]:
        """Where the window begins in each dimension of a value."""
        return tuple(0 if axis is None else self._begin(axis) for axis in axes)

    def _begin(self, axis: int | Columns) -> int:
        return self.offset[N] - axis.first if isinstance(axis, Columns) else self.offset[axis]

    def holds(self, axes: Axes) -> bool:
        """Whether a value that runs along these is in the window: all that is cut from the tile
        elsewhere is not."""
        blocks = (axis for axis in axes if isinstance(axis, Columns))
        return all(axis.first <= self.offset[N] < axis.first + axis.size for axis in blocks)

    def cuts(self, axes: Axes) -> bool:
        """Whether the window is neither in the columns that a value runs along, nor beside them."""
        first, end = self.offset[N], self.offset[N] + self.size[N]
        blocks = (axis for axis in axes if isinstance(axis, Columns))
        return any(
            first < axis.first + axis.size
            and axis.first < end
            and not (axis.first <= first and end <= axis.first + axis.size)
            for axis in blocks
        )


def _with(pair: tuple[int, int], index: int, value: int) -> tuple[int, int]:
    return (value, pair[1]) if index == 0 else (pair[0], value)


class LayoutError(ValueError):
    """A layout that has no counterpart at another shape or number of warps."""


class Layouts:
    """The encodings of a slice of code, fitted to a window and a number of warps.

    `types` are the tensors of the slice with the axes that they are needed along. Encodings stay as
    they are where neither the shape nor the number of warps changes. Those in `like` become what
    others do.
    """

    def __init__(
        self,
        types: Iterable[tuple[TensorType, Axes]],
        window: Window,
        warps: int,
        like: Mapping[Encoding, Encoding] | None = None,
    ) -> None:
        self._warps = warps
        self._like = like or {}
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
        encoding = self._like.get(encoding, encoding)
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
        encoding = self._like.get(encoding, encoding)
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
            f"{shape[0]} rows and {warps} warps are not multiples of that"
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
    """The type of a descriptor of the same array that moves other boxes; its swizzle is not a wider
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


# A group of 4 lanes holds 8 columns of a row, 2 in each lane (PTX ISA, the accumulator of
# wgmma.m64nNk16): below that a cut would go through a lane's registers or between lanes.
_FEWEST_COLUMNS = 8


def column_parts(builder: Builder, accumulator: ir.Value, parts: int) -> list[ir.Value]:
    """`parts` (a power of two) equal blocks of columns, from left to right.

    Each has the layout that `fitted_mma` gives to its shape. Raises LayoutError.
    """
    type_ = parse_type(accumulator.type)
    assert isinstance(type_, TensorType)
    return _cut(builder, accumulator, _cuts(type_, parts))


def column_part(type_: TensorType, parts: int) -> TensorType:
    """The type of each of so many blocks of columns. Raises LayoutError where `column_parts`
    does."""
    cuts = _cuts(type_, parts)
    return cuts[-1].half if cuts else type_


@dataclass(frozen=True)
class _Cut:
    """The types on the way from an accumulator to one of its halves (see above)."""

    apart: TensorType
    turned: TensorType
    part: TensorType
    half: TensorType

    @classmethod
    def of(cls, type_: TensorType) -> _Cut:
        """Those of an accumulator's type. Raises LayoutError."""
        layout, (rows, columns) = type_.encoding, type_.shape
        if not isinstance(layout, NvidiaMma) or layout.warps_per_cta[1] != 1:
            raise LayoutError(f"the accumulator {type_} cannot be cut into columns")
        half = columns // 2
        if half < _FEWEST_COLUMNS:
            raise LayoutError(f"{columns} columns are too few to be cut in two")
        bases = _linear(layout, rows, columns)

        def pairs(of: Bases) -> Bases:
            return tuple((row, column // half, column % half) for row, column in of)

        def turned(of: Bases) -> Bases:
            return tuple((row, inner, outer) for row, outer, inner in pairs(of))

        def kept(of: Bases) -> Bases:
            return tuple((row, column) for row, column in of if column < half)

        def typed(shape: tuple[int, ...], change: Callable[[Bases], Bases]) -> TensorType:
            register, lane, warp = map(change, (bases.register, bases.lane, bases.warp))
            changed = replace(bases, register=register, lane=lane, warp=warp)
            return TensorType(shape, type_.element, changed)

        fitted = fitted_mma(layout, (rows, half), layout.warps_per_cta[0])
        return cls(
            typed((rows, 2, half), pairs),
            typed((rows, half, 2), turned),
            typed((rows, half), kept),
            TensorType((rows, half), type_.element, fitted),
        )


def _cuts(type_: TensorType, parts: int) -> list[_Cut]:
    cuts: list[_Cut] = []
    while 2 ** len(cuts) < parts:
        cuts.append(_Cut.of(cuts[-1].half if cuts else type_))
    return cuts


def _cut(builder: Builder, value: ir.Value, cuts: Sequence[_Cut]) -> list[ir.Value]:
    """The blocks that a value falls into by these cuts, one after the other."""
    if not cuts:
        return [value]
    first, *others = cuts
    apart = builder.create("tt.reshape", [value], [builder.type(first.apart)])
    order = {"order": "array<i32: 0, 2, 1>"}
    turn = builder.create("tt.trans", apart.results, [builder.type(first.turned)], order)
    split = builder.create("tt.split", turn.results, [builder.type(first.part)] * 2)
    half = builder.type(first.half)
    halves = [builder.convert_layout(each, half) for each in split.results]
    return [part for each in halves for part in _cut(builder, each, others)]


def _linear(layout: NvidiaMma, rows: int, columns: int) -> Linear:
    """A wgmma accumulator's layout by basis vectors: 2 columns to a lane, 4 lanes and then 8 rows
    to a group, 16 rows to a warp (PTX ISA, the accumulator of wgmma.m64nNk16)."""
    instruction = layout.instr_shape[1]
    warps = layout.warps_per_cta[0]
    register = [(0, 1), (8, 0), *((0, n) for n in _powers(8, min(instruction, columns)))]
    # Beyond one instruction, columns come before rows.
    register += [(0, n) for n in _powers(instruction, columns)]
    register += [(m, 0) for m in _powers(16 * warps, rows)]
    lane = [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]
    warp = [(m, 0) for m in _powers(16, 16 * warps)]
    return Linear(register=tuple(register), lane=tuple(lane), warp=tuple(warp), block=())


def _powers(first: int, end: int) -> list[int]:
    """first, 2 first, 4 first, ... below end."""
    found: list[int] = []
    while first < end:
        found.append(first)
        first *= 2
    return found
