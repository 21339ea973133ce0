"""The main loop of one of several consumers: its rows or columns of the tile.

%sum:3 = scf.if (there is a step) {
  wait full[slot]; dot into zeros          // no registers to clear, nothing to hand back
  what else there is to do: hand over the turn, pieces of the epilogue of the tile before
  scf.for (other steps) { wait full; dot; wait for the dot before; arrive empty[slot before] }
  hand over the turn, where consumers take turns in their main loops
  wait for the last dot; arrive empty[its slot]
} else {
  what else there is to do
}

Where the epilogue stores through pointers the inner loop stands in its own branch (there is
another step), for tritongpu-remove-layout-conversions: into a branch of a tile loop that makes the
accumulator beside one that knows it, it moves the first conversion that an epilogue makes from it,
and so converts all of it, in fp32, where the epilogue would convert a piece of the result. Where
what is made comes from another branch it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tilepass.analysis.trip_count import counts_unsigned
from tilepass.ir.build import set_attribute
from tilepass.ir.build_async import AsyncBuilder, memdesc_of
from tilepass.ir.engine import Operation, ir

from .clones import Clones
from .description import DotOperand, PersistentNest
from .rings import Cursor, Ring
from .tiles import Tile, comparison_of, less_than
from .windows import Window

# Without it tritongpu-pipeline waits for every dot behind it.
_NOT_PIPELINED = {"tt.num_stages": "0 : i32"}

BehindDot = Callable[[AsyncBuilder], None]
"""Builds what a consumer does once its first or last dot of a tile is issued, or where it has
none."""


def nothing(builder: AsyncBuilder) -> None:
    del builder


@dataclass(frozen=True)
class Dots:
    """What a consumer's dots compute: its window of the tile, and the accumulator before the first
    step, in the layout that the consumer's warps have for it."""

    window: Window
    initial: ir.Value
    behind_first_dot: BehindDot
    behind_last_dot: BehindDot = nothing


def build_main_loop(
    nest: PersistentNest, ring: Ring, tile: Tile, cursor: Cursor, dots: Dots
) -> tuple[ir.Value, Cursor]:
    """The main loop, every dot finished; returns the accumulator and where the next tile starts."""
    inner, builder = nest.inner, tile.builder
    lower, upper, step = tile.clones.of((inner.lower_bound, inner.upper_bound, inner.step))
    runs = builder.compare(less_than(inner), lower, upper)
    initial = [dots.initial, *cursor.values]
    branch, then, otherwise = builder.if_(runs, [value.type for value in initial])
    inside = builder.inside(then)
    first = _dot(nest, ring, cursor, dots.window, dots.initial, inside, tile.clones)
    begun = _built(dots.behind_first_dot, inside)
    second = inside.integer("addi", lower, step)
    start = cursor.next(inside, ring.slots)
    state = [first, cursor.slot, *start.values]
    attributes = {**comparison_of(inner), **_NOT_PIPELINED}
    guarded, around = None, inside
    if nest.pointer_stores:
        goes_on = inside.compare(less_than(inner), second, upper)
        guarded, more, no_more = inside.if_(goes_on, [value.type for value in state])
        inside.inside(no_more).yield_(state)
        around = inside.inside(more)
    loop = around.loop(second, upper, step, state, attributes)
    if guarded is not None:
        around.yield_(list(loop.operation.results))
    _, accumulator, previous, slot, parity = loop.body.arguments
    body, here = around.inside(loop.body), Cursor(slot, parity)
    accumulator = _dot(nest, ring, here, dots.window, accumulator, body, tile.clones)
    (accumulator,) = body.dot_wait([accumulator], pendings=1)
    body.arrive_barrier(body.slot(ring.empty, previous))
    body.yield_([accumulator, slot, *here.next(body, ring.slots).values])
    dots.behind_last_dot(inside)
    accumulator, last, *after = (guarded or loop.operation).results
    (accumulator,) = inside.dot_wait([accumulator], pendings=0)
    inside.arrive_barrier(inside.slot(ring.empty, last))
    inside.yield_([accumulator, *after])
    inside, copies = builder.inside(otherwise), Clones()
    for each in begun:
        copies.copy(each, inside)
    dots.behind_last_dot(inside)
    inside.yield_(initial)
    accumulator, *values = branch.results
    return accumulator, Cursor(*values)


def _built(build: BehindDot, builder: AsyncBuilder) -> list[Operation]:
    """What is built at the end of a block."""
    block = builder.place.block
    before = len(block.operations)
    build(builder)
    return [view.operation for view in block][before:]


def _dot(
    nest: PersistentNest,
    ring: Ring,
    cursor: Cursor,
    window: Window,
    accumulator: ir.Value,
    builder: AsyncBuilder,
    clones: Clones,
) -> ir.Value:
    """Wait for a slot and issue its dot."""
    builder.wait_barrier(builder.slot(ring.full, cursor.slot), cursor.parity)
    clones = clones.nested()
    clones[nest.dot.operands[2]] = accumulator
    for index, operand in enumerate((nest.a, nest.b)):
        view = _part(nest, operand, index, ring, cursor.slot, window, builder)
        clones[nest.dot.operands[index]] = view
    dot = clones.copy(nest.dot, builder)
    dot.results[0].set_type(accumulator.type)
    set_attribute(dot, "isAsync", "true")
    return dot.results[0]


def _part(
    nest: PersistentNest,
    operand: DotOperand,
    axis: int,
    ring: Ring,
    slot: ir.Value,
    window: Window,
    builder: AsyncBuilder,
) -> ir.Value:
    """The window's rows of A (axis 0) or columns of B (axis 1) in a slot."""
    buffer = builder.slot(ring.buffers[operand.load], slot)
    if window.size[axis] != nest.tile[axis]:
        dimension = axis
        for view in reversed(operand.views):
            dimension = _order(view)[dimension]
        buffer = builder.subslice(buffer, dimension, window.offset[axis], window.size[axis])
    for view in operand.views:
        buffer = _turned(view, buffer, builder)
    return buffer


def _turned(like: Operation, buffer: ir.Value, builder: AsyncBuilder) -> ir.Value:
    """The `ttg.memdesc_trans` of a buffer that may be part of another."""
    kind, order = memdesc_of(buffer), _order(like)
    allocation = kind.alloc_shape
    turned = replace(
        memdesc_of(like.results[0]),
        shape=tuple(kind.shape[index] for index in order),
        alloc_shape=None if allocation is None else tuple(allocation[index] for index in order),
        mutable=True,
    )
    operation = builder.create(
        like.name, (buffer,), (builder.type(turned),), {"order": like.attributes["order"]}
    )
    return operation.results[0]


def _order(view: Operation) -> list[int]:
    return list(ir.DenseI32ArrayAttr(view.attributes["order"]))


@dataclass(frozen=True)
class Unfinished:
    """A tile's main loop, its last dot still running: the accumulator, the last slot (i32), where
    the next tile starts."""

    accumulator: ir.Value
    last_slot: ir.Value
    cursor: Cursor


def build_whole_loop(nest: PersistentNest, ring: Ring, tile: Tile, cursor: Cursor) -> Unfinished:
    """All dots of a tile. A slot is handed back when the dot after its own has been issued."""
    inner, clones, builder = nest.inner, tile.clones.nested(), tile.builder
    bounds = clones.of((inner.lower_bound, inner.upper_bound, inner.step))
    accumulator = clones[nest.carried_accumulator.initial]
    initial = [accumulator, cursor.slot, *cursor.values]
    loop = builder.loop(
        bounds[0], bounds[1], bounds[2], initial, {**comparison_of(inner), **_NOT_PIPELINED}
    )
    step, accumulator, previous, slot, parity = loop.body.arguments
    inside = builder.inside(loop.body)
    here, window = Cursor(slot, parity), Window.whole(nest.tile[:2])
    dot = _dot(nest, ring, here, window, accumulator, inside, clones)
    (waited,) = inside.dot_wait([dot], pendings=1)
    is_later = inside.compare("ne", step, bounds[0])
    inside.arrive_barrier(inside.slot(ring.empty, previous), is_later)
    inside.yield_([waited, slot, *here.next(inside, ring.slots).values])
    results = list(loop.operation.results)
    return Unfinished(results[0], results[1], Cursor(results[2], results[3]))


def finish(nest: PersistentNest, ring: Ring, tile: Tile, loop: Unfinished) -> ir.Value:
    """Wait for the last dot and hand its slot back; returns the accumulator.

    It stands for the source's from then on.
    """
    builder, inner = tile.builder, nest.inner
    (accumulator,) = builder.dot_wait([loop.accumulator], pendings=0)
    lower, upper = tile.clones.of((inner.lower_bound, inner.upper_bound))
    runs = builder.compare("ult" if counts_unsigned(inner) else "slt", lower, upper)
    builder.arrive_barrier(builder.slot(ring.empty, loop.last_slot), runs)
    tile.clones[nest.carried_accumulator.result] = accumulator
    return accumulator
