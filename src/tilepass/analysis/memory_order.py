"""Whether the accesses to memory of a nest may be reordered as flattening does.

A flattened loop is pipelined over tile borders: the loads of the next tile come before the stores
of this one.
"""

from __future__ import annotations

from tilepass.core.refusal import Refusal
from tilepass.ir.effects import Effect, effects_of
from tilepass.ir.engine import Operation, ir
from tilepass.ir.loops import FOR, Loop, LoopNest, defining_operation
from tilepass.ir.walks import nested, users

_REDUCTIONS = ("tt.atomic_rmw",)
# With an operand: a value in shared or tensor memory that is written once, or what reads it. What
# accumulates in tensor memory is ordered by tokens, which are values.
_ON_CHIP = (
    "ttg.local_alloc",
    "ttg.local_load",
    "ttng.tc_gen5_mma",
    "ttng.tc_gen5_mma_scaled",
    "ttng.tmem_alloc",
    "ttng.tmem_load",
    "ttng.warp_group_dot",
)
# Operations whose first operand is the pointer that they derive theirs from.
_DERIVED_POINTERS = frozenset(
    {
        "tt.addptr",
        "tt.advance",
        "tt.bitcast",
        "tt.broadcast",
        "tt.expand_dims",
        "tt.make_tensor_descriptor",
        "tt.make_tensor_ptr",
        "tt.reshape",
        "tt.splat",
        "tt.trans",
        "ttg.convert_layout",
        "ttng.reinterpret_tensor_descriptor",
        "ttng.tensormap_create",
    }
)


def effect_obstacle(nest: LoopNest) -> Refusal | None:
    """Which operation of a nest nothing may overtake."""
    for each, effect in _accesses(nest.before):
        if effect != Effect.READ:
            return Refusal(
                nest.outer.operation,
                f"{each.name} between the two loops has side effects, which the next tile's loads "
                "would overtake",
                "move it behind the inner loop or before the tile loop",
            )
    for each, effect in _accesses((nest.inner[0].operation, *nest.after)):
        if effect & (Effect.SYNC | Effect.OTHER) or not len(each.operands):
            return Refusal(
                nest.outer.operation,
                f"{each.name} in the tile loop orders memory accesses or has unknown effects; the "
                "next tile's loads would overtake it",
            )
    if not _accesses((nest.inner[0].operation,)):
        return Refusal(
            nest.outer.operation,
            "the inner loop accesses no memory: there is nothing to overlap, and fusing fails if "
            "the loop can be moved out of the tile loop (#11612)",
        )
    return None


def memory_obstacle(nest: LoopNest) -> Refusal | None:
    """Flattened and pipelined, the next tile's loads come before this tile's stores.

    Different arguments of the kernel are taken not to overlap, as the pipeliner does.
    """
    main = (*nest.before, nest.inner[0].operation)
    written = [
        roots_of(each.operands[0])
        for each, effect in _accesses((*main, *nest.after))
        if effect & Effect.WRITE
    ]
    for each, effect in _accesses(main):
        if effect != Effect.READ:
            continue
        read = roots_of(each.operands[0])
        if any(read is None or stored is None or read & stored for stored in written):
            return Refusal(
                nest.outer.operation,
                f"{each.name} may read what the tile loop stores, and the next tile's loads would "
                "overtake this tile's stores",
                "load and store through different arguments",
            )
    return None


def _accesses(among: tuple[Operation, ...]) -> list[tuple[Operation, Effect]]:
    """Every operation in and including these that is not pure, with its own effect.

    An atomic whose result nobody uses tells the program nothing: it only writes. Shared and tensor
    memory are left out where values say what depends on them.
    """
    found: list[tuple[Operation, Effect]] = []
    for operation in among:
        for each in (operation, *nested(operation)):
            own = effects_of(each)
            for inner in nested(each):
                own &= ~effects_of(inner)
            if each.name in _REDUCTIONS and not users(each.results[0]):
                own = Effect.WRITE
            if own and not (each.name in _ON_CHIP and len(each.operands)):
                found.append((each, own))
    return found


def root_of(pointer: ir.Value) -> int | None:
    """The one argument of the kernel that a pointer or descriptor is derived from; None if there
    are several that it may be, or it may be any pointer at all."""
    roots = roots_of(pointer)
    return next(iter(roots)) if roots and len(roots) == 1 else None


def roots_of(pointer: ir.Value) -> frozenset[int] | None:
    """The arguments of the kernel that a pointer or descriptor may be derived from; None if it may
    be any pointer at all: one that is loaded from memory may point into what an argument does."""
    found: set[int] = set()
    seen: list[ir.Value] = []
    waiting = [pointer]
    while waiting:
        value = waiting.pop()
        if any(value == each for each in seen):
            continue
        seen.append(value)
        if (number := _argument_of_function(value)) is not None:
            found.add(number)
            continue
        sources = _came_from(value)
        if sources is None:
            return None
        waiting += sources
    return frozenset(found)


def _argument_of_function(value: ir.Value) -> int | None:
    if defining_operation(value) is not None:
        return None
    argument = ir.BlockArgument(value)
    return argument.arg_number if argument.owner.owner.operation.name == "tt.func" else None


def _came_from(value: ir.Value) -> list[ir.Value] | None:
    """The values one of which a pointer or descriptor is, or is derived from."""
    source = defining_operation(value)
    if source is None:
        argument = ir.BlockArgument(value)
        holder = argument.owner.owner.operation
        if holder.name != FOR or argument.arg_number == 0:
            return None
        return _carried(holder, argument.arg_number - 1)
    if source.name in _DERIVED_POINTERS:
        return [source.operands[0]]
    if source.name == "arith.select":
        return [source.operands[1], source.operands[2]]
    number = ir.OpResult(value).result_number
    if source.name == FOR:
        return _carried(source, number)
    if source.name == "scf.if":
        blocks = [region.blocks[0] for region in source.regions]
        return [block.operations[len(block.operations) - 1].operands[number] for block in blocks]
    return None


def _carried(loop: Operation, index: int) -> list[ir.Value]:
    carried = Loop(loop).carried[index]
    return [carried.initial, carried.yielded]
