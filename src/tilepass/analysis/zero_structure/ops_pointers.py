"""Transfer functions on addresses: where they point, never what is there."""

from __future__ import annotations

from tilepass.analysis.zero_structure.attributes import DYNAMIC_INDEX
from tilepass.analysis.zero_structure.integers import binary
from tilepass.analysis.zero_structure.intervals import Interval
from tilepass.analysis.zero_structure.machine import Effect, Machine
from tilepass.analysis.zero_structure.private import Registers
from tilepass.analysis.zero_structure.program import Instruction
from tilepass.analysis.zero_structure.types import (
    Address,
    Fields,
    Scalar,
    Type,
    alignment_of,
    size_of,
)
from tilepass.analysis.zero_structure.values import (
    ANY_SHARED,
    ANYWHERE,
    OUTSIDE,
    Domain,
    Mask,
    Pointer,
    Region,
    Value,
    shared_base,
)


def address_of(domain: Domain, item: Instruction, values: tuple[Value, ...]) -> Value:
    """The address of a variable of the module."""
    kind = item.types[0]
    assert isinstance(kind, Address)
    region = Region("shared", item.detail) if kind.space == 3 else OUTSIDE
    return Pointer(region, domain.intervals.constant(0))


def element_pointer(domain: Domain, item: Instruction, values: tuple[Value, ...]) -> Value:
    """llvm.getelementptr: the address moved by indices."""
    pointer, kind = values[0], item.types[0]
    element, constants = item.detail
    if not isinstance(pointer, Pointer):
        return domain.top(kind)
    dynamic = list(values[1:])
    offset, level = pointer.offset, element
    for position, constant in enumerate(constants):
        index: Value = (
            dynamic.pop(0) if constant == DYNAMIC_INDEX else domain.intervals.constant(constant)
        )
        if position > 0 and isinstance(level, Fields) and isinstance(index, Interval):
            start = _member(domain, level, index)
            if start is None:
                return Pointer(pointer.region, domain.intervals.top(64))
            move, level = start
        else:
            size = size_of(level)
            if position > 0 or size is None or not isinstance(index, Interval):
                return Pointer(pointer.region, domain.intervals.top(64))
            step = domain.intervals.constant(size)
            move = binary(domain.intervals, "muli", index, step, 64)
        offset = binary(domain.intervals, "addi", offset, move, 64)
    return Pointer(pointer.region, offset)


def _member(domain: Domain, kind: Fields, index: Interval) -> tuple[Interval, Type] | None:
    """Byte offset and type of a member of a struct or array."""
    if not kind.members:
        return None
    if len(set(kind.members)) == 1:
        size = size_of(kind.members[0])
        if size is None:
            return None
        step = domain.intervals.constant(size)
        return binary(domain.intervals, "muli", index, step, 64), kind.members[0]
    if not index.uniform or not 0 <= index.least < len(kind.members):
        return None
    offset = 0
    for position in range(index.least + 1):
        member = kind.members[position]
        size, alignment = size_of(member), 1 if kind.packed else alignment_of(member)
        if size is None:
            return None
        offset = -(-offset // alignment) * alignment
        if position < index.least:
            offset += size
    return domain.intervals.constant(offset), kind.members[index.least]


def to_integer(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> Value | None:
    """llvm.ptrtoint: the unknown address of a shared object plus the offset."""
    pointer, kind = values[0], item.types[0]
    if not isinstance(pointer, Pointer) or not isinstance(kind, Scalar) or kind.width < 32:
        machine.escape(pointer)
        return None
    if pointer.region.kind == "shared":
        shared = machine.program.objects[str(pointer.region.name)]
        offset = pointer.offset
        return machine.domain.intervals.of(offset.low, offset.high, shared_base(shared))
    if pointer.region.kind == "outside" and kind.width == 64:
        return machine.domain.intervals.of(
            machine.domain.intervals.top(64).low,
            machine.domain.intervals.top(64).high,
            _OUTSIDE_BASE,
        )
    machine.escape(pointer)
    return None


# Integers from addresses outside the block's memory carry this instead of an object's name.
_OUTSIDE_BASE = "outside@1"


def from_integer(domain: Domain, item: Instruction, values: tuple[Value, ...]) -> Value:
    """llvm.inttoptr: back to the object that the integer carries."""
    value, kind = values[0], item.types[0]
    if isinstance(value, Interval) and value.base is not None:
        if value.base == _OUTSIDE_BASE:
            assert isinstance(kind, Address)
            return (
                Pointer(OUTSIDE, domain.intervals.top(64)) if kind.space != 3 else domain.top(kind)
            )
        name = value.base.rpartition("@")[0]
        return Pointer(Region("shared", name), domain.intervals.of(value.low, value.high))
    return domain.top(kind)


def cast_space(domain: Domain, item: Instruction, values: tuple[Value, ...]) -> Value:
    """llvm.addrspacecast: the same object."""
    pointer, kind = values[0], item.types[0]
    if isinstance(pointer, Pointer) and pointer.region not in (ANYWHERE, ANY_SHARED):
        return pointer
    return domain.top(kind)


PURE_POINTERS = {
    "llvm.mlir.addressof": address_of,
    "llvm.getelementptr": element_pointer,
    "llvm.inttoptr": from_integer,
    "llvm.addrspacecast": cast_space,
}

EFFECTS: dict[str, Effect] = {"llvm.ptrtoint": to_integer}
