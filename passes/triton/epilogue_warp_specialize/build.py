"""Rewriting a nest by its plan.

    default            consumer 0
    partitions 0 ...   the other consumers
    then               the producer of the dot's operands: 1 warp
    then               where an epilogue in windows loads tiles: 1 warp for each consumer

All consumers read the same slots, so that a slot is empty after as many arrivals (under `ping-pong`
each slot is of one tile, and each tile of one group). Nothing else holds them together, unless they
take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilepass.ir.build import remove_attribute, set_attribute
from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.effects import Effect, effects_of
from tilepass.ir.engine import Operation, ir
from tilepass.ir.walks import is_used

from .consumers import window_consumers
from .description import PersistentNest
from .options import Machine, requested_registers
from .order import touches_tensors
from .partitions import Partition, warp_specialize
from .pieces import retype
from .plan import Plan, other_warps
from .rings import Rings, allocate_ring, build_producer
from .whole import whole_consumers

LIMIT = "ttg.maxnreg"
"""The attribute of a module that says how many registers a thread has when the kernel starts."""


def build(nest: PersistentNest, plan: Plan, machine: Machine) -> None:
    """Rewrite the nest in place; from the description and the plan alone."""
    nest.move_invariant()
    if plan.parts:
        # Boxes are of a piece, and equal in all parts.
        retype(plan.parts[0].pieces.boxes, machine.triton_version, nest.function)
    outer = nest.outer.operation
    builder = AsyncBuilder(ir.InsertionPoint(outer), outer.location, machine.triton_version)
    blocks = [load.block for load in nest.loads]
    readers = 1 if plan.groups > 1 else max(1, len(plan.parts))
    operands = allocate_ring(builder, blocks, plan.stages, readers=readers)
    if plan.parts:
        consumers = window_consumers(nest, plan, operands, builder)
        consume = [each.consume for each in consumers]
        feed = [each.feed for each in consumers] if nest.tile_loads else []
        produced, rings = replace(nest, tile_loads=()), Rings(operands)
        warps = plan.parts[0].warps
    else:
        whole, rings = whole_consumers(nest, plan, operands, builder)
        consume, feed = [each.consume for each in whole], []
        produced, warps = nest, nest.num_warps

    def produce(inside: AsyncBuilder) -> None:
        build_producer(produced, rings, inside)

    others = other_warps(warps, len(consume), len(feed))
    registers = requested_registers(machine.limits, warps, others)
    bodies = [*consume[1:], produce, *feed]
    partitions = [
        Partition(count, each, body)
        for (count, _), each, body in zip(others, registers, bodies, strict=True)
    ]
    warp_specialize(builder, consume[0], partitions)
    outer.erase()
    # It would be taken for what each thread has at first, of more warps than there were.
    module = nest.function.parent
    assert module is not None
    remove_attribute(module.operation, LIMIT)
    if plan.parts:
        _erase_unused(nest.prelude)
        set_attribute(module.operation, "ttg.num-warps", f"{warps} : i32")


def _erase_unused(operations: Sequence[Operation]) -> None:
    """Erase tensors that nothing uses any more: their layouts are for other numbers of warps."""
    for each in reversed(operations):
        only_reads = not effects_of(each) & ~Effect.READ
        if touches_tensors(each) and only_reads and not is_used(each):
            each.erase()
