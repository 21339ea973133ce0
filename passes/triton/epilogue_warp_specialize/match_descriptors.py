"""Descriptors that are made in the tile loop, each time the same: they can be made in front of it.

Making one writes 128 bytes to memory, so that no partition may do it for itself as it repeats pure
computations.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilepass.ir.effects import is_pure
from tilepass.ir.engine import Operation, ir, operations
from tilepass.ir.loops import Loop, LoopNest, backward_slice, constant_int, defining_operation
from tilepass.passes.triton.epilogue_warp_specialize.description import (
    DESCRIPTOR_MAKERS,
    Refusal,
)
from tilepass.passes.triton.epilogue_warp_specialize.scalars import touches_tensors

_DIVISIONS = frozenset(
    f"arith.{name}"
    for name in ("ceildivsi", "ceildivui", "divsi", "divui", "floordivsi", "remsi", "remui")
)
_IN_FRONT = "make it in front of the loop"


def invariant_operations(nest: LoopNest) -> tuple[Operation, ...]:
    """What makes the descriptors of a nest that are the same for all tiles, with what they are
    computed from in the tile loop, in program order."""
    outer, found = nest.outer, set[Operation]()
    inside = operations(outer.operation)[1:]
    for each in inside:
        if each.name not in DESCRIPTOR_MAKERS:
            continue
        if varying_descriptor(outer, each, each.results[0]) is None:
            found.update(backward_slice([each.results[0]], outer.operation))
    return tuple(each for each in inside if each in found)


def varying_descriptor(outer: Loop, user: Operation, descriptor: ir.Value) -> Refusal | None:
    """Why the descriptor that `user` takes cannot be made in front of the tile loop."""
    if not outer.defines(descriptor):
        return None
    maker = defining_operation(descriptor)
    if maker is None:
        return Refusal(user, "a loop carries the descriptor", _IN_FRONT)
    sources = backward_slice([descriptor], outer.operation)
    if trips := _varies(outer, sources):
        reason = f"the descriptor is made in the tile loop and varies from {trips}"
        return Refusal(maker, reason, "describe the whole array in front of the loop")
    for each in sources:
        if reason := _not_movable(each):
            return Refusal(each, f"a descriptor is made in the tile loop {reason}", _IN_FRONT)
    return None


def _not_movable(operation: Operation) -> str | None:
    """Why an operation may not be done where no tile is, or not once for all."""
    name = operation.name
    if touches_tensors(operation):
        return f"with {name}, which computes with tensors"
    if len(operation.regions) or not is_pure(operation):
        return f"with {name}, whose result may change from tile to tile"
    if name in _DIVISIONS and (constant_int(operation.operands[1]) or 0) <= 0:
        return f"with {name} by a variable, which may be zero where there is no tile"
    return None


def _varies(outer: Loop, sources: Sequence[Operation]) -> str | None:
    """Which loop's arguments the operations use."""
    used = [operand for each in sources for operand in each.operands]
    arguments = [value for value in used if defining_operation(value) is None]
    for loop, trips in ((outer, "tile to tile"), *((each, "step to step") for each in outer.inner)):
        if any(argument.owner == loop.body for argument in arguments):
            return trips
    return None
