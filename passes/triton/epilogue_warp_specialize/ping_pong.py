"""`ping-pong`: two groups of warps take turns, one in its main loop, the other in its epilogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilepass.analysis.trip_count import counts_unsigned
from tilepass.ir.build_async import AsyncBuilder, buffer_of
from tilepass.ir.engine import ir
from tilepass.ir.loops import backward_slice, defining_operation
from tilepass.passes.triton.epilogue_warp_specialize.budget import Limits, requested_registers
from tilepass.passes.triton.epilogue_warp_specialize.clones import Clones
from tilepass.passes.triton.epilogue_warp_specialize.consumer import build_main_loop, finish
from tilepass.passes.triton.epilogue_warp_specialize.cooperative import Staging
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, Refusal
from tilepass.passes.triton.epilogue_warp_specialize.epilogue import (
    LoadedTiles,
    build_epilogue,
    build_tile_operations,
    consumer_needs,
)
from tilepass.passes.triton.epilogue_warp_specialize.footprint import (
    OVERHEAD_BYTES,
)
from tilepass.passes.triton.epilogue_warp_specialize.machine import Machine
from tilepass.passes.triton.epilogue_warp_specialize.options import Options, Plan
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
    Scheme,
    accumulator_obstacle,
    rings_bytes,
    stage_counts,
    warps_obstacle,
)
from tilepass.passes.triton.epilogue_warp_specialize.tiles import (
    Tile,
    TileRange,
    build_tile_loop,
)

GROUPS = 2


@dataclass(frozen=True)
class Shared:
    """What the groups share: the rings, their staging buffers, the barriers of the turns."""

    rings: Rings
    staging: tuple[ir.Value, ...]
    turns: ir.Value


def obstacle(nest: PersistentNest, machine: Machine) -> Refusal | None:
    """Each group has the source's warps and computes every other tile alone."""
    return (
        warps_obstacle(nest, (4,))
        or accumulator_obstacle(nest, machine)
        or _wrong_steps(nest)
        or captured_tensor(nest)
    )


def plans(nest: PersistentNest, options: Options, limits: Limits) -> Iterator[Plan]:
    """As many stages as there may be; each group has its own staging buffer."""
    del nest, limits
    if options.c_buffers in ("auto", 1) and options.epilogue_subtile in ("auto", 1):
        for stages in stage_counts(options):
            yield Plan("ping-pong", stages, 1)


def shared_bytes(nest: PersistentNest, plan: Plan) -> int:
    """Rings, staging buffers and scratch, the latter two for each group."""
    own = sum(store.bytes for store in nest.tma_stores) + nest.scratch_bytes
    return rings_bytes(nest, plan, GROUPS) + GROUPS * own + OVERHEAD_BYTES


def build_ping_pong(nest: PersistentNest, plan: Plan, machine: Machine) -> None:
    """Rewrite the nest in place."""
    builder = machine.builder_before(nest)
    warps = [(nest.num_warps, True), (1, False)]
    registers = requested_registers(machine.limits, nest.num_warps, warps)
    shared = Shared(
        Rings(
            allocate_ring(builder, [load.block for load in nest.loads], plan.stages),
            # One slot for each group: the tiles go to the groups in turn.
            tuple(allocate_ring(builder, [load.block], GROUPS) for load in nest.tile_loads),
        ),
        tuple(
            builder.local_alloc(builder.type(buffer_of(store.block, GROUPS)))
            for store in nest.tma_stores
        ),
        allocate_barriers(builder, GROUPS),
    )

    def consume(group: int) -> Partition:
        def build(inside: AsyncBuilder) -> None:
            _Group(nest, shared, group).build(inside)

        return Partition(nest.num_warps, registers[0], build)

    def produce(inside: AsyncBuilder) -> None:
        build_producer(nest, shared.rings, inside)

    partitions = [consume(1), Partition(1, registers[1], produce)]
    warp_specialize(builder, consume(0).build, partitions)
    nest.outer.operation.erase()


@dataclass(frozen=True)
class _Group:
    """One of the two groups: it computes every other tile of the program.

    Slots follow from the number of steps that all tiles before took: a group does not see the
    other's. Its main loops run in turn with the other's. Without that a group could wait a whole
    ring early, where the parity of the phase before is the same.
    """

    nest: PersistentNest
    shared: Shared
    number: int

    def build(self, builder: AsyncBuilder) -> None:
        outer = self.nest.outer
        number, two = builder.constant(self.number), builder.constant(GROUPS)
        steps = _steps_of_a_tile(self.nest, builder)
        first = builder.integer("muli", steps, number)
        both = builder.integer("muli", steps, two)
        kind = outer.step.type
        own, skipped = builder.constant(self.number, kind), builder.constant(GROUPS, kind)
        offset = builder.integer("muli", outer.step, own)
        tiles = TileRange(
            builder.integer("addi", outer.lower_bound, offset),
            builder.integer("muli", outer.step, skipped),
        )
        needed = consumer_needs(self.nest)
        # The first group's first turn passes: it asks for the parity before the first phase.
        state = [first, builder.constant(1 - self.number), builder.constant(0)]

        def build(tile: Tile) -> Sequence[ir.Value]:
            return self._build_tile(tile, needed, both)

        build_tile_loop(self.nest, builder, state, build, tiles)
        if self.shared.staging:
            builder.tma_store_wait(0)

    def _build_tile(self, tile: Tile, needed: set[ir.Operation], both: ir.Value) -> list[ir.Value]:
        builder, (index, turn, parity) = tile.builder, tile.state
        nest, rings, turns = self.nest, self.shared.rings, self.shared.turns
        slot = builder.constant(self.number)
        loaded = LoadedTiles(rings.tile_loads, [Cursor(slot, parity) for _ in rings.tile_loads])
        build_tile_operations(nest, tile, loaded, needed)
        builder.wait_barrier(builder.slot(turns, slot), turn)
        cursor = _cursor_at(index, rings.operands.slots, builder)
        main = build_main_loop(nest, rings.operands, tile, cursor)
        other = builder.constant(1 - self.number)
        builder.arrive_barrier(builder.slot(turns, other))
        finish(nest, rings.operands, tile, main)
        build_epilogue(nest, tile, loaded, Staging(self.shared.staging, 1, slot))
        one = builder.constant(1)
        return [
            builder.integer("addi", index, both),
            builder.integer("xori", turn, one),
            builder.integer("xori", parity, one),
        ]


def _cursor_at(index: ir.Value, slots: int, builder: AsyncBuilder) -> Cursor:
    """Where a reader stands that `index` fills have gone before."""
    count = builder.constant(slots)
    rounds = builder.integer("divsi", index, count)
    parity = builder.integer("andi", rounds, builder.constant(1))
    return Cursor(builder.integer("remsi", index, count), parity)


def _steps_of_a_tile(nest: PersistentNest, builder: AsyncBuilder) -> ir.Value:
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


def _wrong_steps(nest: PersistentNest) -> Refusal | None:
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


def captured_tensor(nest: PersistentNest) -> Refusal | None:
    """A partition repeats tensors of the prelude; one that was loaded it can neither repeat nor
    capture."""
    used = [
        operand
        for each in (*nest.tile_operations, *nest.epilogue)
        for operand in each.operands
        if not nest.outer.defines(operand)
    ]
    for each in backward_slice([*used, nest.carried_accumulator.initial], nest.function):
        tensor = any(isinstance(result.type, ir.RankedTensorType) for result in each.results)
        if each in nest.prelude and tensor and not is_repeatable(each):
            return Refusal(each, f"a tensor from in front of the tile loop ({each.name})")
    return None


PING_PONG = Scheme("ping-pong", obstacle, plans, shared_bytes, build_ping_pong)
