"""Taking the inner loop apart: loads, the views between them and the dot, scalars; descriptors.

Descriptors that are made in the tile loop, each time the same: they can be made before it.

Making one writes 128 bytes to memory, so that no partition may do it for itself as it repeats pure
computations.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tilepass.analysis.nest_facts import DOTS, dots_in
from tilepass.core.refusal import Refusal
from tilepass.ir.effects import is_pure
from tilepass.ir.engine import Operation, ir, operations
from tilepass.ir.layouts import MemDescType, element_bits, parse_type
from tilepass.ir.loops import Loop, LoopNest, backward_slice, constant_int, defining_operation
from tilepass.ir.walks import users

from .description import DESCRIPTOR_MAKERS, DotOperand, TileLoad
from .order import touches_tensors

LOAD, DOT = "tt.descriptor_load", "ttng.warp_group_dot"

_ALLOC, _VIEWS = "ttg.local_alloc", ("ttg.memdesc_trans",)


@dataclass(frozen=True)
class MainLoop:
    step_operations: tuple[Operation, ...]
    loads: tuple[TileLoad, ...]
    a: DotOperand
    b: DotOperand
    dot: Operation
    accumulator: int


def match_main_loop(nest: LoopNest, invariant: Collection[Operation]) -> MainLoop | Refusal:
    """The inner loop's parts, or what is in it that a producer and a consumer cannot share out.

    `invariant` is what will have been moved before the tile loop.
    """
    inner = nest.inner[0]
    dot = _one_dot(inner)
    if isinstance(dot, Refusal):
        return dot
    loads = [TileLoad(each) for each in _body(inner) if each.name == LOAD]
    a, b = (_operand(dot, index, inner, loads) for index in (0, 1))
    if isinstance(a, Refusal):
        return a
    if isinstance(b, Refusal):
        return b
    accumulator = _accumulator(inner, dot)
    if isinstance(accumulator, Refusal):
        return accumulator
    used = [loads[index] for index in sorted({a.load, b.load})]
    known = [dot, *(each for operand in (a, b) for each in _chain(dot, operand, loads))]
    scalars = [each for each in _body(inner) if each not in known and each not in invariant]
    refusal = _wrong_loads(nest, used) or _foreign(scalars) or _wrong_scalars(inner, accumulator)
    if refusal is not None:
        return refusal
    order = {load.operation: index for index, load in enumerate(used)}
    a, b = (DotOperand(order[loads[each.load].operation], each.views) for each in (a, b))
    return MainLoop(tuple(scalars), tuple(used), a, b, dot, accumulator)


def _body(loop: Loop) -> list[Operation]:
    return [view.operation for view in loop.body if view.operation != loop.terminator]


def _one_dot(inner: Loop) -> Operation | Refusal:
    dots = dots_in(inner)
    if len(dots) != 1:
        return Refusal(dots[1], f"the inner loop holds {len(dots)} dots, not one")
    dot = dots[0]
    if dot.name != DOT:
        hint = "tl.dot of at least 64 rows on 4 warps" if dot.name in DOTS else ""
        return Refusal(dot, f"{dot.name} is not a wgmma ({DOT})", hint)
    if dot.block != inner.body:
        return Refusal(dot, "the dot is under a condition")
    if len(dot.operands) != 3:
        return Refusal(dot, "the dot has a flag that says whether it accumulates")
    return _summed_apart(dot) or dot


def _summed_apart(dot: Operation) -> Refusal | None:
    """With fp8 operands, wgmma sums less than exactly; partial sums need a wait after each dot.

    Triton makes them unless the limit is beyond the step (WarpGroupDotOp::needsPartialAccumulator).
    """
    most = dot.attributes.get("maxNumImpreciseAcc")
    operand = parse_type(dot.operands[0].type)
    if not isinstance(operand, MemDescType) or not isinstance(most, ir.IntegerAttr):
        return None
    if element_bits(operand.element) != 8 or operand.element == "i8":
        return None
    if most.value > operand.shape[-1]:
        return None
    return Refusal(
        dot,
        f"max_num_imprecise_acc = {most.value} is not beyond the step of {operand.shape[-1]}: "
        "the dot cannot be asynchronous",
    )


def _operand(
    dot: Operation, index: int, inner: Loop, loads: list[TileLoad]
) -> DotOperand | Refusal:
    value = dot.operands[index]
    name = "AB"[index]
    if not isinstance(parse_type(value.type), MemDescType):
        return Refusal(dot, f"operand {name} of the dot is in registers", "do not compute it")
    views: list[Operation] = []
    source = defining_operation(value)
    while source is not None and source.name in _VIEWS:
        views.insert(0, source)
        source = defining_operation(source.operands[0])
    if source is None or source.name != _ALLOC or len(source.operands) != 1:
        return Refusal(
            source or dot, f"operand {name} of the dot is not a value loaded in this step"
        )
    load = defining_operation(source.operands[0])
    if load is None or load.name != LOAD or load.block != inner.body:
        return Refusal(load or dot, f"operand {name} of the dot does not come from a TMA load")
    return DotOperand(next(n for n, each in enumerate(loads) if each.operation == load), (*views,))


def _chain(dot: Operation, operand: DotOperand, loads: list[TileLoad]) -> list[Operation]:
    """Everything from the load up to the dot."""
    first = operand.views[0] if operand.views else None
    buffers = [
        each
        for value in ([first.operands[0]] if first else list(dot.operands)[:2])
        if (each := defining_operation(value)) is not None and each.name == _ALLOC
    ]
    return [loads[operand.load].operation, *buffers, *operand.views]


def _accumulator(inner: Loop, dot: Operation) -> int | Refusal:
    for index, carried in enumerate(inner.carried):
        if dot.operands[2] != carried.argument:
            continue
        if carried.yielded != dot.results[0]:
            return Refusal(dot, "the dot's result is changed before the next step adds to it")
        if len(users(carried.argument)) != 1 or len(users(dot.results[0])) != 1:
            return Refusal(dot, "the accumulator is used in the inner loop beside the dot")
        return index
    return Refusal(dot, "the dot does not add to an accumulator that the inner loop carries")


def _foreign(scalars: list[Operation]) -> Refusal | None:
    """What is left of the body must be scalars that both partitions may compute."""
    for each in scalars:
        tensor = any(isinstance(result.type, ir.RankedTensorType) for result in each.results)
        if each.name == LOAD:
            return Refusal(each, "a value loaded in the inner loop is used outside the dot")
        if tensor or not is_pure(each) or each.regions:
            return Refusal(each, f"{each.name} in the inner loop is not a load, dot or pure scalar")
    return None


def _wrong_loads(nest: LoopNest, loads: list[TileLoad]) -> Refusal | None:
    for load in loads:
        refusal = wrong_load(nest.outer, load)
        if refusal is not None:
            return refusal
        for user in users(load.operation.results[0]):
            if user.name != _ALLOC:
                return Refusal(user, "a value loaded in the inner loop is used outside the dot")
            buffer = parse_type(user.results[0].type)
            assert isinstance(buffer, MemDescType)
            if buffer.encoding != load.block.encoding:
                return Refusal(
                    user,
                    f"the dot wants its operand as {buffer.encoding}, the descriptor brings "
                    f"{load.block.encoding}",
                )
    return None


def wrong_load(outer: Loop, load: TileLoad) -> Refusal | None:
    """Why a producer cannot issue a load with TMA into a slot made of the descriptor's block."""
    if load.unknown_place is not None:
        return load.unknown_place
    loaded = tuple(ir.RankedTensorType(load.operation.results[0].type).shape)
    if loaded != load.block.shape:
        return Refusal(
            load.operation,
            f"the load is of shape {loaded}, the descriptor's block of shape {load.block.shape}",
        )
    return varying_descriptor(outer, load.operation, load.descriptor)


def _wrong_scalars(inner: Loop, accumulator: int) -> Refusal | None:
    for index, carried in enumerate(inner.carried):
        if index == accumulator:
            continue
        if isinstance(carried.argument.type, ir.RankedTensorType):
            return Refusal(inner.operation, "the inner loop carries a tensor beside the dot's")
        if users(carried.result):
            return Refusal(
                inner.operation, "a scalar that the inner loop carries is used behind it"
            )
    return None


_DIVISIONS = frozenset(
    f"arith.{name}"
    for name in ("ceildivsi", "ceildivui", "divsi", "divui", "floordivsi", "remsi", "remui")
)

_IN_FRONT = "make it before the loop"


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
    """Why the descriptor that `user` takes cannot be made before the tile loop."""
    if not outer.defines(descriptor):
        return None
    maker = defining_operation(descriptor)
    if maker is None:
        return Refusal(user, "a loop carries the descriptor", _IN_FRONT)
    sources = backward_slice([descriptor], outer.operation)
    if trips := _varies(outer, sources):
        reason = f"the descriptor is made in the tile loop and varies from {trips}"
        return Refusal(maker, reason, "describe the whole array before the loop")
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
