"""Consumers that compute a tile's epilogue as it stands, with the source's warps: the window is the
whole tile and goes in one piece, in the layouts of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilepass.ir.build_async import AsyncBuilder, buffer_of
from tilepass.ir.engine import ir

from .description import PersistentNest
from .epilogue import LoadedTiles, Staging, build_epilogue, build_tile_operations, consumer_needs
from .main_loop import Unfinished, build_whole_loop, finish
from .plan import Plan
from .rings import (
    Cursor,
    Ring,
    Rings,
    allocate_barriers,
    allocate_ring,
    cursor_at,
    cursors_of,
    reading,
)
from .tiles import Tile, Turns, build_tile_loop, steps_of_a_tile


@dataclass(frozen=True)
class WholeConsumer:
    """A consumer of whole tiles. `staging` holds an array of `buffers` for each TMA store of it or
    of all groups; `turns` where there are several groups."""

    nest: PersistentNest
    rings: Rings
    staging: tuple[ir.Value, ...]
    buffers: int
    turns: Turns | None

    def consume(self, builder: AsyncBuilder) -> None:
        """The consumer's region: main loop and epilogue of every tile."""
        run = self._every_tile if self.turns is None else self._every_other_tile
        run(builder)
        if self.staging:
            builder.tma_store_wait(0)

    def _every_tile(self, builder: AsyncBuilder) -> None:
        needed = consumer_needs(self.nest)
        state = [*reading(builder).values] * (2 + len(self.rings.tile_loads))

        def build(tile: Tile) -> Sequence[ir.Value]:
            operands, staged, *loads = cursors_of(tile.state)
            loaded = LoadedTiles(self.rings.tile_loads, loads)
            build_tile_operations(self.nest, tile, loaded, needed)
            main = build_whole_loop(self.nest, self.rings.operands, tile, operands)
            self._finish(main, tile, loaded, staged.slot)
            cursors = [main.cursor, staged.next(tile.builder, self.buffers), *loaded.cursors]
            return [value for cursor in cursors for value in cursor.values]

        build_tile_loop(self.nest, builder, state, build)

    def _every_other_tile(self, builder: AsyncBuilder) -> None:
        nest, turns, rings = self.nest, self.turns, self.rings
        assert turns is not None
        steps, tiles = steps_of_a_tile(nest, builder), turns.tiles(builder)
        needed = consumer_needs(nest)

        def build(tile: Tile) -> Sequence[ir.Value]:
            inside, (index, turn, parity) = tile.builder, tile.state
            # One slot for each group: the tiles go to the groups in turn.
            slot = inside.constant(turns.group)
            loaded = LoadedTiles(rings.tile_loads, [Cursor(slot, parity) for _ in rings.tile_loads])
            build_tile_operations(nest, tile, loaded, needed)
            turns.take(turn, inside)
            cursor = cursor_at(index, rings.operands.slots, inside)
            main = build_whole_loop(nest, rings.operands, tile, cursor)
            turns.hand_over(inside)
            self._finish(main, tile, loaded, slot)
            parity = inside.integer("xori", parity, inside.constant(1))
            return [*turns.next(index, turn, steps, inside), parity]

        state = [*turns.start(steps, builder), builder.constant(0)]
        build_tile_loop(nest, builder, state, build, tiles)

    def _finish(self, main: Unfinished, tile: Tile, loaded: LoadedTiles, slot: ir.Value) -> None:
        finish(self.nest, self.rings.operands, tile, main)
        build_epilogue(self.nest, tile, loaded, Staging(self.staging, self.buffers, slot))


def whole_consumers(
    nest: PersistentNest, plan: Plan, operands: Ring, builder: AsyncBuilder
) -> tuple[list[WholeConsumer], Rings]:
    """A consumer for each group; the rings that the producer fills for them."""
    groups = plan.groups
    tiles = [allocate_ring(builder, [load.block], groups) for load in nest.tile_loads]
    rings = Rings(operands, tuple(tiles))
    buffers = [buffer_of(store.block, groups * plan.c_buffers) for store in nest.tma_stores]
    staging = tuple(builder.local_alloc(builder.type(each)) for each in buffers)
    barriers = allocate_barriers(builder, groups) if groups > 1 else None
    consumers = [
        WholeConsumer(
            nest,
            rings,
            staging,
            plan.c_buffers,
            None if barriers is None else Turns(nest, barriers, group),
        )
        for group in range(groups)
    ]
    return consumers, rings
