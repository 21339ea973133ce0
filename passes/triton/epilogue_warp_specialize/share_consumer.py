"""What every consumer of a part of the tile is built from, whichever tiles it takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from tilepass.ir.build import set_attribute
from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.engine import Operation, ir
from tilepass.ir.loops import FOR
from tilepass.passes.triton.epilogue_warp_specialize.clones import tile_slice
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest
from tilepass.passes.triton.epilogue_warp_specialize.pieces import (
    PieceBuffers,
    build_piece_loads,
)
from tilepass.passes.triton.epilogue_warp_specialize.producer import cursors_of
from tilepass.passes.triton.epilogue_warp_specialize.rings import Ring, filling
from tilepass.passes.triton.epilogue_warp_specialize.share_parts import Part, scalars_of
from tilepass.passes.triton.epilogue_warp_specialize.tile_axes import ACCUMULATOR
from tilepass.passes.triton.epilogue_warp_specialize.tile_clone import TileClone
from tilepass.passes.triton.epilogue_warp_specialize.tiles import (
    Tile,
    TileRange,
    build_tile_loop,
)


@dataclass(frozen=True)
class Consumer(ABC):
    """One consumer and the warp that feeds its epilogue: its part of each tile, its number, the
    ring of the dot's operands, buffers of its own."""

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

    def main_loop_roots(self) -> list[ir.Value]:
        """The scalars that the main loop needs."""
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


def not_pipelined(tile: Tile) -> None:
    """Keep Triton from pipelining a tile loop: the first dot of a tile is in this loop itself."""
    loop = tile.builder.place.block.owner.operation
    assert loop.name == FOR
    set_attribute(loop, "tt.num_stages", "0 : i32")
