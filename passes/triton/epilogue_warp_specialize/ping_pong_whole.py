"""`ping-pong` of epilogues that are computed as they stand, for sources with as many warps as a
group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilepass.ir.build_async import AsyncBuilder, buffer_of
from tilepass.ir.engine import ir, operations
from tilepass.ir.loops import backward_slice
from tilepass.passes.triton.epilogue_warp_specialize.budget import requested_registers
from tilepass.passes.triton.epilogue_warp_specialize.consumer import build_main_loop, finish
from tilepass.passes.triton.epilogue_warp_specialize.cooperative import Staging
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, Refusal
from tilepass.passes.triton.epilogue_warp_specialize.epilogue import (
    LoadedTiles,
    build_epilogue,
    build_tile_operations,
    consumer_needs,
)
from tilepass.passes.triton.epilogue_warp_specialize.footprint import OVERHEAD_BYTES, array_bytes
from tilepass.passes.triton.epilogue_warp_specialize.machine import Machine
from tilepass.passes.triton.epilogue_warp_specialize.options import Plan
from tilepass.passes.triton.epilogue_warp_specialize.partitions import (
    Partition,
    is_repeatable,
    warp_specialize,
)
from tilepass.passes.triton.epilogue_warp_specialize.producer import Rings, build_producer
from tilepass.passes.triton.epilogue_warp_specialize.rings import (
    Cursor,
    allocate_barriers,
    allocate_ring,
)
from tilepass.passes.triton.epilogue_warp_specialize.schemes import (
    accumulator_obstacle,
    rings_bytes,
)
from tilepass.passes.triton.epilogue_warp_specialize.tiles import Tile, build_tile_loop
from tilepass.passes.triton.epilogue_warp_specialize.turns import (
    GROUPS,
    Turns,
    cursor_at,
    steps_of_a_tile,
)


@dataclass(frozen=True)
class _Shared:
    """What the groups share: the rings, an array of staging buffers for each TMA store."""

    rings: Rings
    staging: tuple[ir.Value, ...]


def whole_obstacle(nest: PersistentNest, machine: Machine) -> Refusal | None:
    """Why groups of the source's warps cannot compute the epilogue as it stands."""
    return accumulator_obstacle(nest, machine) or _captured_tensor(nest)


def whole_bytes(nest: PersistentNest, plan: Plan) -> int:
    """Rings, staging buffers and scratch, the latter two for each group."""
    staging = sum(array_bytes(store.block, GROUPS) for store in nest.tma_stores)
    scratch = GROUPS * nest.scratch_bytes
    return rings_bytes(nest, plan, GROUPS) + staging + scratch + OVERHEAD_BYTES


def build_whole(nest: PersistentNest, plan: Plan, machine: Machine) -> None:
    """Rewrite the nest in place."""
    builder = machine.builder_before(nest)
    warps = [(nest.num_warps, True), (1, False)]
    registers = requested_registers(machine.limits, nest.num_warps, warps)
    shared = _Shared(
        Rings(
            allocate_ring(builder, [load.block for load in nest.loads], plan.stages),
            # One slot for each group: the tiles go to the groups in turn.
            tuple(allocate_ring(builder, [load.block], GROUPS) for load in nest.tile_loads),
        ),
        tuple(
            builder.local_alloc(builder.type(buffer_of(store.block, GROUPS)))
            for store in nest.tma_stores
        ),
    )
    barriers = allocate_barriers(builder, GROUPS)

    def consume(group: int) -> Partition:
        def build(inside: AsyncBuilder) -> None:
            _Group(nest, shared, Turns(nest, barriers, group)).build(inside)

        return Partition(nest.num_warps, registers[0], build)

    def produce(inside: AsyncBuilder) -> None:
        build_producer(nest, shared.rings, inside)

    partitions = [consume(1), Partition(1, registers[1], produce)]
    warp_specialize(builder, consume(0).build, partitions)
    nest.outer.operation.erase()


@dataclass(frozen=True)
class _Group:
    """One of the two groups."""

    nest: PersistentNest
    shared: _Shared
    turns: Turns

    def build(self, builder: AsyncBuilder) -> None:
        """The group's region."""
        nest, turns = self.nest, self.turns
        steps, tiles = steps_of_a_tile(nest, builder), turns.tiles(builder)
        needed = consumer_needs(nest)
        state = [*turns.start(steps, builder), builder.constant(0)]

        def build(tile: Tile) -> Sequence[ir.Value]:
            return self._build_tile(tile, needed, steps)

        build_tile_loop(nest, builder, state, build, tiles)
        if self.shared.staging:
            builder.tma_store_wait(0)

    def _build_tile(self, tile: Tile, needed: set[ir.Operation], steps: ir.Value) -> list[ir.Value]:
        builder, (index, turn, parity) = tile.builder, tile.state
        nest, rings, turns = self.nest, self.shared.rings, self.turns
        slot = builder.constant(turns.group)
        loaded = LoadedTiles(rings.tile_loads, [Cursor(slot, parity) for _ in rings.tile_loads])
        build_tile_operations(nest, tile, loaded, needed)
        turns.take(turn, builder)
        cursor = cursor_at(index, rings.operands.slots, builder)
        main = build_main_loop(nest, rings.operands, tile, cursor)
        turns.hand_over(builder)
        finish(nest, rings.operands, tile, main)
        build_epilogue(nest, tile, loaded, Staging(self.shared.staging, 1, slot))
        parity = builder.integer("xori", parity, builder.constant(1))
        return [*turns.next(index, turn, steps, builder), parity]


def _captured_tensor(nest: PersistentNest) -> Refusal | None:
    """A partition repeats tensors of the prelude; one that was loaded it can neither repeat nor
    capture."""
    used = [
        operand
        for each in (*nest.tile_operations, *nest.epilogue)
        for inside in operations(each)
        for operand in inside.operands
        if not nest.outer.defines(operand)
    ]
    for each in backward_slice([*used, nest.carried_accumulator.initial], nest.function):
        tensor = any(isinstance(result.type, ir.RankedTensorType) for result in each.results)
        if each in nest.prelude and tensor and not is_repeatable(each):
            return Refusal(each, f"a tensor from in front of the tile loop ({each.name})")
    return None
