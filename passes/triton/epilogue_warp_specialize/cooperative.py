"""`cooperative`: all warps of the source compute and store, one warp loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilepass.ir.build_async import AsyncBuilder, buffer_of
from tilepass.ir.engine import ir
from tilepass.passes.triton.epilogue_warp_specialize.budget import (
    FEWEST_REGISTERS,
    Limits,
)
from tilepass.passes.triton.epilogue_warp_specialize.consumer import build_main_loop, finish
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
    array_bytes,
)
from tilepass.passes.triton.epilogue_warp_specialize.machine import Machine
from tilepass.passes.triton.epilogue_warp_specialize.options import Options, Plan
from tilepass.passes.triton.epilogue_warp_specialize.partitions import Partition, warp_specialize
from tilepass.passes.triton.epilogue_warp_specialize.producer import (
    Rings,
    build_producer,
    cursors_of,
)
from tilepass.passes.triton.epilogue_warp_specialize.rings import allocate_ring, reading
from tilepass.passes.triton.epilogue_warp_specialize.schemes import (
    Scheme,
    accumulator_obstacle,
    rings_bytes,
    stage_counts,
    warps_obstacle,
)
from tilepass.passes.triton.epilogue_warp_specialize.share_plans import (
    SharePlan,
    share_bytes,
    share_plans,
)
from tilepass.passes.triton.epilogue_warp_specialize.shares import build_shares
from tilepass.passes.triton.epilogue_warp_specialize.tile_shapes import Window
from tilepass.passes.triton.epilogue_warp_specialize.tiles import Tile, build_tile_loop


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
        stage(value, buffer, builder)
        send(store, buffer, builder, tile.clones)


def obstacle(nest: PersistentNest, machine: Machine) -> Refusal | None:
    """All warps compute: any number of whole groups will do."""
    return warps_obstacle(nest, (4, 8)) or accumulator_obstacle(nest, machine)


def plans(nest: PersistentNest, options: Options, limits: Limits) -> Iterator[Plan]:
    """As many stages as there may be; with one staging buffer for each store, or the epilogue in
    pieces, where that lets another stage fit."""
    buffers = 1 if options.c_buffers == "auto" else options.c_buffers
    whole = [Plan("cooperative", stages, buffers) for stages in stage_counts(options)]
    if options.epilogue_subtile not in ("auto", 1) or options.late_subtiles not in ("auto", 0):
        whole = []
    windows = [Window.whole(nest.tile[:2])]
    pieces = share_plans("cooperative", nest, options, windows, nest.num_warps, limits)
    cut = [plan for plan in pieces if plan.epilogue_subtile > 1]
    yield from sorted([*whole, *cut], key=lambda plan: -plan.stages)


def shared_bytes(nest: PersistentNest, plan: Plan) -> int:
    """Rings, staging buffers, scratch."""
    if isinstance(plan, SharePlan):
        return share_bytes(nest, plan)
    staging = sum(array_bytes(store.block, plan.c_buffers) for store in nest.tma_stores)
    return rings_bytes(nest, plan) + staging + nest.scratch_bytes + OVERHEAD_BYTES


def build_cooperative(nest: PersistentNest, plan: Plan, machine: Machine) -> None:
    """Rewrite the nest in place."""
    if isinstance(plan, SharePlan):
        build_shares(nest, plan, machine)
        return
    builder = machine.builder_before(nest)
    rings = allocate_rings(nest, plan, builder)
    buffers = allocate_staging(nest, plan, builder)

    def consume(inside: AsyncBuilder) -> None:
        build_consumer(nest, plan, rings, buffers, inside)

    def produce(inside: AsyncBuilder) -> None:
        build_producer(nest, rings, inside)

    partitions = [Partition(1, FEWEST_REGISTERS, produce)]
    warp_specialize(builder, consume, partitions)
    nest.outer.operation.erase()


def allocate_rings(nest: PersistentNest, plan: Plan, builder: AsyncBuilder) -> Rings:
    """The rings that a producer fills, one slot for each tile load."""
    operands = allocate_ring(builder, [load.block for load in nest.loads], plan.stages)
    tiles = [allocate_ring(builder, [load.block], 1) for load in nest.tile_loads]
    return Rings(operands, tuple(tiles))


def allocate_staging(
    nest: PersistentNest, plan: Plan, builder: AsyncBuilder
) -> tuple[ir.Value, ...]:
    """An array of staging buffers for each TMA store."""
    return tuple(
        builder.local_alloc(builder.type(buffer_of(store.block, plan.c_buffers)))
        for store in nest.tma_stores
    )


def build_consumer(
    nest: PersistentNest,
    plan: Plan,
    rings: Rings,
    buffers: tuple[ir.Value, ...],
    builder: AsyncBuilder,
) -> None:
    """The consumer's region: main loop and epilogue of every tile."""
    needed = consumer_needs(nest)
    start = reading(builder)
    state = [*start.values] * (2 + len(rings.tile_loads))

    def build(tile: Tile) -> Sequence[ir.Value]:
        operands, staged, *loads = cursors_of(tile.state)
        loaded = LoadedTiles(rings.tile_loads, loads)
        build_tile_operations(nest, tile, loaded, needed)
        main = build_main_loop(nest, rings.operands, tile, operands)
        finish(nest, rings.operands, tile, main)
        build_epilogue(nest, tile, loaded, Staging(buffers, plan.c_buffers, staged.slot))
        cursors = [main.cursor, staged.next(tile.builder, plan.c_buffers), *loaded.cursors]
        return [value for cursor in cursors for value in cursor.values]

    build_tile_loop(nest, builder, state, build)
    if buffers:
        builder.tma_store_wait(0)


COOPERATIVE = Scheme("cooperative", obstacle, plans, shared_bytes, build_cooperative)
