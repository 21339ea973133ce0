"""The epilogue of a tile as a consumer runs it: in pieces, some of them late, or as it stands.

Pieces of an epilogue that wait in registers until the next tile's first dot is issued.

    dots of tile t | pieces 0, 1 of t | first dot of t+1 | pieces 2, 3 of t | other dots of t+1 ...

The tensor cores have work while the late pieces are computed and stored. A late piece takes its
part of the accumulator beside the accumulator itself: a quarter of 64x256 on 4 warps is 32
registers.
Before the first tile there is nothing to be late: the same code runs, reads what the first tile
will read, and its TMA stores go outside of the array, where TMA writes nothing (PTX ISA,
cp.async.bulk.tensor: out-of-bounds writes are dropped). So what else has effects in an epilogue,
pointer stores and the reading of loaded tiles, cannot be late.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilepass.ir.build_async import AsyncBuilder, buffer_of
from tilepass.ir.engine import Operation, ir, operations

from .axes import Needed
from .clones import TileClone, shifted
from .description import PersistentNest, TmaStore, bytes_of
from .order import tile_slice
from .pieces import Pieces, is_read_so, read_as
from .rings import Cursor, Ring, allocate_barriers, allocate_ring, hand_back
from .tiles import Tile
from .windows import column_parts

# No array has so many rows and so many columns. A negative coordinate would do by PTX's text, but
# TMA stores with one failed on an H200.
_OUTSIDE = 1 << 30


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
        self._clones = [
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
        return column_parts(self._builder, accumulator, len(self._clones))

    def run(
        self, values: Sequence[ir.Value], first: int, staged: ir.Value, loaded: Sequence[Cursor]
    ) -> tuple[ir.Value, list[Cursor]]:
        """Compute, stage and store the pieces from the `first` on, of which these are the dot's.

        `staged` (the slot of a staging buffer, i32) and `loaded` say where they begin; returns
        where the next ones do.
        """
        self._staged, self._loaded = staged, list(loaded)
        for piece, value in zip(self._clones[first:], values, strict=False):
            piece.set_accumulator(value)
            self._piece(piece)
        return self._staged, self._loaded

    def _piece(self, piece: TileClone) -> None:
        for needed in self._pieces.cloned:
            if not piece.window.holds(needed.axes):
                continue
            if needed in self._rows.loads:
                piece.bind(needed, [self._row(needed, piece)])
            elif needed.operation in self._loads:
                piece.bind(needed, [self._read(needed, piece)])
            elif is_read_so(needed.operation, self._nest):
                piece.bind(needed, [piece.value(needed.operation.operands[0], needed.axes)])
            elif needed.operation in self._stores:
                self._store(needed, piece)
            else:
                piece.clone(needed, self._builder)
        if self._stores and not self._buffers.in_place:
            self._staged = next_slot(self._builder, self._staged, self._buffers.count)

    def _row(self, needed: Needed, piece: TileClone) -> ir.Value:
        buffer = self._buffers.rows[self._rows.loads.index(needed)]
        return self._rows.read(needed, buffer, piece, self._builder)

    def _read(self, needed: Needed, piece: TileClone) -> ir.Value:
        builder, index = self._builder, self._pieces.load_slots[needed.operation]
        ring, cursor = self._buffers.rings[index], self._loaded[index]
        builder.wait_barrier(builder.slot(ring.full, cursor.slot), cursor.parity)
        kind = piece.type_of(read_as(needed.operation), needed.axes)
        value = builder.local_load(builder.slot(ring.buffers[0], cursor.slot), kind)
        if self._buffers.in_place:
            self._staged = cursor.slot
        else:
            hand_back(ring, cursor, builder)
        self._loaded[index] = cursor.next(builder, ring.slots)
        return value

    def _store(self, needed: Needed, piece: TileClone) -> None:
        builder, index = self._builder, self._pieces.store_slots[needed.operation]
        store = self._nest.tma_stores[self._stores.index(needed.operation)]
        if index == 0 and not self._buffers.in_place:
            # The stores of the piece that had these buffers last have read them.
            builder.tma_store_wait((self._buffers.count - 1) * len(self._buffers.staging))
        buffer = builder.slot(self._buffers.staging[index], self._staged)
        builder.local_store(piece.value(store.value, needed.axes), buffer)
        builder.fence_async_shared()
        coordinates = piece.coordinates(store.coordinates, needed.axes, builder)
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
            if needed.operation not in order or not window.holds(needed.axes):
                continue
            index = pieces.load_slots[needed.operation]
            ring, cursor = buffers.rings[index], after[index]
            load = loads[order.index(needed.operation)]
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


@dataclass(frozen=True)
class LateState:
    """What the tile loop carries: parts of the accumulator, and the tile that they are of."""

    columns: tuple[ir.Value, ...] = ()
    tile: ir.Value | None = None

    @property
    def values(self) -> list[ir.Value]:
        return [*self.columns] if self.tile is None else [*self.columns, self.tile]

    @classmethod
    def nothing(
        cls, pieces: Pieces, count: int, nest: PersistentNest, builder: AsyncBuilder
    ) -> LateState:
        """Before the first tile: zeros, of a tile that scalars can be computed for."""
        if count == 0:
            return cls()
        type_ = builder.type(pieces.accumulator_type)
        columns = tuple(builder.zeros(type_) for _ in range(count))
        return cls(columns, nest.outer.lower_bound)

    @classmethod
    def split(cls, state: Sequence[ir.Value], count: int) -> tuple[list[ir.Value], LateState]:
        """What else a loop carries, and its late pieces."""
        if count == 0:
            return list(state), cls()
        *others, tile = state
        end = len(others) - count
        return others[:end], cls(tuple(others[end:]), tile)


@dataclass
class LoadedTiles:
    """The consumer's side of the rings of tile loads; the cursors move as tiles are read."""

    rings: tuple[Ring, ...]
    cursors: list[Cursor]

    def read(self, index: int, kind: ir.Type, builder: AsyncBuilder) -> ir.Value:
        """Wait for a tile, copy it into registers of the given layout, hand the slot back."""
        ring, cursor = self.rings[index], self.cursors[index]
        builder.wait_barrier(builder.slot(ring.full, cursor.slot), cursor.parity)
        value = builder.local_load(builder.slot(ring.buffers[0], cursor.slot), kind)
        hand_back(ring, cursor, builder)
        self.cursors[index] = cursor.next(builder, ring.slots)
        return value


@dataclass(frozen=True)
class Staging:
    """A consumer's own staging buffers: for each TMA store an array of them.

    Before the first store of a tile, the stores of the tile that had the buffers last must have
    been read: all but those of the `len(buffers)` - 1 tiles between.
    """

    buffers: tuple[ir.Value, ...]
    count: int
    slot: ir.Value

    def store(self, store: TmaStore, index: int, value: ir.Value, tile: Tile) -> None:
        builder = tile.builder
        if index == 0:
            builder.tma_store_wait((self.count - 1) * len(self.buffers))
        buffer = builder.slot(self.buffers[index], self.slot)
        builder.local_store(value, buffer)
        # TMA sees it only then.
        builder.fence_async_shared()
        builder.tma_store(store.descriptor, tile.clones.of(store.coordinates), buffer)


def consumer_needs(nest: PersistentNest) -> set[Operation]:
    """The operations before the inner loop that a consumer computes for itself."""
    inner = nest.inner
    roots = [
        inner.lower_bound,
        inner.upper_bound,
        inner.step,
        nest.carried_accumulator.initial,
        *(
            value
            for each in nest.epilogue
            for inside in operations(each)
            for value in inside.operands
        ),
    ]
    return tile_slice(nest, roots)


def build_tile_operations(
    nest: PersistentNest, tile: Tile, loaded: LoadedTiles, needed: set[Operation]
) -> None:
    """What stands before the inner loop, as far as a consumer needs it."""
    wanted = [each for each in nest.tile_operations if each in needed or nest.is_tile_load(each)]
    _copy_all(nest, wanted, tile, loaded, None)


def build_epilogue(nest: PersistentNest, tile: Tile, loaded: LoadedTiles, sink: Staging) -> None:
    dropped = {each for store in nest.tma_stores for each in store.dropped}
    _copy_all(nest, [e for e in nest.epilogue if e not in dropped], tile, loaded, sink)


def _copy_all(
    nest: PersistentNest,
    operations: Iterable[Operation],
    tile: Tile,
    loaded: LoadedTiles,
    sink: Staging | None,
) -> None:
    loads = [load.operation for load in nest.tile_loads]
    stores = [store.operation for store in nest.tma_stores]
    clones = tile.clones
    for each in operations:
        if each in loads:
            kind = read_as(each).type
            clones[each.results[0]] = loaded.read(loads.index(each), kind, tile.builder)
        elif is_read_so(each, nest):
            clones[each.results[0]] = clones[each.operands[0]]
        elif each in stores and sink is not None:
            index = stores.index(each)
            value = clones[nest.tma_stores[index].value]
            sink.store(nest.tma_stores[index], index, value, tile)
        else:
            clones.copy(each, tile.builder)
