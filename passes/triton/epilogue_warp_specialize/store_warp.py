"""`store-warp`: as `cooperative`, with another warp that waits for the stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.engine import ir
from tilepass.passes.triton.epilogue_warp_specialize.budget import FEWEST_REGISTERS, Limits
from tilepass.passes.triton.epilogue_warp_specialize.clones import tile_slice
from tilepass.passes.triton.epilogue_warp_specialize.consumer import build_main_loop, finish
from tilepass.passes.triton.epilogue_warp_specialize.cooperative import allocate_rings
from tilepass.passes.triton.epilogue_warp_specialize.description import (
    PersistentNest,
    Refusal,
    TmaStore,
)
from tilepass.passes.triton.epilogue_warp_specialize.epilogue import (
    LoadedTiles,
    build_epilogue,
    build_tile_operations,
    consumer_needs,
    send,
    stage,
)
from tilepass.passes.triton.epilogue_warp_specialize.footprint import (
    OVERHEAD_BYTES,
    ring_bytes,
)
from tilepass.passes.triton.epilogue_warp_specialize.machine import Machine
from tilepass.passes.triton.epilogue_warp_specialize.options import Options, Plan
from tilepass.passes.triton.epilogue_warp_specialize.partitions import Partition, warp_specialize
from tilepass.passes.triton.epilogue_warp_specialize.producer import (
    Rings,
    build_producer,
    cursors_of,
)
from tilepass.passes.triton.epilogue_warp_specialize.read_back import read_back_obstacle
from tilepass.passes.triton.epilogue_warp_specialize.rings import (
    Cursor,
    Ring,
    allocate_ring,
    filling,
    reading,
)
from tilepass.passes.triton.epilogue_warp_specialize.scalars import scalar_obstacle
from tilepass.passes.triton.epilogue_warp_specialize.schemes import (
    Scheme,
    accumulator_obstacle,
    rings_bytes,
    stage_counts,
    warps_obstacle,
)
from tilepass.passes.triton.epilogue_warp_specialize.tiles import Tile, build_tile_loop

# With fewer, TMA's latency shows.
_STAGES_BEFORE_BUFFERS = 4


@dataclass(frozen=True)
class HandedOver:
    """The consumer's side of the ring of C tiles: a slot takes one tile of every TMA store."""

    ring: Ring
    cursor: Cursor

    def store(self, store: TmaStore, index: int, value: ir.Value, tile: Tile) -> None:
        builder, slot = tile.builder, self.cursor.slot
        if index == 0:
            builder.wait_barrier(builder.slot(self.ring.empty, slot), self.cursor.parity)
        stage(value, builder.slot(self.ring.buffers[index], slot), builder)
        if index == len(self.ring.buffers) - 1:
            builder.arrive_barrier(builder.slot(self.ring.full, slot))


def obstacle(nest: PersistentNest, machine: Machine) -> Refusal | None:
    """There must be something for the store warp to store."""
    if not nest.tma_stores:
        return Refusal(
            nest.pointer_stores[0],
            "the tile is stored through pointers: a store warp takes TMA stores",
            "store through a descriptor",
        )
    return (
        warps_obstacle(nest, (4, 8))
        or accumulator_obstacle(nest, machine)
        or scalar_obstacle(nest, store_roots(nest), "where the store warp stores")
        or read_back_obstacle(nest, "the consumers do not wait for the store warp")
    )


def store_roots(nest: PersistentNest) -> list[ir.Value]:
    """The values that the store warp computes for itself."""
    return [value for store in nest.tma_stores for value in store.coordinates]


def plans(nest: PersistentNest, options: Options, limits: Limits) -> Iterator[Plan]:
    """Two C buffers where enough stages stay, else one and as many stages as there may be."""
    del nest, limits
    if options.epilogue_subtile not in ("auto", 1) or options.late_subtiles not in ("auto", 0):
        return
    if options.c_buffers in ("auto", 2):
        for stages in stage_counts(options):
            if stages >= _STAGES_BEFORE_BUFFERS or options.c_buffers == 2:
                yield Plan("store-warp", stages, 2)
    buffers = 1 if options.c_buffers == "auto" else options.c_buffers
    for stages in stage_counts(options):
        yield Plan("store-warp", stages, buffers)


def shared_bytes(nest: PersistentNest, plan: Plan) -> int:
    """Rings, that of the C tiles included, and scratch."""
    stored = ring_bytes([store.block for store in nest.tma_stores], plan.c_buffers)
    return rings_bytes(nest, plan) + stored + nest.scratch_bytes + OVERHEAD_BYTES


def build_store_warp(nest: PersistentNest, plan: Plan, machine: Machine) -> None:
    """Rewrite the nest in place."""
    builder = machine.builder_before(nest)
    rings = allocate_rings(nest, plan, builder)
    blocks = [store.block for store in nest.tma_stores]
    stored = allocate_ring(builder, blocks, plan.c_buffers)

    def consume(inside: AsyncBuilder) -> None:
        _build_consumer(nest, rings, stored, inside)

    def produce(inside: AsyncBuilder) -> None:
        build_producer(nest, rings, inside)

    def send_tiles(inside: AsyncBuilder) -> None:
        _build_storer(nest, stored, inside)

    partitions = [
        Partition(1, FEWEST_REGISTERS, produce),
        Partition(1, FEWEST_REGISTERS, send_tiles),
    ]
    warp_specialize(builder, consume, partitions)
    nest.outer.operation.erase()


def _build_consumer(
    nest: PersistentNest, rings: Rings, stored: Ring, builder: AsyncBuilder
) -> None:
    needed = consumer_needs(nest)
    start, empty = reading(builder), filling(builder)
    state = [*start.values, *empty.values, *(start.values * len(rings.tile_loads))]

    def build(tile: Tile) -> Sequence[ir.Value]:
        operands, staged, *loads = cursors_of(tile.state)
        loaded = LoadedTiles(rings.tile_loads, loads)
        build_tile_operations(nest, tile, loaded, needed)
        main = build_main_loop(nest, rings.operands, tile, operands)
        finish(nest, rings.operands, tile, main)
        build_epilogue(nest, tile, loaded, HandedOver(stored, staged))
        cursors = [main.cursor, staged.next(tile.builder, stored.slots), *loaded.cursors]
        return [value for cursor in cursors for value in cursor.values]

    build_tile_loop(nest, builder, state, build)


def _build_storer(nest: PersistentNest, stored: Ring, builder: AsyncBuilder) -> None:
    """Send every tile that the consumer hands over, and hand its slot back once it is read."""
    needed = tile_slice(nest, store_roots(nest))

    def build(tile: Tile) -> Sequence[ir.Value]:
        inside, cursor = tile.builder, Cursor(*tile.state)
        for each in (*nest.tile_operations, *nest.epilogue):
            if each in needed:
                tile.clones.copy(each, inside)
        inside.wait_barrier(inside.slot(stored.full, cursor.slot), cursor.parity)
        for store, buffers in zip(nest.tma_stores, stored.buffers, strict=True):
            send(store, inside.slot(buffers, cursor.slot), inside, tile.clones)
        inside.tma_store_wait(0)
        inside.arrive_barrier(inside.slot(stored.empty, cursor.slot))
        return cursor.next(inside, stored.slots).values

    build_tile_loop(nest, builder, reading(builder).values, build)


STORE_WARP = Scheme("store-warp", obstacle, plans, shared_bytes, build_store_warp)
