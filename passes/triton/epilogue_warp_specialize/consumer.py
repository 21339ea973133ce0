"""The consumer's main loop: asynchronous dots on the slots that the producer fills."""

from __future__ import annotations

from dataclasses import dataclass

from tilepass.analysis.trip_count import counts_unsigned
from tilepass.ir.build import set_attribute
from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.engine import ir, plain
from tilepass.passes.triton.epilogue_warp_specialize.description import DotOperand, PersistentNest
from tilepass.passes.triton.epilogue_warp_specialize.rings import Cursor, Ring
from tilepass.passes.triton.epilogue_warp_specialize.tiles import Tile, comparison_of

# Without it tritongpu-pipeline waits for every dot behind it.
_NOT_PIPELINED = {"tt.num_stages": "0 : i32"}


@dataclass(frozen=True)
class Unfinished:
    """A tile's main loop, its last dot still running: the accumulator, the last slot (i32), where
    the next tile starts."""

    accumulator: ir.Value
    last_slot: ir.Value
    cursor: Cursor


def build_main_loop(nest: PersistentNest, ring: Ring, tile: Tile, cursor: Cursor) -> Unfinished:
    """All dots of a tile. A slot is handed back when the dot after its own has been issued."""
    inner, clones, builder = nest.inner, tile.clones.nested(), tile.builder
    bounds = clones.of((inner.lower_bound, inner.upper_bound, inner.step))
    accumulator = clones[nest.carried_accumulator.initial]
    initial = [accumulator, cursor.slot, *cursor.values]
    loop = builder.loop(
        bounds[0], bounds[1], bounds[2], initial, {**comparison_of(inner), **_NOT_PIPELINED}
    )
    step, accumulator, previous, slot, parity = (plain(each) for each in loop.body.arguments)
    inside = builder.inside(loop.body)
    clones[nest.carried_accumulator.argument] = accumulator
    here = Cursor(slot, parity)
    inside.wait_barrier(inside.slot(ring.full, slot), parity)
    for index, operand in enumerate((nest.a, nest.b)):
        clones[nest.dot.operands[index]] = _view(operand, ring, slot, inside)
    dot = clones.copy(nest.dot, inside)
    set_attribute(dot, "isAsync", "true")
    (waited,) = inside.dot_wait([plain(dot.results[0])], pendings=1)
    is_later = inside.compare("ne", step, bounds[0])
    inside.arrive_barrier(inside.slot(ring.empty, previous), is_later)
    inside.yield_([waited, slot, *here.next(inside, ring.slots).values])
    results = [plain(result) for result in loop.operation.results]
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


def _view(operand: DotOperand, ring: Ring, slot: ir.Value, builder: AsyncBuilder) -> ir.Value:
    buffer = builder.slot(ring.buffers[operand.load], slot)
    for view in operand.views:
        buffer = builder.view(view, buffer)
    return buffer
