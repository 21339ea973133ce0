"""The tile loop as each partition runs it: all tiles, or every other one in turn.

Two groups of warps that compute every other tile, their main loops in turn.

    group 0:  dots of tile 0 | epilogue 0 ............. | dots of tile 2 | epilogue 2 ...
    group 1:                 | dots of tile 1 | epilogue 1 ............. | dots of tile 3 ...

Where a group stands in the ring follows from the number of steps that all tiles before took: it
does not see the other's. Without turns a group could wait a whole ring early, where the parity of
the phase before is the same. A turn is handed over when the last dot of a tile is issued; each turn
is a barrier with one arrival for every tile of the other group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilepass.analysis.trip_count import counts_unsigned
from tilepass.core.refusal import Refusal
from tilepass.ir.build import Predicate
from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.engine import ir
from tilepass.ir.loops import Loop, backward_slice, defining_operation

from .clones import Clones
from .description import PersistentNest
from .partitions import is_repeatable
from .plan import GROUPS

_UNSIGNED = "unsignedCmp"


@dataclass(frozen=True)
class Tile:
    """One trip of a partition's tile loop: where it is built, its values, what it carries."""

    builder: AsyncBuilder
    clones: Clones
    state: tuple[ir.Value, ...]


@dataclass(frozen=True)
class TileRange:
    """Which tiles a partition computes, where it is not all of the program's."""

    lower_bound: ir.Value
    step: ir.Value


def build_tile_loop(
    nest: PersistentNest,
    builder: AsyncBuilder,
    state: Sequence[ir.Value],
    build: Callable[[Tile], Sequence[ir.Value]],
    tiles: TileRange | None = None,
) -> list[ir.Value]:
    """A tile loop that carries `state` beside what the source's carries; returns it at the end.

    `build` fills a trip, copies of all that the source's loop yields included, and returns the
    state of the next.
    """
    outer = nest.outer
    lower = tiles.lower_bound if tiles else outer.lower_bound
    step = tiles.step if tiles else outer.step
    carried = [each.initial for each in outer.carried]
    loop = builder.loop(lower, outer.upper_bound, step, [*state, *carried], comparison_of(outer))
    arguments = list(loop.body.arguments)
    clones = Clones()
    clones[outer.induction_variable] = arguments[0]
    for source, argument in zip(outer.carried, arguments[1 + len(state) :], strict=True):
        clones[source.argument] = argument
    inside = builder.inside(loop.body)
    after = build(Tile(inside, clones, tuple(arguments[1 : 1 + len(state)])))
    inside.yield_([*after, *clones.of(each.yielded for each in outer.carried)])
    return list[ir.Value](loop.operation.results)[: len(state)]


def less_than(loop: Loop) -> Predicate:
    """The predicate of `arith.cmpi` that says whether a loop has another trip."""
    return "ult" if counts_unsigned(loop) else "slt"


def comparison_of(loop: Loop) -> dict[str, ir.Attribute | str]:
    """The attribute of a copy of a loop that says how its bounds compare; no others are kept.

    `tt.flatten` and `tt.warp_specialize` have been taken care of, and `tt.num_stages` is for loads
    that the copies do not have.
    """
    attribute = loop.attribute(_UNSIGNED)
    return {} if attribute is None else {_UNSIGNED: attribute}


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
        both = builder.integer("muli", steps, builder.constant(GROUPS))
        return [
            builder.integer("addi", index, both),
            builder.integer("xori", parity, builder.constant(1)),
        ]

    def take(self, parity: ir.Value, builder: AsyncBuilder) -> None:
        builder.wait_barrier(builder.slot(self.barriers, builder.constant(self.group)), parity)

    def hand_over(self, builder: AsyncBuilder) -> None:
        """The other group's turn begins."""
        builder.arrive_barrier(builder.slot(self.barriers, builder.constant(1 - self.group)))


def steps_of_a_tile(nest: PersistentNest, builder: AsyncBuilder) -> ir.Value:
    """The inner loop's trip count, i32, computed before the tile loop."""
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
