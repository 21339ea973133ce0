"""Whether the accesses to memory of a nest may be reordered as flattening does.

A flattened loop is pipelined over tile borders: the loads of the next tile come before the stores
of this one.
"""

from __future__ import annotations

from tilepass.analysis.nest_facts import Obstacle
from tilepass.analysis.structure import nested, users
from tilepass.ir.effects import Effect, effects_of
from tilepass.ir.engine import Operation, ir
from tilepass.ir.loops import Loop, LoopNest, defining_operation

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


def effect_obstacle(nest: LoopNest) -> Obstacle | None:
    """Which operation of a nest nothing may overtake."""
    for each, effect in _accesses(nest.before):
        if effect != Effect.READ:
            return Obstacle(
                f"{each.name} between the two loops has side effects, which the next tile's loads "
                "would overtake",
                "move it behind the inner loop or in front of the tile loop",
            )
    for each, effect in _accesses((nest.inner[0].operation, *nest.after)):
        if effect & (Effect.SYNC | Effect.OTHER):
            return Obstacle(
                f"{each.name} in the tile loop orders memory accesses or has unknown effects; the "
                "next tile's loads would overtake it",
                "",
            )
    if not _accesses((nest.inner[0].operation,)):
        return Obstacle(
            "the inner loop accesses no memory: there is nothing to overlap, and fusing fails if "
            "the loop can be moved out of the tile loop (#11612)",
            "",
        )
    return None


def memory_obstacle(nest: LoopNest) -> Obstacle | None:
    """Flattened and pipelined, the next tile's loads come before this tile's stores.

    Different arguments of the kernel are taken not to overlap, as the pipeliner does.
    """
    main = (*nest.before, nest.inner[0].operation)
    written = {
        root_of(each.operands[0])
        for each, effect in _accesses((*main, *nest.after))
        if effect & Effect.WRITE
    }
    for each, effect in _accesses(main):
        if not written or effect != Effect.READ:
            continue
        root = root_of(each.operands[0])
        if root is None or None in written or root in written:
            return Obstacle(
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


def root_of(pointer: ir.Value) -> tuple[str, int] | None:
    """What a pointer or descriptor was derived from; None if that cannot be told."""
    value = pointer
    while (source := defining_operation(value)) is not None:
        if source.name == "tt.load":
            table = root_of(source.operands[0])
            return None if table is None else (f"loaded from {table[0]}", table[1])
        if source.name not in _DERIVED_POINTERS:
            return None
        value = source.operands[0]
    argument = ir.BlockArgument(value)
    holder = argument.owner.owner.operation
    if holder.name == "tt.func":
        return ("argument", argument.arg_number)
    if holder.name != "scf.for" or argument.arg_number == 0:
        return None
    return root_of(Loop(holder).carried[argument.arg_number - 1].initial)
