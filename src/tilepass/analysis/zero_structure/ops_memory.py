"""Transfer functions of loads, stores and addresses."""

from __future__ import annotations

from tilepass.analysis.zero_structure import owners, private
from tilepass.analysis.zero_structure.integers import binary
from tilepass.analysis.zero_structure.intervals import Interval
from tilepass.analysis.zero_structure.machine import Effect, Machine, OutOfReach
from tilepass.analysis.zero_structure.private import PrivateObject, Registers
from tilepass.analysis.zero_structure.program import DYNAMIC_INDEX, Instruction
from tilepass.analysis.zero_structure.types import (
    Address,
    Fields,
    Scalar,
    Type,
    Vector,
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
from tilepass.analysis.zero_structure.zero_bytes import ZeroBytes

# A cell of a private object is never smaller than this many bytes nor larger.
_CELLS = (1, 2, 4, 8)


def alloca(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> Value:
    """A private object; of one that may exist several times at once nothing is known."""
    count, size = values[0], size_of(item.detail)
    fixed = isinstance(count, Interval) and count.uniform
    if not fixed or size is None or item.parent is not None:
        return Pointer(Region("private", -1 - item.number), machine.domain.intervals.top(64))
    assert isinstance(count, Interval)
    element = item.detail.element if isinstance(item.detail, Vector) else item.detail
    cell = element.size if isinstance(element, Scalar) and element.size in _CELLS else 1
    number = item.results[0]
    shape = PrivateObject(number, cell, count.least * size // cell)
    if shape.size > machine.limits.shared_bytes:
        raise OutOfReach(f"a private object of {shape.size} bytes", item)
    machine.private[number] = shape
    state.cells[number] = private.everything_lost(machine.domain, shape)
    return Pointer(Region("private", number), machine.domain.intervals.constant(0))


# ---- loads and stores --------------------------------------------------------------------------


def load(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> Value | None:
    """llvm.load, vector.load."""
    pointer, kind = values[0], item.types[0]
    if not isinstance(pointer, Pointer):
        return None
    if pointer.region.kind == "shared":
        machine.readers.setdefault(item.number, {})[pointer] = mask
        return _load_shared(machine, pointer, kind)
    number = pointer.region.name
    if pointer.region.kind == "anywhere":
        machine.reads.unknown = True
    if pointer.region.kind != "private" or number not in machine.private:
        return None
    assert isinstance(number, int)
    if number in state.owners:
        span = _span(machine.private[number], pointer.offset, kind)
        site = machine.reads.loads.get(item.number)
        own = None if site is None else (site, pointer.offset.least)
        owners.note_load(machine.reads, state.owners[number], span, own, mask)
    cells = machine.cells(number, state)
    return load_private(machine, item, machine.private[number], cells, pointer.offset, kind)


def load_private(
    machine: Machine,
    item: Instruction,
    shape: PrivateObject,
    cells: private.Cells,
    offset: Interval,
    kind: Type,
) -> Value:
    """A load of a private object; what the same cells gave before is the same object again."""
    size = size_of(kind)
    if not offset.uniform or size is None:
        # Another operation that loads says nothing of alignment.
        alignment = item.detail if item.name == "llvm.load" else 1
        return private.load(machine.domain, shape, cells, offset, kind, alignment)
    first, last = offset.least // shape.cell, -(-(offset.least + size) // shape.cell)
    key = (offset, *cells[max(0, first) : last])
    found = item.memo.get(key)
    if found is None:
        found = private.load(machine.domain, shape, cells, offset, kind)
        item.memo[key] = found
        machine.check_memory(item)
    return found


def _span(shape: PrivateObject, offset: Interval, kind: Type) -> tuple[int, int] | None:
    """The cells that an access touches, None where they are not known."""
    size = size_of(kind)
    if size is None or not offset.uniform:
        return None
    first, last = offset.least // shape.cell, -(-(offset.least + size) // shape.cell)
    return (first, last) if first >= 0 and last <= shape.count else None


def _note_owner(
    machine: Machine,
    item: Instruction,
    shape: PrivateObject,
    offset: Interval,
    kind: Type,
    state: Registers,
    mask: Mask,
) -> None:
    """What lies in registers after a store: a gemm's tile, or nothing of a gemm."""
    site = machine.reads.stores.get(item.number)
    span = _span(shape, offset, kind)
    owner = owners.NOBODY
    if site is not None:
        if span is None:
            machine.reads.unknown = True
        owner = (((site, offset.least), mask),)
    found = owners.stored(state.owners.get(shape.number), shape.count, span, owner)
    if found is not None:
        state.owners[shape.number] = found


def _load_shared(machine: Machine, pointer: Pointer, kind: Type) -> Value | None:
    found = private.elements_of(kind)
    if found is None:
        return None
    element, count = found
    memory = machine.shared[str(pointer.region.name)]
    loaded = memory.load(pointer.offset, element.size * count)
    if isinstance(kind, Scalar):
        return loaded
    maps = machine.domain.maps
    return tuple(maps.part(loaded, index * element.size, element.size) for index in range(count))


def store(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> None:
    """llvm.store."""
    value, pointer = values[0], values[1]
    machine.escape(value)
    store_to(machine, item, pointer, value, item.operand_types[0], state, mask)


def store_to(
    machine: Machine,
    item: Instruction,
    pointer: Value,
    value: Value,
    kind: Type,
    state: Registers,
    mask: Mask,
) -> None:
    """Threads of the mask store a value of a type."""
    if not isinstance(pointer, Pointer):
        machine.clobber(item, f"{item.name} stores through a pointer that is not followed")
        return
    region = machine.follow(pointer.region)
    if region.kind == "outside":
        return
    if region.kind == "private":
        number = region.name
        if isinstance(number, int) and number in machine.private:
            machine.writers.setdefault(number, {})[item.number] = None
            cells, shape = machine.cells(number, state), machine.private[number]
            state.cells[number] = private.store(
                machine.domain, shape, cells, pointer.offset, value, kind
            )
            _note_owner(machine, item, shape, pointer.offset, kind, state, mask)
        return
    if region.kind == "anywhere":
        machine.lose_registers(state)
    data = data_of(machine.domain, value, kind)
    if data is None:
        machine.clobber(item, f"{item.name} stores a value of unknown size")
        return
    if region.kind == "shared":
        machine.shared[str(region.name)].store(pointer.offset, data, mask, item.number)
        return
    if (data.facts == 15).all():
        # Zeros take nothing away, wherever they go.
        return
    machine.clobber(item, f"{item.name} stores through a pointer that may point to shared memory")


def data_of(domain: Domain, value: Value, kind: Type) -> ZeroBytes | None:
    """The bytes that a store of a value writes; None for a type of unknown size."""
    found = private.elements_of(kind)
    if found is None:
        size = size_of(kind)
        return None if size is None else domain.maps.nothing(size)
    element, count = found
    if isinstance(value, tuple):
        return domain.maps.together([domain.as_map(number, element.size) for number in value])
    return domain.as_map(value, element.size * count)


def atomic(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> None:
    """llvm.atomicrmw and llvm.cmpxchg store something of the size of their value."""
    kind = item.operand_types[1]
    unknown = machine.domain.top(kind)
    store_to(machine, item, values[0], unknown, kind, state, mask)


def clobber_at(
    machine: Machine,
    item: Instruction,
    pointer: Value,
    size: int | None,
    state: Registers,
    mask: Mask,
    what: str,
) -> None:
    """Something unknown is stored to `size` bytes behind a pointer, None for up to the end."""
    if not isinstance(pointer, Pointer):
        machine.clobber(item, f"{what} writes behind a pointer that is not followed")
        return
    region = machine.follow(pointer.region)
    if region.kind == "outside":
        return
    if region.kind != "shared":
        machine.escape(pointer)
        machine.lose_registers(state)
        machine.clobber(item, f"{what} may write anywhere in shared memory")
        return
    memory = machine.shared[str(region.name)]
    if size is None:
        offsets = machine.domain.spread(pointer.offset.low)[mask.active]
        if offsets.size:
            memory.spoil(int(offsets.min()), memory.size, item.number)
        return
    memory.store(pointer.offset, machine.domain.maps.nothing(size), mask, item.number)


def copy_memory(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> None:
    """llvm.intr.memcpy, memmove, memset: the destination holds anything afterwards."""
    pointer = values[0]
    for value in values[:2]:
        # The source may be an accumulator.
        machine.escape(value)
    if isinstance(pointer, Pointer) and pointer.region.kind == "private":
        return
    length = values[2]
    size = length.most if isinstance(length, Interval) and length.base is None else None
    usable = size is not None and 0 < size <= machine.limits.shared_bytes
    clobber_at(machine, item, pointer, size if usable else None, state, mask, item.name)


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

EFFECTS: dict[str, Effect] = {
    "llvm.alloca": alloca,
    "llvm.load": load,
    "llvm.store": store,
    "llvm.atomicrmw": atomic,
    "llvm.cmpxchg": atomic,
    "llvm.intr.memcpy": copy_memory,
    "llvm.intr.memmove": copy_memory,
    "llvm.intr.memset": copy_memory,
    "llvm.ptrtoint": to_integer,
}
