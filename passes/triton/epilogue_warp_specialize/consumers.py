"""Consumers whose epilogues go in pieces: one with all of the tile, or several with a window each.

    default      consumer 0                                             4 or 8 warps
    partition 0  consumer 1: the other half, or every other tile        4 warps
    then         producer: A and B                                      1 warp
    then         where the epilogue loads tiles: a warp for each consumer

`split-consumer`: both read the same slots: B whole, A by halves (or the other way round where M
cannot be cut), so that a slot is empty after two arrivals. Nothing else holds them together: one's
epilogue runs under the other's main loop. `alternate_epilogues` makes sure that it does. A turn is
handed over when the first dot of a consumer's next tile is issued, and taken before an epilogue;
each turn is a barrier with one arrival a tile:

    consumer 0:  dots 0 | wait turn[0]  epilogue 0 | first dot of 1, arrive turn[1] | dots 1 ...
    consumer 1:  dots 0 | wait turn[1] ............................ epilogue 0 | ...

The first wait of consumer 0 passes, as it asks for the parity before the first phase; at its end
it arrives once more, for the last epilogue of consumer 1. So a wait that does not pass has one
arrival, and neither can be ahead by more than one: the parity is unambiguous.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from tilepass.ir.build import set_attribute
from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.engine import Operation, ir
from tilepass.ir.loops import FOR

from .axes import ACCUMULATOR
from .clones import Clones, TileClone
from .description import PersistentNest
from .epilogue import (
    LateState,
    PieceBuffers,
    PieceRun,
    allocate_pieces,
    build_piece_loads,
    next_slot,
)
from .main_loop import Dots, build_main_loop
from .order import tile_slice
from .plan import Part, Plan, scalar_roots, scalars_of
from .rings import Ring, allocate_barriers, cursor_at, cursors_of, filling, reading
from .tiles import Tile, TileRange, Turns, build_tile_loop, less_than, steps_of_a_tile


@dataclass(frozen=True)
class Consumer(ABC):
    """One consumer and the warp that feeds its epilogue: its part of each tile, its number, the
    ring of the dot's operands, its own buffers."""

    nest: PersistentNest
    part: Part
    index: int
    operands: Ring
    buffers: PieceBuffers

    @abstractmethod
    def consume(self, builder: AsyncBuilder) -> None:
        """The consumer's region: main loop and epilogue of every tile."""

    def tiles(self, builder: AsyncBuilder) -> TileRange | None:
        """Which tiles it computes, None for all of the program's."""
        del builder
        return None

    def feed(self, builder: AsyncBuilder) -> None:
        """The region of the warp that brings the tile loads' pieces."""
        nest = self.nest
        roots = [value for load in nest.tile_loads for value in load.coordinates]
        needed = tile_slice(nest, roots)
        state = [*filling(builder).values] * len(self.buffers.rings)

        def build(tile: Tile) -> Sequence[ir.Value]:
            for each in (*nest.tile_operations, *nest.epilogue):
                if each in needed:
                    tile.clones.copy(each, tile.builder)
            cursors = cursors_of(tile.state)
            after = build_piece_loads(self.part.pieces, self.buffers, tile, cursors)
            return [value for cursor in after for value in cursor.values]

        build_tile_loop(nest, builder, state, build, self.tiles(builder))

    def begin(self, tile: Tile) -> tuple[PieceRun, set[Operation]]:
        """What stands before a tile's main loop: the scalars that it needs, rows on their way."""
        # Triton would pipeline the tile loop, as the first dot of a tile is in this loop itself.
        loop = tile.builder.place.block.owner.operation
        assert loop.name == FOR
        set_attribute(loop, "tt.num_stages", "0 : i32")
        epilogue = PieceRun(self.part.pieces, self.buffers, tile)
        first = self.scalars([*self.main_loop_roots(), *self.part.pieces.rows.operands])
        self.copy(first, tile)
        epilogue.load_rows()
        return epilogue, first

    def begin_epilogue(self, tile: Tile, first: set[Operation]) -> None:
        """The other scalars. A tile's coordinates are divisions: behind the main loop they are
        computed while another consumer has the turn; before it the first dot would come after
        them."""
        every = self.scalars([*self.main_loop_roots(), *scalar_roots(self.nest, self.part)])
        self.copy(every - first, tile)

    def main_loop_roots(self) -> list[ir.Value]:
        inner = self.nest.inner
        initial = scalars_of(self.part.initial.needed)
        return [inner.lower_bound, inner.upper_bound, inner.step, *initial]

    def scalars(self, roots: Sequence[ir.Value]) -> set[Operation]:
        """The operations of the tile loop's body that scalars are computed from."""
        return tile_slice(self.nest, roots) - {self.nest.inner.operation}

    def copy(self, operations: set[Operation], tile: Tile) -> None:
        """Copies of these in a trip of the tile loop, in program order."""
        for each in (*self.nest.tile_operations, *self.nest.epilogue):
            if each in operations:
                tile.clones.copy(each, tile.builder)

    def initial(self, tile: Tile) -> ir.Value:
        """The accumulator before the first step, in the layout that the consumer's warps have."""
        nest, part = self.nest, self.part
        clone = TileClone(part.initial, part.window, part.layouts, tile.clones.__getitem__)
        for needed in part.initial.needed:
            clone.clone(needed, tile.builder)
        return clone.value(nest.carried_accumulator.initial, ACCUMULATOR)


def window_consumers(
    nest: PersistentNest, plan: Plan, operands: Ring, builder: AsyncBuilder
) -> list[Consumer]:
    """A consumer for each part of a plan, with turns and buffers."""
    taking_turns = plan.groups > 1 or plan.alternate_epilogues
    barriers = allocate_barriers(builder, len(plan.parts)) if taking_turns else None
    buffers = [
        allocate_pieces(part.pieces, plan.c_buffers, plan.in_place, builder) for part in plan.parts
    ]
    found: list[Consumer] = []
    for index, (part, own) in enumerate(zip(plan.parts, buffers, strict=True)):
        if barriers is not None and plan.groups > 1:
            turns = Turns(nest, barriers, index)
            found.append(_EveryOtherTile(nest, part, index, operands, own, turns))
        else:
            late = plan.late_subtiles
            found.append(_EveryTile(nest, part, index, operands, own, barriers, late))
    return found


@dataclass(frozen=True)
class _EveryTile(Consumer):
    """A consumer that has a part of every tile; `late` pieces of it wait for the next tile."""

    turns: ir.Value | None
    late: int

    def consume(self, builder: AsyncBuilder) -> None:
        """The consumer's region: main loop and epilogue of every tile."""
        start = reading(builder)
        loaded = [*start.values] * len(self.buffers.rings)
        first_buffer, turn = builder.constant(0), builder.constant(1 - self.index)
        late = LateState.nothing(self.part.pieces, self.late, self.nest, builder)
        if self.late:
            self.part.pieces.rows.clear(self.buffers.rows, builder)
        state = [*start.values, *loaded, first_buffer, turn, *late.values]
        state = build_tile_loop(self.nest, builder, state, self._tile)
        if self.turns is not None and self.index == 0:
            builder.arrive_barrier(self._turn(builder, 1))
        state, late = LateState.split(state, self.late)
        if self.late:
            self._run_last(late, state[-2], builder)
        if self.buffers.staging:
            builder.tma_store_wait(0)

    def _tile(self, tile: Tile) -> Sequence[ir.Value]:
        nest, builder = self.nest, tile.builder
        state, late = LateState.split(tile.state, self.late)
        *state, staged, turn = state
        operands, *loaded = cursors_of(state)
        epilogue, first = self.begin(tile)
        current, outer = tile.clones[nest.outer.induction_variable], nest.outer
        is_later = builder.compare("ne", current, outer.lower_bound)

        def behind_first_dot(inside: AsyncBuilder) -> None:
            if self.turns is not None:
                inside.arrive_barrier(self._turn(inside, 1 - self.index), is_later)
            epilogue.hand_back(inside, is_later)
            self._run_late(late, staged, is_later, inside)
            epilogue.keep_rows(inside)

        dots = Dots(self.part.window, self.initial(tile), behind_first_dot)
        accumulator, operands = build_main_loop(nest, self.operands, tile, operands, dots)
        self.begin_epilogue(tile, first)
        if self.turns is not None:
            builder.wait_barrier(self._turn(builder, self.index), turn)
            turn = builder.integer("xori", turn, builder.constant(1))
        columns = epilogue.columns(accumulator)
        now = len(columns) - self.late
        for _ in range(self.late):
            staged = next_slot(builder, staged, self.buffers.count)
        staged, loaded = epilogue.run(columns[:now], 0, staged, loaded)
        late = LateState(tuple(columns[now:]), current if self.late else None)
        cursors = [value for cursor in (operands, *loaded) for value in cursor.values]
        return [*cursors, staged, turn, *late.values]

    def _run_last(self, late: LateState, staged: ir.Value, builder: AsyncBuilder) -> None:
        """The late pieces of the last tile. A program without tiles must not even load what they
        need: its tile's number is beyond the arrays."""
        outer = self.nest.outer
        any_tile = builder.compare(less_than(outer), outer.lower_bound, outer.upper_bound)
        _, then, otherwise = builder.if_(any_tile)
        inside = builder.inside(then)
        self._run_late(late, staged, None, inside)
        inside.yield_()
        builder.inside(otherwise).yield_()

    def _run_late(
        self, late: LateState, staged: ir.Value, is_real: ir.Value | None, builder: AsyncBuilder
    ) -> None:
        """The pieces that are late, of the tile before; `is_real`: there was one (None: surely)."""
        if late.tile is None:
            return
        tile = Tile(builder, Clones(), ())
        tile.clones[self.nest.outer.induction_variable] = late.tile
        self.copy(self.scalars(scalar_roots(self.nest, self.part)), tile)
        run = PieceRun(self.part.pieces, self.buffers, tile, is_real)
        run.run(late.columns, len(self.part.pieces.windows) - self.late, staged, ())

    def _turn(self, builder: AsyncBuilder, index: int) -> ir.Value:
        assert self.turns is not None
        return builder.slot(self.turns, builder.constant(index))


@dataclass(frozen=True)
class _EveryOtherTile(Consumer):
    """One of the two groups: its part is every other tile, whole."""

    turns: Turns

    def tiles(self, builder: AsyncBuilder) -> TileRange:
        return self.turns.tiles(builder)

    def consume(self, builder: AsyncBuilder) -> None:
        """The group's region."""
        steps, tiles = steps_of_a_tile(self.nest, builder), self.tiles(builder)
        loaded = [*reading(builder).values] * len(self.buffers.rings)
        state = [*self.turns.start(steps, builder), builder.constant(0), *loaded]

        def build(tile: Tile) -> Sequence[ir.Value]:
            return self._tile(tile, steps, tiles)

        build_tile_loop(self.nest, builder, state, build, tiles)
        if self.buffers.staging:
            builder.tma_store_wait(0)

    def _tile(self, tile: Tile, steps: ir.Value, tiles: TileRange) -> Sequence[ir.Value]:
        nest, builder, turns = self.nest, tile.builder, self.turns
        index, turn, staged, *state = tile.state
        epilogue, first = self.begin(tile)
        current = tile.clones[nest.outer.induction_variable]
        is_later = builder.compare("ne", current, tiles.lower_bound)
        initial = self.initial(tile)

        def behind_first_dot(inside: AsyncBuilder) -> None:
            epilogue.hand_back(inside, is_later)
            epilogue.keep_rows(inside)

        dots = Dots(self.part.window, initial, behind_first_dot, turns.hand_over)
        turns.take(turn, builder)
        cursor = cursor_at(index, self.operands.slots, builder)
        accumulator, _ = build_main_loop(nest, self.operands, tile, cursor, dots)
        self.begin_epilogue(tile, first)
        columns = epilogue.columns(accumulator)
        staged, loaded = epilogue.run(columns, 0, staged, cursors_of(state))
        cursors = [value for cursor in loaded for value in cursor.values]
        return [*turns.next(index, turn, steps, builder), staged, *cursors]
