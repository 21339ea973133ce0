"""Protocols with one mistake each, made from one that has none: does the check notice?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilepass.ir import engine
from tilepass.ir.build_async import BARRIER
from tilepass.ir.engine import Module, Operation, ir
from tilepass.ir.layouts import MemDescType, NvmmaShared, TypeView, parse_type
from tilepass.ir.shared_memory import tma_alignment

Change = Callable[[Operation], None]


@dataclass(frozen=True)
class Mutant:
    """A change of the `index`-th operation of a module, in the order of `engine.operations`."""

    name: str
    group: str
    index: int
    change: Change

    def apply(self, module: Module) -> Module:
        """A changed copy of the module."""
        copy: Any = engine.parse(engine.print_generic(module))
        self.change(engine.operations(copy)[self.index])
        return copy


def mutants(module: Module) -> list[Mutant]:
    """All mutants: of barriers, phases, byte counts, fences, waits, arrivals, slots and places.

    Changes that change nothing are left out: slots of a ring of one, and predicates that are the
    same in every iteration.
    """
    found: list[Mutant] = []
    counts: dict[str, int] = {}
    for index, operation in enumerate(engine.operations(module)):
        make = _MAKERS.get(operation.name)
        if make is None:
            continue
        short = operation.name.split(".")[1]
        where = f"{short}#{counts.setdefault(short, 0)} ({_partition(operation)})"
        counts[short] += 1
        for group, what, change in make(operation):
            found.append(Mutant(f"{where}: {what}", group, index, change))
    return found


Described = Iterator[tuple[str, str, Change]]
"""(group, what is changed, the change)"""


def _partition(operation: Operation) -> str:
    """Where an operation is: `prologue`, `default`, `partition 0`."""
    inner, outer = operation, operation.parent
    while outer is not None and outer.name != "tt.func":
        name = outer.name
        if name in ("ttg.warp_specialize", "ttg.warp_specialize.partitions"):
            number = _region_number(outer.operation, inner)
            return "default" if name == "ttg.warp_specialize" else f"partition {number}"
        inner, outer = outer.operation, outer.operation.parent
    return "prologue"


def _region_number(outer: Operation, inner: Operation) -> int:
    for number, region in enumerate(outer.regions):
        if any(view.operation == inner for block in region.blocks for view in block.operations):
            return number
    raise ValueError("the operation is in none of the regions")


def _remove(operation: Operation) -> None:
    """Take an operation out; uses of its results take its operands."""
    for result, operand in zip(operation.results, operation.operands, strict=False):
        result.replace_all_uses_with(operand)
    operation.erase()


def _duplicate(operation: Operation) -> None:
    operation.clone(ir.InsertionPoint(operation))


def _add_to(attribute: str, amount: int) -> Change:
    def change(operation: Operation) -> None:
        old: Any = operation.attributes[attribute]
        operation.attributes[attribute] = ir.IntegerAttr.get(old.type, old.value + amount)

    return change


def _constant(type_: ir.Type, value: int, before: Operation) -> ir.Value:
    attribute = ir.IntegerAttr.get(type_, value)
    return Operation.create(
        "arith.constant",
        results=[type_],
        attributes={"value": attribute},
        loc=before.location,
        ip=ir.InsertionPoint(before),
    ).results[0]


def _set_operand(position: int, value: int) -> Change:
    def change(operation: Operation) -> None:
        operation.operands[position] = _constant(
            operation.operands[position].type, value, operation
        )

    return change


def _combine_operand(position: int, name: str, value: int) -> Change:
    """Replace an operand by `name(operand, value)`."""

    def change(operation: Operation) -> None:
        old = operation.operands[position]
        operation.operands[position] = Operation.create(
            name,
            results=[old.type],
            operands=[old, _constant(old.type, value, operation)],
            loc=operation.location,
            ip=ir.InsertionPoint(operation),
        ).results[0]

    return change


def _shift_slot(by: int, slots: int) -> Change:
    """Another slot of a ring, whatever the right one is."""

    def change(operation: Operation) -> None:
        _combine_operand(1, "arith.addi", by)(operation)
        _combine_operand(1, "arith.remsi", slots)(operation)

    return change


def _before(name: str) -> Change:
    """Move an operation, with what it needs, before the last one of this name before it."""

    def change(operation: Operation) -> None:
        earlier = _last_before(operation, name)
        assert earlier is not None
        chain = [view.operation for view in operation.block.operations]
        between = chain[chain.index(earlier) + 1 : chain.index(operation) + 1]
        needed = {hash(result) for result in operation.results}
        moved: list[Operation] = []
        for each in reversed(between):
            if each == operation or any(hash(r) in needed for r in each.results):
                inside = [value for inner in engine.operations(each) for value in inner.operands]
                needed |= {hash(value) for value in inside}
                moved.append(each)
        for each in reversed(moved):
            each.move_before(earlier)

    return change


def _last_before(operation: Operation, name: str) -> Operation | None:
    found = None
    for view in operation.block.operations:
        if view.operation == operation:
            return found
        if view.operation.name == name:
            found = view.operation
    return None


def _init(_: Operation) -> Described:
    yield "barrier", "removed", _remove
    yield "barrier", "count + 1", _add_to("count", 1)
    yield "barrier", "done twice", _duplicate


def _wait(_: Operation) -> Described:
    yield "wait", "removed", _remove
    yield "phase", "other parity", _combine_operand(1, "arith.xori", 1)
    yield "phase", "always parity 0", _set_operand(1, 0)
    yield "phase", "always parity 1", _set_operand(1, 1)


def _arrive(operation: Operation) -> Described:
    yield "arrival", "removed", _remove
    yield "arrival", "done twice", _duplicate
    yield "arrival", "count + 1", _add_to("count", 1)
    if len(operation.operands) > 1 and _changes_in_loop(operation.operands[1]):
        yield "arrival", "whatever its predicate", _set_operand(1, 1)
    for name in ("ttng.warp_group_dot_wait", "ttng.async_tma_store_wait", "ttg.local_store"):
        if _last_before(operation, name):
            short = name.split(".")[1]
            yield "arrival", f"before the {short}", _before(name)


def _expect(_: Operation) -> Described:
    yield "bytes", "removed", _remove
    yield "bytes", "16 bytes more", _add_to("size", 16)
    yield "bytes", "16 bytes less", _add_to("size", -16)
    yield "bytes", "done twice", _duplicate


def _load(operation: Operation) -> Described:
    yield "bytes", "removed", _remove
    yield "bytes", "done twice", _duplicate
    yield from _store(operation)


def _store(operation: Operation) -> Described:
    position, buffer = next(
        (index, view)
        for index, operand in reversed(list(enumerate(operation.operands)))
        if isinstance(view := parse_type(operand.type), MemDescType)
    )
    alignment = tma_alignment(buffer.encoding)
    for by in sorted({64, alignment // 2}):
        yield "place", f"{by} bytes on", _displace(position, by)


def _displace(position: int, by: int) -> Change:
    """A buffer so many bytes behind the right one: seen as two of that size, the second of them."""

    def change(operation: Operation) -> None:
        old = operation.operands[position]
        size = MemDescType((2, by), "i8", BARRIER.encoding, mutable=True)
        first = _create("ttg.memdesc_reinterpret", [old], size, operation)
        one = _constant(ir.IntegerType.get_signless(32, operation.context), 1, operation)
        second = replace(size, shape=(by,))
        moved = _create("ttg.memdesc_index", [first, one], second, operation)
        kind = parse_type(old.type)
        operation.operands[position] = _create("ttg.memdesc_reinterpret", [moved], kind, operation)

    return change


def _create(
    name: str, operands: Sequence[ir.Value], type_: TypeView, before: Operation
) -> ir.Value:
    return Operation.create(
        name,
        results=[ir.Type.parse(str(type_), before.context)],
        operands=operands,
        loc=before.location,
        ip=ir.InsertionPoint(before),
    ).results[0]


def _allocate(operation: Operation) -> Described:
    """Of buffers that are laid out for TMA."""
    buffer = parse_type(operation.results[0].type)
    if isinstance(buffer, MemDescType) and isinstance(buffer.encoding, NvmmaShared):
        half = tma_alignment(buffer.encoding) // 2
        yield "place", f"aligned to {half} bytes", _set_integer("alignment", half)


def _set_integer(attribute: str, value: int) -> Change:
    def change(operation: Operation) -> None:
        type_ = ir.IntegerType.get_signless(32, operation.context)
        operation.attributes[attribute] = ir.IntegerAttr.get(type_, value)

    return change


def _fence(_: Operation) -> Described:
    yield "fence", "removed", _remove


def _waiting_for(_: Operation) -> Described:
    yield "wait", "removed", _remove
    yield "wait", "one more pending", _add_to("pendings", 1)


def _index(operation: Operation) -> Described:
    memory = parse_type(operation.operands[0].type)
    if _is_constant(operation.operands[1]) or not isinstance(memory, MemDescType):
        return
    slots = memory.shape[0]
    if slots == 1:
        return
    yield "slot", "always slot 0", _set_operand(1, 0)
    yield "slot", "the next slot", _shift_slot(1, slots)
    if slots > 2:
        yield "slot", "the slot before", _shift_slot(slots - 1, slots)


def _select(operation: Operation) -> Described:
    if str(operation.results[0].type) == "i32" and _wraps_ring(operation.operands[0]):
        yield "slot", "does not wrap", lambda each: _replace(each, each.operands[2])
        yield "slot", "does not advance", _set_operand(2, 0)


def _wraps_ring(condition: ir.Value) -> bool:
    """Whether a condition compares with a constant above 1: the slots of a ring."""
    owner: Any = condition.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.cmpi":
        return False
    limit: Any = owner.operands[1].owner
    return _is_constant(owner.operands[1]) and limit.attributes["value"].value > 1


def _xor(operation: Operation) -> Described:
    if str(operation.results[0].type) == "i32":
        yield "phase", "never flips", lambda each: _replace(each, each.operands[0])


def _compare(operation: Operation) -> Described:
    users = [use.owner.operation.name for use in operation.results[0].uses]
    if set(users) == {"arith.select", "arith.extui"}:
        yield "slot", "wraps a slot early", _combine_operand(1, "arith.subi", 1)
        yield "slot", "wraps a slot late", _combine_operand(1, "arith.addi", 1)


def _divide(operation: Operation) -> Described:
    names = [use.owner.operation.name for use in operation.results[0].uses]
    if operation.name == "arith.divsi" and names == ["arith.andi"]:
        yield "phase", "slots counted wrongly", _combine_operand(1, "arith.addi", 1)


def _changes_in_loop(value: ir.Value) -> bool:
    """Whether a condition compares an argument of the block it is in."""
    owner: Any = value.owner
    if isinstance(owner, ir.Block):
        return False
    owners: list[Any] = [operand.owner for operand in owner.operands]
    return any(isinstance(each, ir.Block) and each == owner.operation.block for each in owners)


def _replace(operation: Operation, value: ir.Value) -> None:
    operation.results[0].replace_all_uses_with(value)


def _is_constant(value: ir.Value) -> bool:
    owner: Any = value.owner
    return not isinstance(owner, ir.Block) and owner.name == "arith.constant"


_MAKERS: dict[str, Callable[[Operation], Described]] = {
    "ttng.init_barrier": _init,
    "ttng.wait_barrier": _wait,
    "ttng.arrive_barrier": _arrive,
    "ttng.barrier_expect": _expect,
    "ttg.local_alloc": _allocate,
    "ttng.async_tma_copy_global_to_local": _load,
    "ttng.async_tma_copy_local_to_global": _store,
    "ttng.fence_async_shared": _fence,
    "ttng.warp_group_dot_wait": _waiting_for,
    "ttng.async_tma_store_wait": _waiting_for,
    "ttg.memdesc_index": _index,
    "arith.select": _select,
    "arith.xori": _xor,
    "arith.cmpi": _compare,
    "arith.divsi": _divide,
}
