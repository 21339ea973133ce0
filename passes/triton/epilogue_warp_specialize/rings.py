"""Rings of buffers in shared memory, and the producer that fills them ahead of the consumers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilepass.ir.build_async import AsyncBuilder, barrier_array, buffer_of
from tilepass.ir.engine import Operation, ir
from tilepass.ir.layouts import TensorType

from .clones import Clones
from .description import PersistentNest, TileLoad
from .order import producer_roots, tile_slice
from .tiles import Tile, build_tile_loop, comparison_of


@dataclass(frozen=True)
class Ring:
    """`slots` slots, each with one buffer of every array in `buffers`.

    A slot is filled by who has waited for `empty` of its phase, and read by who has waited for
    `full`. The first wait for `empty` passes: it asks for the parity before the first phase.
    """

    slots: int
    buffers: tuple[ir.Value, ...]
    full: ir.Value
    empty: ir.Value


@dataclass(frozen=True)
class Cursor:
    """A slot (i32) and the parity (i32) of the phase that is waited for next."""

    slot: ir.Value
    parity: ir.Value

    @property
    def values(self) -> list[ir.Value]:
        return [self.slot, self.parity]

    def next(self, builder: AsyncBuilder, slots: int) -> Cursor:
        """The slot after this one; after the last one the first, of the other parity."""
        one = builder.constant(1)
        if slots == 1:
            return Cursor(self.slot, builder.integer("xori", self.parity, one))
        after = builder.integer("addi", self.slot, one)
        wraps = builder.compare("eq", after, builder.constant(slots))
        slot = builder.select(wraps, builder.constant(0), after)
        flip = builder.cast("extui", wraps, builder.type("i32"))
        return Cursor(slot, builder.integer("xori", self.parity, flip))


def filling(builder: AsyncBuilder) -> Cursor:
    """Where who fills a ring starts: its slots are empty."""
    return Cursor(builder.constant(0), builder.constant(1))


def reading(builder: AsyncBuilder) -> Cursor:
    """Where who reads a ring starts: the first phase of `full` is to come."""
    return Cursor(builder.constant(0), builder.constant(0))


def cursor_at(index: ir.Value, slots: int, builder: AsyncBuilder) -> Cursor:
    """Where a reader stands that `index` fills have gone before."""
    count = builder.constant(slots)
    rounds = builder.integer("divsi", index, count)
    parity = builder.integer("andi", rounds, builder.constant(1))
    return Cursor(builder.integer("remsi", index, count), parity)


def hand_back(ring: Ring, cursor: Cursor, builder: AsyncBuilder) -> None:
    """Give a slot that threads have read back to who fills it.

    TMA writes it next, and a barrier alone does not order that behind the reads (PTX ISA, "Async
    proxy"): loads from shared memory may still be under way when their warps pass a barrier.
    """
    builder.fence_async_shared()
    builder.arrive_barrier(builder.slot(ring.empty, cursor.slot))


def allocate_ring(
    builder: AsyncBuilder,
    blocks: Sequence[TensorType],
    slots: int,
    *,
    readers: int = 1,
) -> Ring:
    """A ring whose slots take one buffer for each block, its barriers initialised.

    `readers` are the arrivals that a slot's `empty` takes.
    """
    buffers = [builder.local_alloc(builder.type(buffer_of(block, slots))) for block in blocks]
    full = allocate_barriers(builder, slots)
    empty = allocate_barriers(builder, slots, readers)
    return Ring(slots, tuple(buffers), full, empty)


def allocate_barriers(builder: AsyncBuilder, count: int, arrivals: int = 1) -> ir.Value:
    """An array of barriers, each of which takes so many arrivals a phase."""
    barriers = builder.local_alloc(builder.type(barrier_array(count)))
    for index in range(count):
        builder.init_barrier(builder.slot(barriers, builder.constant(index)), arrivals)
    return barriers


@dataclass(frozen=True)
class Rings:
    """What the producer fills: a ring for the dot's operands, one for each tile load."""

    operands: Ring
    tile_loads: tuple[Ring, ...] = ()


def build_producer(nest: PersistentNest, rings: Rings, builder: AsyncBuilder) -> None:
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
    arguments = list(loop.body.arguments)
    clones[inner.induction_variable] = arguments[0]
    for source, argument in zip(scalars, arguments[3:], strict=True):
        clones[source.argument] = argument
    inside = tile.builder.inside(loop.body)
    for each in nest.step_operations:
        clones.copy(each, inside)
    after = fill(ring, nest.loads, Cursor(*arguments[1:3]), inside, clones)
    inside.yield_([*after.values, *clones.of(each.yielded for each in scalars)])
    return Cursor(*list(loop.operation.results)[:2])


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
