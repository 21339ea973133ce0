"""The consumer's epilogue: copies of the source's operations, loads and stores rerouted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.engine import Operation, ir, operations, plain
from tilepass.ir.walks import users
from tilepass.passes.triton.epilogue_warp_specialize.clones import Clones, tile_slice
from tilepass.passes.triton.epilogue_warp_specialize.description import (
    PersistentNest,
    TileLoad,
    TmaStore,
)
from tilepass.passes.triton.epilogue_warp_specialize.rings import Cursor, Ring, hand_back
from tilepass.passes.triton.epilogue_warp_specialize.tiles import Tile

_CONVERT = "ttg.convert_layout"


class Sink(Protocol):
    """Where the consumer's tiles go that the source stores with TMA."""

    def store(self, store: TmaStore, index: int, value: ir.Value, tile: Tile) -> None:
        """Take a tile; `index` counts the nest's TMA stores."""
        ...


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


def consumer_needs(nest: PersistentNest) -> set[Operation]:
    """The operations in front of the inner loop that a consumer computes for itself."""
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
    """What stands in front of the inner loop, as far as a consumer needs it."""
    wanted = [each for each in nest.tile_operations if each in needed or nest.is_tile_load(each)]
    _copy_all(nest, wanted, tile, loaded, None)


def build_epilogue(nest: PersistentNest, tile: Tile, loaded: LoadedTiles, sink: Sink) -> None:
    """What stands behind the inner loop."""
    dropped = {each for store in nest.tma_stores for each in store.dropped}
    _copy_all(nest, [e for e in nest.epilogue if e not in dropped], tile, loaded, sink)


def _copy_all(
    nest: PersistentNest,
    operations: Iterable[Operation],
    tile: Tile,
    loaded: LoadedTiles,
    sink: Sink | None,
) -> None:
    loads = [load.operation for load in nest.tile_loads]
    stores = [store.operation for store in nest.tma_stores]
    read = set[Operation]()
    for each in operations:
        if each in read:
            continue
        if each in loads:
            index = loads.index(each)
            read |= _read_tile(nest.tile_loads[index], index, tile, loaded)
        elif each in stores and sink is not None:
            index = stores.index(each)
            value = tile.clones[nest.tma_stores[index].value]
            sink.store(nest.tma_stores[index], index, value, tile)
        else:
            tile.clones.copy(each, tile.builder)


def _read_tile(load: TileLoad, index: int, tile: Tile, loaded: LoadedTiles) -> set[Operation]:
    """Read a tile straight into the layout that it is converted to, if there is but one; returns
    the conversions that this replaces."""
    result = load.operation.results[0]
    conversions = [user for user in users(result) if user.name == _CONVERT]
    kinds = {str(user.results[0].type) for user in conversions}
    if len(conversions) != len(users(result)) or len(kinds) != 1:
        tile.clones[result] = loaded.read(index, result.type, tile.builder)
        return set()
    value = loaded.read(index, conversions[0].results[0].type, tile.builder)
    for conversion in conversions:
        tile.clones[conversion.results[0]] = value
    return set(conversions)


def stage(value: ir.Value, buffer: ir.Value, builder: AsyncBuilder) -> None:
    """Write a tile into a staging buffer so that TMA sees it."""
    builder.local_store(value, buffer)
    builder.fence_async_shared()


def send(store: TmaStore, buffer: ir.Value, builder: AsyncBuilder, clones: Clones) -> None:
    """Have TMA write a staging buffer to global memory."""
    builder.tma_store(store.descriptor, clones.of(store.coordinates), plain(buffer))
