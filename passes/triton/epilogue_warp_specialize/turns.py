"""Two groups of warps that compute every other tile, their main loops in turn.

    group 0:  dots of tile 0 | epilogue 0 ............. | dots of tile 2 | epilogue 2 ...
    group 1:                 | dots of tile 1 | epilogue 1 ............. | dots of tile 3 ...

Where a group stands in the ring follows from the number of steps that all tiles before took: it
does not see the other's. Without turns a group could wait a whole ring early, where the parity of
the phase before is the same. A turn is handed over when the last dot of a tile is issued; each turn
is a barrier with one arrival for every tile of the other group.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilepass.analysis.trip_count import counts_unsigned
from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.engine import ir
from tilepass.ir.loops import backward_slice, defining_operation
from tilepass.passes.triton.epilogue_warp_specialize.clones import Clones
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, Refusal
from tilepass.passes.triton.epilogue_warp_specialize.partitions import is_repeatable
from tilepass.passes.triton.epilogue_warp_specialize.rings import Cursor
from tilepass.passes.triton.epilogue_warp_specialize.tiles import TileRange

GROUPS = 2


@dataclass(frozen=True)
class Turns:
    """A group's side of the turns: `barriers` has one for each group."""

    nest: PersistentNest
    barriers: ir.Value
    group: int

    def tiles(self, builder: AsyncBuilder) -> TileRange:
        """Every other tile, from the group's first one on."""
        outer = self.nest.outer
        kind = outer.step.type
        own, skipped = builder.constant(self.group, kind), builder.constant(GROUPS, kind)
        offset = builder.integer("muli", outer.step, own)
        return TileRange(
            builder.integer("addi", outer.lower_bound, offset),
            builder.integer("muli", outer.step, skipped),
        )

    def start(self, steps: ir.Value, builder: AsyncBuilder) -> list[ir.Value]:
        """What the tile loop carries: how many slots were filled before the tile, the parity of the
        turn to wait for. `steps` are those of a tile, all i32."""
        first = builder.integer("muli", steps, builder.constant(self.group))
        # The first group's first turn passes: it asks for the parity before the first phase.
        return [first, builder.constant(1 - self.group)]

    def next(
        self, index: ir.Value, parity: ir.Value, steps: ir.Value, builder: AsyncBuilder
    ) -> list[ir.Value]:
        """The same of the group's next tile."""
        both = builder.integer("muli", steps, builder.constant(GROUPS))
        return [
            builder.integer("addi", index, both),
            builder.integer("xori", parity, builder.constant(1)),
        ]

    def take(self, parity: ir.Value, builder: AsyncBuilder) -> None:
        """Wait for the group's turn."""
        builder.wait_barrier(builder.slot(self.barriers, builder.constant(self.group)), parity)

    def hand_over(self, builder: AsyncBuilder) -> None:
        """The other group's turn begins."""
        builder.arrive_barrier(builder.slot(self.barriers, builder.constant(1 - self.group)))


def cursor_at(index: ir.Value, slots: int, builder: AsyncBuilder) -> Cursor:
    """Where a reader stands that `index` fills have gone before."""
    count = builder.constant(slots)
    rounds = builder.integer("divsi", index, count)
    parity = builder.integer("andi", rounds, builder.constant(1))
    return Cursor(builder.integer("remsi", index, count), parity)


def steps_of_a_tile(nest: PersistentNest, builder: AsyncBuilder) -> ir.Value:
    """The inner loop's trip count, i32, computed in front of the tile loop."""
    inner, clones = nest.inner, Clones()
    bounds = (inner.lower_bound, inner.upper_bound, inner.step)
    sources = set(backward_slice(list(bounds), nest.outer.operation))
    for each in nest.tile_operations:
        if each in sources:
            clones.copy(each, builder)
    lower, upper, step = clones.of(bounds)
    span = builder.integer("subi", upper, lower)
    less = builder.integer("subi", step, builder.constant(1, step.type))
    trips = builder.integer("divsi", builder.integer("addi", span, less), step)
    trips = builder.integer("maxsi", trips, builder.constant(0, step.type))
    i32 = builder.type("i32")
    return trips if trips.type == i32 else builder.cast("trunci", trips, i32)


def wrong_steps(nest: PersistentNest) -> Refusal | None:
    """A group reckons where the other's tiles leave the ring: it must know their steps."""
    inner, outer = nest.inner, nest.outer
    if counts_unsigned(inner):
        return Refusal(inner.operation, "the inner loop's bounds are unsigned")
    if outer.carried:
        return Refusal(
            outer.operation,
            "the tile loop carries scalars, and each group runs every other trip alone",
            "compute them from the tile's number",
        )
    limits = [inner.lower_bound, inner.upper_bound, inner.step]
    sources = backward_slice(limits, outer.operation)
    used = [*limits, *(operand for each in sources for operand in each.operands)]
    varies = any(defining_operation(value) is None and outer.defines(value) for value in used)
    if varies or not all(map(is_repeatable, sources)):
        return Refusal(inner.operation, "the number of steps depends on the tile or on memory")
    return None
