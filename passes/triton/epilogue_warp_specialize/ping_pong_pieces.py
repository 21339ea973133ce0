"""`ping-pong` of groups of 4 warps whose epilogues go in pieces, whatever the source's warps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.engine import ir
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest
from tilepass.passes.triton.epilogue_warp_specialize.machine import Machine
from tilepass.passes.triton.epilogue_warp_specialize.pieces import PieceRun
from tilepass.passes.triton.epilogue_warp_specialize.producer import cursors_of
from tilepass.passes.triton.epilogue_warp_specialize.rings import (
    Ring,
    allocate_barriers,
    reading,
)
from tilepass.passes.triton.epilogue_warp_specialize.share_consumer import Consumer, not_pipelined
from tilepass.passes.triton.epilogue_warp_specialize.share_loop import Share, build_share
from tilepass.passes.triton.epilogue_warp_specialize.share_parts import scalar_roots
from tilepass.passes.triton.epilogue_warp_specialize.share_plans import SharePlan
from tilepass.passes.triton.epilogue_warp_specialize.shares import (
    allocate_buffers,
    build_consumers,
)
from tilepass.passes.triton.epilogue_warp_specialize.tiles import (
    Tile,
    TileRange,
    build_tile_loop,
)
from tilepass.passes.triton.epilogue_warp_specialize.turns import (
    GROUPS,
    Turns,
    cursor_at,
    steps_of_a_tile,
)


def build_pieces(nest: PersistentNest, plan: SharePlan, machine: Machine) -> None:
    """Rewrite the nest in place."""

    def make(builder: AsyncBuilder, operands: Ring) -> Sequence[Consumer]:
        barriers = allocate_barriers(builder, GROUPS)
        buffers = allocate_buffers(plan, builder)
        return [
            _Group(nest, part, index, operands, own, Turns(nest, barriers, index))
            for index, (part, own) in enumerate(zip(plan.parts, buffers, strict=True))
        ]

    # Each slot is of one tile, and each tile of one group.
    build_consumers(nest, plan, machine, make, readers=1)


@dataclass(frozen=True)
class _Group(Consumer):
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
        not_pipelined(tile)
        index, turn, staged, *state = tile.state
        epilogue = PieceRun(self.part.pieces, self.buffers, tile)
        first = self.scalars([*self.main_loop_roots(), *self.part.pieces.rows.operands])
        self.copy(first, tile)
        epilogue.load_rows()
        current = tile.clones[nest.outer.induction_variable]
        is_later = builder.compare("ne", current, tiles.lower_bound)
        initial = self.initial(tile)

        def behind_first_dot(inside: AsyncBuilder) -> None:
            epilogue.hand_back(inside, is_later)
            epilogue.keep_rows(inside)

        share = Share(self.part.window, initial, behind_first_dot, turns.hand_over)
        turns.take(turn, builder)
        cursor = cursor_at(index, self.operands.slots, builder)
        accumulator, _ = build_share(nest, self.operands, tile, cursor, share)
        # A tile's coordinates are divisions: in front of the main loop its turn would be longer.
        every = self.scalars([*self.main_loop_roots(), *scalar_roots(nest, self.part)])
        self.copy(every - first, tile)
        columns = epilogue.columns(accumulator)
        staged, loaded = epilogue.run(columns, 0, staged, cursors_of(state))
        cursors = [value for cursor in loaded for value in cursor.values]
        return [*turns.next(index, turn, steps, builder), staged, *cursors]
