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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tilepass.ir.build import set_attribute
from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.effects import is_pure
from tilepass.ir.engine import Operation, ir
from tilepass.ir.loops import FOR
from tilepass.passes.triton.epilogue_warp_specialize.budget import Limits, requested_registers
from tilepass.passes.triton.epilogue_warp_specialize.clones import Clones, tile_slice
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, Refusal
from tilepass.passes.triton.epilogue_warp_specialize.footprint import OVERHEAD_BYTES, ring_bytes
from tilepass.passes.triton.epilogue_warp_specialize.late import (
    LateState,
    late_counts,
    turn_choices,
)
from tilepass.passes.triton.epilogue_warp_specialize.machine import Machine
from tilepass.passes.triton.epilogue_warp_specialize.options import (
    Options,
    Plan,
    SchemeName,
    Subtiles,
)
from tilepass.passes.triton.epilogue_warp_specialize.partitions import Partition, warp_specialize
from tilepass.passes.triton.epilogue_warp_specialize.pieces import (
    PieceBuffers,
    PieceRun,
    allocate_pieces,
    build_piece_loads,
    next_slot,
)
from tilepass.passes.triton.epilogue_warp_specialize.producer import (
    Rings,
    build_producer,
    cursors_of,
)
from tilepass.passes.triton.epilogue_warp_specialize.rings import (
    BARRIER_BYTES,
    Ring,
    allocate_barriers,
    allocate_ring,
    filling,
    reading,
)
from tilepass.passes.triton.epilogue_warp_specialize.schemes import stage_counts
from tilepass.passes.triton.epilogue_warp_specialize.share_loop import Share, build_share
from tilepass.passes.triton.epilogue_warp_specialize.share_parts import (
    Part,
    Slices,
    foreign_obstacle,
    has_tensors,
    parts_of,
    scalar_roots,
    scalars_of,
)
from tilepass.passes.triton.epilogue_warp_specialize.tile_axes import (
    ACCUMULATOR,
)
from tilepass.passes.triton.epilogue_warp_specialize.tile_boxes import retype
from tilepass.passes.triton.epilogue_warp_specialize.tile_clone import TileClone
from tilepass.passes.triton.epilogue_warp_specialize.tile_shapes import Window
from tilepass.passes.triton.epilogue_warp_specialize.tiles import (
    Tile,
    build_tile_loop,
    less_than,
)

SUBTILES: tuple[Subtiles, ...] = (1, 2, 4)


@dataclass(frozen=True)
class SharePlan(Plan):
    """A plan, and what each consumer does by it.

    `in_place`: pieces are stored from where they were loaded to (see PieceBuffers).
    """

    in_place: bool = False
    parts: tuple[Part, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"{super().__str__()}, in place" if self.in_place else super().__str__()


def share_plans(
    name: SchemeName,
    nest: PersistentNest,
    options: Options,
    windows: Sequence[Window],
    warps: int,
    registers: int,
) -> Iterator[Plan]:
    """The plans that the options allow for consumers of these windows, each with so many warps and
    registers a thread; best first."""
    slices = Slices.of(nest)
    if isinstance(slices, Refusal):
        return iter(())
    found: list[SharePlan] = []
    for subtiles in SUBTILES:
        if options.epilogue_subtile not in ("auto", subtiles):
            continue
        parts = parts_of(nest, slices, windows, warps, subtiles)
        if isinstance(parts, Refusal) or foreign_obstacle(nest, parts[0]):
            continue
        found += [
            SharePlan(name, stages, buffers, subtiles, late, turns, place, parts)
            for buffers, place in _buffer_counts(options, parts[0], subtiles)
            for late in late_counts(options, nest, parts[0], registers)
            for turns in turn_choices(options, parts, late)
            for stages in stage_counts(options)
        ]
    return iter(sorted(found, key=_rank))


# Slots for the dot's operands beyond which another one gains less than overlapped stores do, and
# below which TMA's latency shows.
_ENOUGH_STAGES, _FEWEST_STAGES = 4, 3


def _rank(plan: SharePlan) -> tuple[int, ...]:
    """Best first: enough stages to hide TMA's latency, loaded tiles that are there before they are
    needed, a piece's store beside the next piece, more late pieces, more stages, larger pieces."""
    pieces = -plan.epilogue_subtile if plan.in_place else plan.epilogue_subtile
    return (
        -min(plan.stages, _FEWEST_STAGES),
        -plan.in_place,
        -min(plan.stages, _ENOUGH_STAGES),
        -min(plan.c_buffers, 2),
        -plan.late_subtiles,
        -plan.stages,
        pieces,
    )


def _buffer_counts(options: Options, part: Part, subtiles: Subtiles) -> Sequence[tuple[int, bool]]:
    """Numbers of buffers for pieces that the options allow; whether loads and stores share them."""
    in_place = [(subtiles, True)] if part.pieces.can_be_in_place else []
    if options.c_buffers == "auto":
        return [(1, False), (2, False), *in_place]
    apart = [(options.c_buffers, False)] if options.c_buffers > 0 else []
    return [*apart, *(each for each in in_place if each[0] == options.c_buffers)]


def share_bytes(nest: PersistentNest, plan: SharePlan) -> int:
    """Shared memory that a plan takes, in bytes."""
    own = [
        part.pieces.buffer_bytes(plan.c_buffers, plan.in_place) + part.pieces.scratch_bytes
        for part in plan.parts
    ]
    turns = len(plan.parts) * BARRIER_BYTES
    return ring_bytes([nest.stage_bytes], plan.stages) + sum(own) + turns + OVERHEAD_BYTES


def build_shares(nest: PersistentNest, plan: SharePlan, machine: Machine) -> None:
    """Rewrite the nest in place."""
    parts = plan.parts
    retype(parts[0].pieces.boxes, machine.triton_version, nest.function)
    builder = machine.builder_before(nest)
    blocks = [load.block for load in nest.loads]
    operands = allocate_ring(builder, blocks, plan.stages, readers=len(parts))
    turns = allocate_barriers(builder, len(parts)) if plan.alternate_epilogues else None
    buffers = [
        allocate_pieces(part.pieces, plan.c_buffers, plan.in_place, builder) for part in parts
    ]
    consumers = [
        _Consumer(nest, part, index, operands, own, turns, plan.late_subtiles)
        for index, (part, own) in enumerate(zip(parts, buffers, strict=True))
    ]

    def produce(inside: AsyncBuilder) -> None:
        build_producer(replace(nest, tile_loads=()), Rings(operands), inside)

    feeders = consumers if nest.tile_loads else []
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


def share_registers(nest: PersistentNest, warps: int, consumers: int, limits: Limits) -> int:
    """The registers that a thread of each consumer has."""
    # One consumer alone, too, has what the warps that only copy leave.
    others = other_warps(nest, warps, consumers)
    available, *_ = requested_registers(limits, 0, [(warps, True), *others])
    return available


def other_warps(nest: PersistentNest, warps: int, consumers: int) -> list[tuple[int, bool]]:
    """The warps beside those of consumer 0, and whether they compute."""
    feeders = consumers if nest.tile_loads else 0
    return [*[(warps, True)] * (consumers - 1), *[(1, False)] * (1 + feeders)]


@dataclass(frozen=True)
class _Consumer:
    """One consumer and the warp that feeds its epilogue."""

    nest: PersistentNest
    part: Part
    index: int
    operands: Ring
    buffers: PieceBuffers
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
        outer = self.nest.outer
        any_tile = builder.compare(less_than(outer), outer.lower_bound, outer.upper_bound)
        self._run_late(late, state[-2], any_tile, builder)
        if self.buffers.staging:
            builder.tma_store_wait(0)

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

        build_tile_loop(nest, builder, state, build)

    def _tile(self, tile: Tile) -> Sequence[ir.Value]:
        nest, builder = self.nest, tile.builder
        # The first dot of a tile is in this loop itself.
        set_attribute(_loop_around(builder), "tt.num_stages", "0 : i32")
        state, late = LateState.split(tile.state, self.late)
        *state, staged, turn = state
        operands, *loaded = cursors_of(state)
        epilogue = PieceRun(self.part.pieces, self.buffers, tile)
        first = self._scalars([*self._main_loop_roots(), *self.part.pieces.rows.operands])
        self._copy(first, tile)
        epilogue.load_rows()
        current, outer = tile.clones[nest.outer.induction_variable], nest.outer
        is_later = builder.compare("ne", current, outer.lower_bound)

        def behind_first_dot(inside: AsyncBuilder) -> None:
            if self.turns is not None:
                inside.arrive_barrier(self._turn(inside, 1 - self.index), is_later)
            epilogue.hand_back(inside, is_later)
            self._run_late(late, staged, is_later, inside)
            epilogue.keep_rows(inside)

        share = Share(self.part.window, self._initial(tile), behind_first_dot)
        accumulator, operands = build_share(nest, self.operands, tile, operands, share)
        # A tile's coordinates are divisions: behind the main loop they are computed while the other
        # consumer has the turn, in front of it the first dot would come after them.
        every = self._scalars([*self._main_loop_roots(), *scalar_roots(nest, self.part)])
        self._copy(every - first, tile)
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

    def _run_late(
        self, late: LateState, staged: ir.Value, is_real: ir.Value, builder: AsyncBuilder
    ) -> None:
        """The pieces that are late, of the tile before; `is_real`: there was one."""
        if late.tile is None:
            return
        tile = Tile(builder, Clones(), ())
        tile.clones[self.nest.outer.induction_variable] = late.tile
        self._copy(self._scalars(scalar_roots(self.nest, self.part)), tile)
        run = PieceRun(self.part.pieces, self.buffers, tile, is_real)
        run.run(late.columns, len(self.part.pieces.windows) - self.late, staged, ())

    def _main_loop_roots(self) -> list[ir.Value]:
        """The scalars that the main loop needs."""
        inner = self.nest.inner
        initial = scalars_of(self.part.initial.needed)
        return [inner.lower_bound, inner.upper_bound, inner.step, *initial]

    def _scalars(self, roots: Sequence[ir.Value]) -> set[Operation]:
        """The operations of the tile loop's body that scalars are computed from."""
        return tile_slice(self.nest, roots) - {self.nest.inner.operation}

    def _copy(self, operations: set[Operation], tile: Tile) -> None:
        for each in (*self.nest.tile_operations, *self.nest.epilogue):
            if each in operations:
                tile.clones.copy(each, tile.builder)

    def _initial(self, tile: Tile) -> ir.Value:
        nest, part = self.nest, self.part
        clone = TileClone(part.initial, part.window, part.layouts, tile.clones.__getitem__)
        for needed in part.initial.needed:
            clone.clone(needed, tile.builder)
        return clone.value(nest.carried_accumulator.initial, ACCUMULATOR)

    def _turn(self, builder: AsyncBuilder, index: int) -> ir.Value:
        assert self.turns is not None
        return builder.slot(self.turns, builder.constant(index))


def _erase_unused(operations: Sequence[Operation]) -> None:
    """Erase tensors that nothing uses any more: their layouts are for other numbers of warps."""
    for each in reversed(operations):
        used = any(True for result in each.results for _ in result.uses)
        if has_tensors(each) and is_pure(each) and not used:
            each.erase()


def _loop_around(builder: AsyncBuilder) -> Operation:
    owner = builder.place.block.owner.operation
    assert owner.name == FOR
    return owner
