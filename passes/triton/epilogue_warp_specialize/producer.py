"""The producer: a warp that fills the rings with TMA, ahead of the consumers over tile borders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.engine import Operation, ir, plain
from tilepass.passes.triton.epilogue_warp_specialize.clones import Clones, tile_slice
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, TileLoad
from tilepass.passes.triton.epilogue_warp_specialize.rings import Cursor, Ring, filling
from tilepass.passes.triton.epilogue_warp_specialize.tiles import (
    Tile,
    build_tile_loop,
    comparison_of,
)


@dataclass(frozen=True)
class Rings:
    """What the producer fills: a ring for the dot's operands, one for each tile load."""

    operands: Ring
    tile_loads: tuple[Ring, ...] = ()


def producer_roots(nest: PersistentNest) -> list[ir.Value]:
    """The values that the producer computes for itself, those inside the inner loop left out."""
    inner = nest.inner
    return [
        inner.lower_bound,
        inner.upper_bound,
        inner.step,
        *(carried.initial for carried in nest.carried_scalars),
        *(value for load in nest.loads for value in load.coordinates),
        *(value for each in nest.step_operations for value in each.operands),
        *(value for load in nest.tile_loads for value in load.coordinates),
    ]


def build_producer(nest: PersistentNest, rings: Rings, builder: AsyncBuilder) -> None:
    """The body of the producer's partition."""
    needed = tile_slice(nest, producer_roots(nest))
    needed |= {load.operation for load in nest.tile_loads}
    needed.discard(nest.inner.operation)
    start = filling(builder)
    state = [*start.values] * (1 + len(rings.tile_loads))

    def build(tile: Tile) -> Sequence[ir.Value]:
        cursors = cursors_of(tile.state)
        _copy(nest, nest.tile_operations, needed, tile, rings, cursors)
        cursors[0] = _build_main_loop(nest, rings.operands, tile, cursors[0])
        _copy(nest, nest.epilogue, needed, tile, rings, cursors)
        return [value for cursor in cursors for value in cursor.values]

    build_tile_loop(nest, builder, state, build)


def cursors_of(state: Sequence[ir.Value]) -> list[Cursor]:
    """Cursors from the values that a loop carries for them."""
    return [Cursor(*pair) for pair in zip(state[::2], state[1::2], strict=True)]


def _copy(
    nest: PersistentNest,
    operations: Iterable[Operation],
    needed: set[Operation],
    tile: Tile,
    rings: Rings,
    cursors: list[Cursor],
) -> None:
    order = [load.operation for load in nest.tile_loads]
    for each in operations:
        if each not in needed:
            continue
        if each not in order:
            tile.clones.copy(each, tile.builder)
            continue
        index = order.index(each)
        ring, load = rings.tile_loads[index], nest.tile_loads[index]
        cursors[index + 1] = fill(ring, [load], cursors[index + 1], tile.builder, tile.clones)


def _build_main_loop(nest: PersistentNest, ring: Ring, tile: Tile, cursor: Cursor) -> Cursor:
    inner, clones = nest.inner, tile.clones.nested()
    bounds = tile.clones.of((inner.lower_bound, inner.upper_bound, inner.step))
    scalars = nest.carried_scalars
    initial = [*cursor.values, *clones.of(each.initial for each in scalars)]
    loop = tile.builder.loop(bounds[0], bounds[1], bounds[2], initial, comparison_of(inner))
    arguments = [plain(argument) for argument in loop.body.arguments]
    clones[inner.induction_variable] = arguments[0]
    for source, argument in zip(scalars, arguments[3:], strict=True):
        clones[source.argument] = argument
    inside = tile.builder.inside(loop.body)
    for each in nest.step_operations:
        clones.copy(each, inside)
    after = fill(ring, nest.loads, Cursor(*arguments[1:3]), inside, clones)
    inside.yield_([*after.values, *clones.of(each.yielded for each in scalars)])
    return Cursor(*(plain(result) for result in list(loop.operation.results)[:2]))


def fill(
    ring: Ring,
    loads: Sequence[TileLoad],
    cursor: Cursor,
    builder: AsyncBuilder,
    clones: Clones,
) -> Cursor:
    """Wait for an empty slot and have TMA fill it; returns the next slot."""
    builder.wait_barrier(builder.slot(ring.empty, cursor.slot), cursor.parity)
    full = builder.slot(ring.full, cursor.slot)
    builder.expect_bytes(full, sum(load.bytes for load in loads))
    for load, buffers in zip(loads, ring.buffers, strict=True):
        buffer = builder.slot(buffers, cursor.slot)
        builder.tma_load(load.descriptor, clones.of(load.coordinates), full, buffer)
    return cursor.next(builder, ring.slots)
