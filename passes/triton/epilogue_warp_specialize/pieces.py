"""An epilogue in pieces: how a consumer takes its window of the tile through small buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilepass.ir.build_async import AsyncBuilder, buffer_of
from tilepass.ir.engine import Operation, ir, plain
from tilepass.ir.layouts import TensorType
from tilepass.ir.loops import defining_operation
from tilepass.ir.walks import users
from tilepass.passes.triton.epilogue_warp_specialize.description import (
    PersistentNest,
    Refusal,
    bytes_of,
    in_memory,
    tensor_type,
)
from tilepass.passes.triton.epilogue_warp_specialize.footprint import array_bytes, ring_bytes
from tilepass.passes.triton.epilogue_warp_specialize.match_descriptors import varying_descriptor
from tilepass.passes.triton.epilogue_warp_specialize.rings import (
    Cursor,
    Ring,
    allocate_barriers,
    allocate_ring,
    hand_back,
)
from tilepass.passes.triton.epilogue_warp_specialize.rows import Rows, rows_of
from tilepass.passes.triton.epilogue_warp_specialize.subtile import column_part, column_parts
from tilepass.passes.triton.epilogue_warp_specialize.tile_axes import (
    ACCUMULATOR,
    CONVERT,
    Needed,
    TileSlice,
    is_spread,
)
from tilepass.passes.triton.epilogue_warp_specialize.tile_boxes import Boxes, boxes_of
from tilepass.passes.triton.epilogue_warp_specialize.tile_clone import (
    TileClone,
    layouts_for,
    shifted,
    unread,
)
from tilepass.passes.triton.epilogue_warp_specialize.tile_shapes import (
    LayoutError,
    Layouts,
    Window,
)
from tilepass.passes.triton.epilogue_warp_specialize.tiles import Tile

_COLUMNS = 1
# No array has so many rows and so many columns. A negative coordinate would do by PTX's text, but
# TMA stores with one failed on an H200.
_OUTSIDE = 1 << 30
_CONVERSIONS = frozenset(
    ("arith.truncf", "arith.extf", "tt.fp_to_fp", CONVERT, "tt.descriptor_store")
)


@dataclass(frozen=True)
class Pieces:
    """A consumer's window of the tile in equal pieces along N, and what moves one of them."""

    nest: PersistentNest
    source: TileSlice
    windows: tuple[Window, ...]
    layouts: Layouts
    boxes: Boxes
    rows: Rows

    @cached_property
    def accumulator_type(self) -> TensorType:
        """A piece of the dot's result."""
        return self.layouts.type(tensor_type(self.source.accumulator), ACCUMULATOR)

    @cached_property
    def only_converts(self) -> bool:
        """Whether the dot's result is stored as it is, but for its type."""
        names = {each.operation.name for each in self.source.needed}
        return names <= _CONVERSIONS

    @cached_property
    def cloned(self) -> list[Needed]:
        """What is computed for each piece."""
        staged = {store.operation: store.value for store in self.nest.tma_stores}
        others = self.rows.computed | unread(self.source, staged)
        return [each for each in self.source.needed if each not in others]

    @cached_property
    def load_blocks(self) -> list[TensorType]:
        """What a piece needs of each tile load."""
        return [in_memory(self.boxes[plain(each.descriptor)]) for each in self.nest.tile_loads]

    @cached_property
    def store_blocks(self) -> list[TensorType]:
        """What a piece brings to each TMA store."""
        return [in_memory(self.boxes[plain(each.descriptor)]) for each in self.nest.tma_stores]

    def buffer_bytes(self, buffers: int, in_place: bool) -> int:
        """Shared memory for so many pieces of every load and store."""
        loads = sum(ring_bytes([block], buffers) for block in self.load_blocks)
        stores = 0 if in_place else sum(array_bytes(block, buffers) for block in self.store_blocks)
        return loads + stores + self.rows.bytes

    @cached_property
    def can_be_in_place(self) -> bool:
        """Whether what a piece stores can take the place of what it loads: there is one TMA load
        and one TMA store, of equal blocks, in this order."""
        loads, stores = self.nest.tile_loads, self.nest.tma_stores
        if len(loads) != 1 or len(stores) != 1 or self.load_blocks != self.store_blocks:
            return False
        ends = (loads[0].operation, stores[0].operation)
        found = [each for each in self.source.needed if each.operation in ends]
        return [each.operation for each in found] == [*ends] and found[0].axes == found[1].axes

    @cached_property
    def scratch_bytes(self) -> int:
        """What the largest change of layout in a piece takes at most."""
        return max((self._scratch_of(each) for each in self.source.needed), default=0)

    def _scratch_of(self, needed: Needed) -> int:
        operation = needed.operation
        if operation.name != CONVERT or _is_read_so(operation, self.nest):
            return 0
        type_ = self.layouts.type(tensor_type(operation.results[0]), needed.axes)
        if is_spread(operation.operands[0]):
            # A row or a column.
            type_ = replace(type_, shape=(max(type_.shape),))
        return bytes_of(type_)


def pieces_of(
    nest: PersistentNest, source: TileSlice, window: Window, count: int, warps: int
) -> Pieces | Refusal:
    """A window's pieces on so many warps, or what stands against them."""
    if window.size[_COLUMNS] % count:
        return Refusal(nest.dot, f"{window.size[_COLUMNS]} columns in {count} pieces")
    windows = window.split(_COLUMNS, count)
    layouts = layouts_for(nest, source, windows[0], warps)
    if isinstance(layouts, Refusal):
        return layouts
    if uncut := _uncut(nest, source, window, layouts, count, warps):
        return uncut
    boxes = boxes_of(nest, source, windows[0].size)
    if isinstance(boxes, Refusal):
        return boxes
    for descriptor in boxes:
        if varying := varying_descriptor(nest.outer, nest.dot, descriptor):
            return varying
    rows = rows_of(nest, source, window, warps)
    if isinstance(rows, Refusal):
        return rows
    return Pieces(nest, source, windows, layouts, boxes, rows)


def _uncut(
    nest: PersistentNest,
    source: TileSlice,
    window: Window,
    layouts: Layouts,
    count: int,
    warps: int,
) -> Refusal | None:
    """Why the dot's result in a window cannot be cut into pieces with these layouts."""
    whole = layouts_for(nest, source, window, warps)
    if isinstance(whole, Refusal):
        return whole
    accumulator = tensor_type(source.accumulator)
    try:
        piece = column_part(whole.type(accumulator, ACCUMULATOR), count)
    except LayoutError as error:
        return Refusal(nest.dot, str(error))
    wanted = layouts.type(accumulator, ACCUMULATOR)
    if piece == wanted:
        return None
    return Refusal(nest.dot, f"pieces of the dot's result are of {piece}, wanted as {wanted}")


@dataclass(frozen=True)
class PieceBuffers:
    """A consumer's own: an array of staging buffers for each TMA store, a ring for each tile load,
    all of `count` slots; a buffer for each row.

    `in_place`: a piece is stored from the slot that it was loaded to. There is a slot for every
    piece of a tile, and one `empty` barrier for all of them: they are handed back together, behind
    the first dot of the next tile, when the stores have been read without anybody waiting.
    """

    count: int
    staging: tuple[ir.Value, ...]
    rings: tuple[Ring, ...]
    rows: tuple[ir.Value, ...]
    in_place: bool = False


def allocate_pieces(
    pieces: Pieces, count: int, in_place: bool, builder: AsyncBuilder
) -> PieceBuffers:
    """Buffers for `count` pieces of every load and store."""
    rows = pieces.rows.allocate(builder)
    if in_place:
        (block,) = pieces.load_blocks
        slots = builder.local_alloc(builder.type(buffer_of(block, count)))
        full, empty = allocate_barriers(builder, count), allocate_barriers(builder, 1)
        return PieceBuffers(count, (slots,), (Ring(count, (slots,), full, empty),), rows, True)
    staging = [
        builder.local_alloc(builder.type(buffer_of(block, count))) for block in pieces.store_blocks
    ]
    rings = [allocate_ring(builder, [block], count) for block in pieces.load_blocks]
    return PieceBuffers(count, tuple(staging), tuple(rings), rows)


class PieceRun:
    """A consumer's epilogue of one tile while it is built.

    `is_real` (i1) is False where there is no such tile: TMA stores go outside of the array then.
    """

    def __init__(
        self,
        pieces: Pieces,
        buffers: PieceBuffers,
        tile: Tile,
        is_real: ir.Value | None = None,
    ) -> None:
        self._pieces, self._nest, self._buffers = pieces, pieces.nest, buffers
        self._builder, self._rows, self._is_real = tile.builder, pieces.rows, is_real
        self._loads = [load.operation for load in self._nest.tile_loads]
        self._stores = [store.operation for store in self._nest.tma_stores]
        self._parts = [
            TileClone(pieces.source, window, pieces.layouts, tile.clones.__getitem__)
            for window in pieces.windows
        ]
        self._row_values: list[ir.Value] = []
        self._scalars = tile.clones.__getitem__

    def load_rows(self) -> None:
        """Before the tile's first dot: load rows and columns, a register or two of them."""
        self._row_values = self._rows.load(self._pieces.source, self._scalars, self._builder)

    def keep_rows(self, builder: AsyncBuilder) -> None:
        """Behind the tile's first dot: put the rows where the pieces read them."""
        for value, buffer in zip(self._row_values, self._buffers.rows, strict=True):
            builder.local_store(value, buffer)

    def hand_back(self, builder: AsyncBuilder, is_later: ir.Value) -> None:
        """Behind a tile's first dot: the slots of the tile before, where they were stored from."""
        if not self._buffers.in_place:
            return
        builder.tma_store_wait(0)
        (ring,) = self._buffers.rings
        builder.arrive_barrier(builder.slot(ring.empty, builder.constant(0)), is_later)

    def columns(self, accumulator: ir.Value) -> list[ir.Value]:
        """The pieces of the dot's result, from left to right."""
        return column_parts(self._builder, accumulator, len(self._parts))

    def run(
        self, values: Sequence[ir.Value], first: int, staged: ir.Value, loaded: Sequence[Cursor]
    ) -> tuple[ir.Value, list[Cursor]]:
        """Compute, stage and store the pieces from the `first` on, of which these are the dot's.

        `staged` (the slot of a staging buffer, i32) and `loaded` say where they begin; returns
        where the next ones do.
        """
        self._staged, self._loaded = staged, list(loaded)
        for part, value in zip(self._parts[first:], values, strict=False):
            part.set_accumulator(value)
            self._piece(part)
        return self._staged, self._loaded

    def _piece(self, part: TileClone) -> None:
        for needed in self._pieces.cloned:
            if needed in self._rows.loads:
                part.bind(needed, [self._row(needed, part)])
            elif needed.operation in self._loads:
                part.bind(needed, [self._read(needed, part)])
            elif _is_read_so(needed.operation, self._nest):
                part.bind(needed, [part.value(needed.operation.operands[0], needed.axes)])
            elif needed.operation in self._stores:
                self._store(needed, part)
            else:
                part.clone(needed, self._builder)
        if self._stores and not self._buffers.in_place:
            self._staged = next_slot(self._builder, self._staged, self._buffers.count)

    def _row(self, needed: Needed, part: TileClone) -> ir.Value:
        buffer = self._buffers.rows[self._rows.loads.index(needed)]
        return self._rows.read(needed, buffer, part, self._builder)

    def _read(self, needed: Needed, part: TileClone) -> ir.Value:
        builder, index = self._builder, self._loads.index(needed.operation)
        ring, cursor = self._buffers.rings[index], self._loaded[index]
        builder.wait_barrier(builder.slot(ring.full, cursor.slot), cursor.parity)
        kind = part.type_of(_read_as(needed.operation), needed.axes)
        value = builder.local_load(builder.slot(ring.buffers[0], cursor.slot), kind)
        if self._buffers.in_place:
            self._staged = cursor.slot
        else:
            hand_back(ring, cursor, builder)
        self._loaded[index] = cursor.next(builder, ring.slots)
        return value

    def _store(self, needed: Needed, part: TileClone) -> None:
        builder, index = self._builder, self._stores.index(needed.operation)
        store = self._nest.tma_stores[index]
        if index == 0 and not self._buffers.in_place:
            # The stores of the piece that had these buffers last have read them.
            builder.tma_store_wait((self._buffers.count - 1) * len(self._stores))
        buffer = builder.slot(self._buffers.staging[index], self._staged)
        builder.local_store(part.value(store.value, needed.axes), buffer)
        builder.fence_async_shared()
        coordinates = part.coordinates(store.coordinates, needed.axes, builder)
        if self._is_real is not None:
            outside = builder.constant(_OUTSIDE)
            coordinates = [builder.select(self._is_real, each, outside) for each in coordinates]
        builder.tma_store(store.descriptor, coordinates, buffer)


def build_piece_loads(
    pieces: Pieces, buffers: PieceBuffers, tile: Tile, cursors: Sequence[Cursor]
) -> list[Cursor]:
    """What the warp that feeds a consumer's epilogue does for one tile: the tile loads' pieces, in
    the order in which they are read."""
    builder, after = tile.builder, list(cursors)
    loads = pieces.nest.tile_loads
    order = [load.operation for load in loads]
    for window in pieces.windows:
        for needed in pieces.source.needed:
            if needed.operation not in order:
                continue
            index = order.index(needed.operation)
            ring, cursor, load = buffers.rings[index], after[index], loads[index]
            if not buffers.in_place:
                builder.wait_barrier(builder.slot(ring.empty, cursor.slot), cursor.parity)
            elif window == pieces.windows[0]:
                builder.wait_barrier(builder.slot(ring.empty, builder.constant(0)), cursor.parity)
            full = builder.slot(ring.full, cursor.slot)
            builder.expect_bytes(full, bytes_of(pieces.load_blocks[index]))
            tile_at = tile.clones.of(load.coordinates)
            coordinates = shifted(tile_at, window.start(needed.axes), builder)
            buffer = builder.slot(ring.buffers[0], cursor.slot)
            builder.tma_load(load.descriptor, coordinates, full, buffer)
            after[index] = cursor.next(builder, ring.slots)
    return after


def next_slot(builder: AsyncBuilder, slot: ir.Value, slots: int) -> ir.Value:
    """The slot after this one; after the last one the first."""
    if slots == 1:
        return slot
    after = builder.integer("addi", slot, builder.constant(1))
    wraps = builder.compare("eq", after, builder.constant(slots))
    return builder.select(wraps, builder.constant(0), after)


def _read_as(load: Operation) -> ir.Value:
    """The value whose layout a loaded tile is read in: that of the conversions to one layout that
    are all its users, else the load's own."""
    converted = [user.results[0] for user in users(load.results[0]) if user.name == CONVERT]
    if len(converted) != len(users(load.results[0])) or len({str(v.type) for v in converted}) != 1:
        return load.results[0]
    return converted[0]


def _is_read_so(operation: Operation, nest: PersistentNest) -> bool:
    """Whether a conversion is of a loaded tile that is read in its layout."""
    source = defining_operation(operation.operands[0]) if operation.name == CONVERT else None
    return (
        source is not None
        and nest.is_tile_load(source)
        and _read_as(source).type == operation.results[0].type
    )
