"""Consumers that share a tile: one with all of it or several with a window each; their epilogues
go in pieces.

    default            consumer 0
    partitions 0 ...   the other consumers
    then               the producer of the dot's operands: 1 warp
    then               where the epilogue loads tiles: 1 warp for each consumer

All consumers read the same slots, so that a slot is empty after as many arrivals. Nothing else
holds them together, unless they take turns (see split_consumer).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tilepass.ir.build import set_attribute
from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.effects import Effect, effects_of
from tilepass.ir.engine import Operation, ir
from tilepass.passes.triton.epilogue_warp_specialize.budget import requested_registers
from tilepass.passes.triton.epilogue_warp_specialize.clones import Clones
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest
from tilepass.passes.triton.epilogue_warp_specialize.late import LateState
from tilepass.passes.triton.epilogue_warp_specialize.machine import Machine
from tilepass.passes.triton.epilogue_warp_specialize.partitions import Partition, warp_specialize
from tilepass.passes.triton.epilogue_warp_specialize.pieces import (
    PieceBuffers,
    PieceRun,
    allocate_pieces,
    next_slot,
)
from tilepass.passes.triton.epilogue_warp_specialize.producer import (
    Rings,
    build_producer,
    cursors_of,
)
from tilepass.passes.triton.epilogue_warp_specialize.rings import (
    Ring,
    allocate_barriers,
    allocate_ring,
    reading,
)
from tilepass.passes.triton.epilogue_warp_specialize.scalars import touches_tensors
from tilepass.passes.triton.epilogue_warp_specialize.share_consumer import Consumer, not_pipelined
from tilepass.passes.triton.epilogue_warp_specialize.share_loop import Share, build_share
from tilepass.passes.triton.epilogue_warp_specialize.share_parts import scalar_roots
from tilepass.passes.triton.epilogue_warp_specialize.share_plans import SharePlan, other_warps
from tilepass.passes.triton.epilogue_warp_specialize.tile_boxes import retype
from tilepass.passes.triton.epilogue_warp_specialize.tiles import (
    Tile,
    build_tile_loop,
    less_than,
)


def build_shares(nest: PersistentNest, plan: SharePlan, machine: Machine) -> None:
    """Rewrite the nest in place: every consumer computes its part of each tile."""

    def make(builder: AsyncBuilder, operands: Ring) -> Sequence[Consumer]:
        turns = allocate_barriers(builder, len(plan.parts)) if plan.alternate_epilogues else None
        buffers = allocate_buffers(plan, builder)
        return [
            _Sharer(nest, part, index, operands, own, turns, plan.late_subtiles)
            for index, (part, own) in enumerate(zip(plan.parts, buffers, strict=True))
        ]

    build_consumers(nest, plan, machine, make, readers=len(plan.parts))


def allocate_buffers(plan: SharePlan, builder: AsyncBuilder) -> list[PieceBuffers]:
    """Each consumer's own."""
    return [
        allocate_pieces(part.pieces, plan.c_buffers, plan.in_place, builder) for part in plan.parts
    ]


def build_consumers(
    nest: PersistentNest,
    plan: SharePlan,
    machine: Machine,
    make: Callable[[AsyncBuilder, Ring], Sequence[Consumer]],
    *,
    readers: int,
) -> None:
    """Rewrite the nest in place for consumers that `make` builds on the ring of the dot's operands;
    so many of them read each slot."""
    parts = plan.parts
    retype(parts[0].pieces.boxes, machine.triton_version, nest.function)
    builder = machine.builder_before(nest)
    blocks = [load.block for load in nest.loads]
    operands = allocate_ring(builder, blocks, plan.stages, readers=readers)
    consumers = make(builder, operands)

    def produce(inside: AsyncBuilder) -> None:
        build_producer(replace(nest, tile_loads=()), Rings(operands), inside)

    feeders = consumers if nest.tile_loads else ()
    bodies = [*(each.consume for each in consumers[1:]), produce, *(each.feed for each in feeders)]
    warps = other_warps(nest, parts[0].warps, len(parts))
    registers = requested_registers(machine.limits, parts[0].warps, warps)
    partitions = [
        Partition(count, share, body)
        for (count, _), share, body in zip(warps, registers, bodies, strict=True)
    ]
    warp_specialize(builder, consumers[0].consume, partitions)
    nest.outer.operation.erase()
    _erase_unused(nest.prelude)
    module = nest.function.parent
    assert module is not None
    set_attribute(module.operation, "ttg.num-warps", f"{parts[0].warps} : i32")


@dataclass(frozen=True)
class _Sharer(Consumer):
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
        not_pipelined(tile)
        state, late = LateState.split(tile.state, self.late)
        *state, staged, turn = state
        operands, *loaded = cursors_of(state)
        epilogue = PieceRun(self.part.pieces, self.buffers, tile)
        first = self.scalars([*self.main_loop_roots(), *self.part.pieces.rows.operands])
        self.copy(first, tile)
        epilogue.load_rows()
        current, outer = tile.clones[nest.outer.induction_variable], nest.outer
        is_later = builder.compare("ne", current, outer.lower_bound)

        def behind_first_dot(inside: AsyncBuilder) -> None:
            if self.turns is not None:
                inside.arrive_barrier(self._turn(inside, 1 - self.index), is_later)
            epilogue.hand_back(inside, is_later)
            self._run_late(late, staged, is_later, inside)
            epilogue.keep_rows(inside)

        share = Share(self.part.window, self.initial(tile), behind_first_dot)
        accumulator, operands = build_share(nest, self.operands, tile, operands, share)
        # A tile's coordinates are divisions: behind the main loop they are computed while the other
        # consumer has the turn, in front of it the first dot would come after them.
        every = self.scalars([*self.main_loop_roots(), *scalar_roots(nest, self.part)])
        self.copy(every - first, tile)
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


def _erase_unused(operations: Sequence[Operation]) -> None:
    """Erase tensors that nothing uses any more: their layouts are for other numbers of warps."""
    for each in reversed(operations):
        used = any(True for result in each.results for _ in result.uses)
        only_reads = not effects_of(each) & ~Effect.READ
        if touches_tensors(each) and only_reads and not used:
            each.erase()
