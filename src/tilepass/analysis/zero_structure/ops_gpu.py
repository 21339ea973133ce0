"""Transfer functions of NVVM operations: threads, barriers, bulk copies, matrices."""

from __future__ import annotations

from typing import cast

import numpy as np

from tilepass.analysis.zero_structure.intervals import IntArray, Interval
from tilepass.analysis.zero_structure.machine import Effect, Execution, Machine
from tilepass.analysis.zero_structure.ops_memory import clobber_at
from tilepass.analysis.zero_structure.private import Registers
from tilepass.analysis.zero_structure.program import Bulk, Instruction, MatrixMove, MatrixProduct
from tilepass.analysis.zero_structure.types import Fields, Scalar, Type, Vector
from tilepass.analysis.zero_structure.values import Domain, Mask, Number, Pointer, Struct, Value
from tilepass.analysis.zero_structure.zero_bytes import (
    ALL,
    FREE,
    FREE_SIGN,
    STRICT,
    STRICT_SIGN,
    ZeroBytes,
)

_BARRIER_BYTES = 8
_SEGMENT_SHIFT, _LANE_BITS = 8, 31


def source_lane(kind: str, lane: IntArray, operand: IntArray, clamp: IntArray) -> IntArray:
    """The lane that each lane reads in shfl.sync (PTX ISA, pseudocode of its semantics)."""
    segment = (clamp >> _SEGMENT_SHIFT) & _LANE_BITS
    least = lane & segment
    most = least | (clamp & _LANE_BITS & ~segment)
    offset = operand & _LANE_BITS
    if "up" in kind:
        source, valid = lane - offset, lane - offset >= most
    elif "down" in kind:
        source, valid = lane + offset, lane + offset <= most
    elif "bfly" in kind:
        source, valid = lane ^ offset, (lane ^ offset) <= most
    else:
        source = least | (offset & ~segment)
        valid = source <= most
    return np.where(valid, source, lane)


def shuffle(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> Value | None:
    """nvvm.shfl.sync: another lane's value; over the warp where the lane is not known."""
    value, lane, clamp = values[1], values[2], values[3]
    if not isinstance(value, Interval | ZeroBytes):
        return None
    domain = machine.domain
    number: Number
    known = all(
        isinstance(place, Interval) and place.base is None and place.exact
        for place in (lane, clamp)
    )
    if known:
        assert isinstance(lane, Interval)
        assert isinstance(clamp, Interval)
        source = domain.warp_start + source_lane(item.detail, domain.lane, lane.low, clamp.low)
        if isinstance(value, Interval):
            number = domain.intervals.lanes(value, source)
        else:
            number = domain.maps.lanes(value, source)
    elif isinstance(value, Interval):
        number = domain.intervals.over_warps(value)
    else:
        number = domain.maps.over_warps(value)
    if isinstance(item.types[0], Scalar):
        return number
    # With the predicate: a struct of the value and an i1.
    return Struct((number, domain.intervals.top(1)))


def barrier_object(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> None:
    """Operations on an mbarrier change its 8 bytes."""
    clobber_at(machine, item, values[0], _BARRIER_BYTES, state, mask, item.name)


def bulk_load(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> None:
    """A TMA load fills a box, whose bytes come from the tag of its copy: without one everything
    behind the destination counts as filled."""
    detail: Bulk = item.detail
    clobber_at(machine, item, values[0], detail.bytes, state, mask, "a TMA load of unknown size")


def bulk_copy(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> None:
    """A bulk copy without a tensor map: the size is an operand (destination, barrier, source,
    size)."""
    most = None
    for size in values[3:4]:
        if isinstance(size, Interval) and size.base is None:
            most = size.most if 0 < size.most <= machine.limits.shared_bytes else None
    clobber_at(machine, item, values[0], most, state, mask, "a bulk copy of unknown size")


def asynchronous_copy(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> None:
    """cp.async: `size` bytes from global memory."""
    clobber_at(machine, item, values[0], item.detail, state, mask, "cp.async")


def thread_index(axis: int) -> Effect:
    """tid.x, y or z."""

    def apply(
        machine: Machine,
        item: Instruction,
        values: tuple[Value, ...],
        state: Registers,
        mask: Mask,
    ) -> Value:
        thread, shape = machine.domain.thread, machine.block
        for extent in shape[:axis]:
            thread = thread // extent
        return machine.domain.intervals.exact(thread % shape[axis])

    return apply


def block_extent(axis: int) -> Effect:
    """ntid.x, y or z."""

    def apply(
        machine: Machine,
        item: Instruction,
        values: tuple[Value, ...],
        state: Registers,
        mask: Mask,
    ) -> Value:
        return machine.domain.intervals.constant(machine.block[axis])

    return apply


def lane_index(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> Value:
    """laneid."""
    return machine.domain.intervals.exact(np.array(machine.domain.lane))


def warp_index(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> Value | None:
    """warpid: the hardware's number, which need not be thread / 32."""
    return None


def grid_number(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> Value:
    """Block indices and extents of the grid: not negative."""
    return machine.domain.intervals.between(0, (1 << 31) - 1)


def allocate_tensor_memory(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> None:
    """tcgen05.alloc stores the address that it got, 4 bytes."""
    clobber_at(machine, item, values[0], 4, state, mask, item.name)


def peer_address(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> Value:
    """mapa: the same place in another block of the cluster. All blocks run this kernel: what one
    may store to a peer's memory, another may store to this one's."""
    return values[0]


_ROWS = 8
_INTEGER_TYPES = ("s8", "u8", "s4", "u4", "b1")
_ELEMENT_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "f64": 8, "e4m3": 1, "e5m2": 1}


def _lane_addresses(domain: Domain, offset: Interval, move: MatrixMove) -> list[list[Interval]]:
    """For every matrix the offsets of the pieces a lane holds: one of 4 bytes, or two of 2."""
    low, high = domain.spread(offset.low), domain.spread(offset.high)
    quarter, column = domain.lane % 4, domain.lane // 4
    found = list[list[Interval]]()
    for matrix in range(move.count):
        first = domain.warp_start + _ROWS * matrix
        if not move.transposed:
            source, step = first + column, 4 * quarter
            found.append([domain.intervals.of(low[source] + step, high[source] + step)])
            continue
        pieces = list[Interval]()
        for half in (0, 1):
            source, step = first + 2 * quarter + half, 2 * column
            pieces.append(domain.intervals.of(low[source] + step, high[source] + step))
        found.append(pieces)
    return found


def lane_pieces(machine: Machine, item: Instruction, offset: Interval) -> list[list[Interval]]:
    """For every matrix of a load or store the offsets of the pieces a lane holds."""
    key = ("lanes", offset)
    found = item.memo.get(key)
    if found is None:
        found = item.memo[key] = _lane_addresses(machine.domain, offset, item.detail)
    return found


def load_matrix(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> Value | None:
    """nvvm.ldmatrix."""
    pointer, move = values[0], cast("MatrixMove", item.detail)
    if not isinstance(pointer, Pointer) or pointer.region.kind != "shared" or not move.supported:
        return None
    memory = machine.shared[str(pointer.region.name)]
    machine.readers.setdefault(item.number, {})[pointer] = mask
    maps = machine.domain.maps
    numbers = list[Number]()
    for pieces in lane_pieces(machine, item, pointer.offset):
        size = 4 // len(pieces)
        loaded = tuple(memory.load(piece, size) for piece in pieces)
        together = item.memo.get(loaded)
        if together is None:
            together = item.memo[loaded] = maps.together(list(loaded))
        numbers.append(together)
    kind = item.types[0]
    return Struct(tuple(numbers)) if isinstance(kind, Fields) else numbers[0]


def store_matrix(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> None:
    """nvvm.stmatrix: whole warps store."""
    pointer, move = values[0], cast("MatrixMove", item.detail)
    if not isinstance(pointer, Pointer) or pointer.region.kind != "shared" or not move.supported:
        clobber_at(machine, item, pointer, None, state, mask, "stmatrix")
        return
    domain = machine.domain
    memory = machine.shared[str(pointer.region.name)]
    warps = domain.mask(mask.warps)
    pieces_of = lane_pieces(machine, item, pointer.offset)
    for value, pieces in zip(values[1:], pieces_of, strict=True):
        # A lane outside the mask has registers that this path says nothing about.
        data = domain.maps.where(mask.active, domain.as_map(value, 4), domain.maps.nothing(4))
        size = 4 // len(pieces)
        for index, piece in enumerate(pieces):
            part = domain.maps.part(data, index * size, size)
            memory.store(piece, part, warps, item.number)


# ---- mma ---------------------------------------------------------------------------------------


def multiply(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> Value | None:
    """nvvm.mma.sync: D = A * B + C of one warp."""
    detail = cast("MatrixProduct", item.detail)
    first, second = detail.registers[0], detail.registers[0] + detail.registers[1]
    a, b, c = values[:first], values[first:second], values[second:]
    kinds = item.operand_types
    a_code = _code(machine, item, a, kinds[:first], detail.a_type)
    b_code = _code(machine, item, b, kinds[first:second], detail.b_type)
    _record(machine, item, state, mask, a_code, b_code)
    return _accumulated(machine, item, c, kinds[second:], a_code, b_code)


def _code(
    machine: Machine,
    item: Instruction,
    registers: tuple[Value, ...],
    kinds: tuple[Type, ...],
    element: str | None,
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """The facts that hold for all elements of a fragment, per thread."""
    key = ("fragment", registers)
    found = item.memo.get(key)
    if found is None:
        found = item.memo[key] = fragment_code(machine.domain, registers, kinds, element)
    return found


def fragment_code(
    domain: Domain, registers: tuple[Value, ...], kinds: tuple[Type, ...], element: str | None
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """The facts that hold for all elements of a fragment: uint8 of shape (1 or threads,)."""
    code = np.full(1, ALL, np.uint8)
    for register, kind in zip(registers, kinds, strict=True):
        for part, scalar in _parts(domain, register, kind):
            size = _ELEMENT_BYTES.get(element or "", scalar.size if scalar.floating else 0)
            if size == 0 or part.size % size:
                # The elements are not known: all bytes must be 0.
                zero = np.bitwise_and.reduce(part.facts, axis=1) & 10
                code = code & (zero | zero >> 1)
                continue
            for start in range(0, part.size, size):
                code = code & domain.maps.part(part, start, size).code
    return code.astype(np.uint8)


def _parts(domain: Domain, register: Value, kind: Type) -> list[tuple[ZeroBytes, Scalar]]:
    if isinstance(kind, Scalar):
        return [(domain.as_map(register, kind.size), kind)]
    if isinstance(kind, Vector) and isinstance(register, tuple):
        element = kind.element
        return [(domain.as_map(number, element.size), element) for number in register]
    return [(domain.maps.nothing(4), Scalar("i32", 32, floating=False))]


def _accumulated(
    machine: Machine,
    item: Instruction,
    c: tuple[Value, ...],
    kinds: tuple[Type, ...],
    a_code: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
    b_code: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
) -> Value | None:
    """D: a zero of C stays one where the warp's A or B is zero."""
    kind = item.types[0]
    if not isinstance(kind, Fields) or len(kind.members) != len(c):
        return None
    domain = machine.domain
    integer = item.detail.a_type in _INTEGER_TYPES
    a, b = _over_warps(domain, a_code), _over_warps(domain, b_code)
    free = ((a | b) & FREE_SIGN) * FREE
    both = a | b if integer else a & b
    keep = (free | (both & STRICT_SIGN) // STRICT_SIGN * STRICT).astype(np.uint8)
    if not keep.any():
        return domain.top(kind)
    members = list[Value]()
    for value, scalar in zip(c, kinds, strict=True):
        if isinstance(scalar, Vector) and isinstance(value, tuple):
            size = scalar.element.size
            members.append(tuple(_kept(domain, number, size, keep) for number in value))
        elif isinstance(scalar, Scalar):
            members.append(_kept(domain, value, scalar.size, keep))
        else:
            return None
    return Struct(tuple(members))


def _kept(
    domain: Domain, value: Value, size: int, keep: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
) -> ZeroBytes:
    return domain.maps.of(domain.as_map(value, size).facts & keep[:, None])


def _over_warps(
    domain: Domain, code: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    if code.shape[0] == 1:
        return code
    return np.repeat(np.bitwise_and.reduce(code.reshape(-1, 32), axis=1), 32)


# ---- what a site's mma uses ----------------------------------------------------------------------


def _record(
    machine: Machine,
    item: Instruction,
    state: Registers,
    mask: Mask,
    a_code: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
    b_code: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
) -> None:
    if not mask.any or item.site is None:
        return
    first, second = item.detail.registers[0], sum(item.detail.registers[:2])
    operands = item.operands
    execution = Execution(
        _place(machine, item, "a", operands[:first]),
        _place(machine, item, "b", operands[first:second]),
        _place(machine, item, "c", operands[second:]),
        _everywhere(machine.domain, mask, a_code),
        _everywhere(machine.domain, mask, b_code),
    )
    machine.trace.executions.setdefault(item.site, []).append(execution)
    machine.trace.products.setdefault(item.site, set()).add(item.number)


def _everywhere(
    domain: Domain, mask: Mask, code: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
) -> int:
    if code.shape[0] == 1:
        return int(code[0])
    return int(np.bitwise_and.reduce(code[mask.active]))


def _place(machine: Machine, item: Instruction, name: str, operands: tuple[int, ...]) -> int | None:
    """The byte offset of the registers that a fragment is loaded from."""
    loads = item.memo.get(name)
    if loads is None:
        loads = item.memo[name] = fragment_loads(machine, operands)
    if not loads:
        return None
    offsets = list[int]()
    for load in loads:
        pointer = machine.env[load.operands[0]]
        inside = isinstance(pointer, Pointer) and pointer.region.kind == "private"
        if not inside or not pointer.offset.uniform:
            return None
        offsets.append(pointer.offset.least)
    return min(offsets)


_THROUGH = frozenset(
    (
        *("vector.to_elements", "vector.bitcast", "llvm.bitcast", "arith.bitcast"),
        *("vector.extract", "vector.from_elements", "vector.shape_cast"),
    )
)


def fragment_loads(machine: Machine, operands: tuple[int, ...]) -> tuple[Instruction, ...]:
    """The loads that operands of an mma come from; empty if one comes from something else."""
    found = dict[int, Instruction]()
    for number in operands:
        item = machine.program.definitions.get(number)
        while item is not None and item.name in _THROUGH:
            item = machine.program.definitions.get(item.operands[0])
        if item is None or item.name != "llvm.load":
            return ()
        found[item.number] = item
    return tuple(found.values())


EFFECTS: dict[str, Effect] = {
    "nvvm.mapa": peer_address,
    "nvvm.tcgen05.alloc": allocate_tensor_memory,
    "nvvm.tcgen05.commit": barrier_object,
    "nvvm.tcgen05.commit.arrive": barrier_object,
    "nvvm.shfl.sync": shuffle,
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": bulk_load,
    "nvvm.cp.async.bulk.shared.cluster.global": bulk_copy,
    "nvvm.cp.async.shared.global": asynchronous_copy,
    "nvvm.read.ptx.sreg.laneid": lane_index,
    "nvvm.read.ptx.sreg.warpid": warp_index,
    **{f"nvvm.read.ptx.sreg.tid.{name}": thread_index(axis) for axis, name in enumerate("xyz")},
    **{f"nvvm.read.ptx.sreg.ntid.{name}": block_extent(axis) for axis, name in enumerate("xyz")},
    **{f"nvvm.read.ptx.sreg.ctaid.{name}": grid_number for name in "xyz"},
    **{f"nvvm.read.ptx.sreg.nctaid.{name}": grid_number for name in "xyz"},
    **{
        f"nvvm.mbarrier.{name}": barrier_object
        for name in (
            *("init", "inval", "arrive", "arrive.nocomplete", "arrive.expect_tx"),
            *("arrive_drop", "arrive_drop.expect_tx", "arrive_drop.nocomplete"),
            *("expect_tx", "complete_tx", "txn", "remote_arrive"),
        )
    },
    **{
        f"nvvm.mbarrier.{name}.shared": barrier_object
        for name in ("init", "inval", "arrive", "arrive.nocomplete", "arrive.expect_tx")
    },
    "nvvm.cp.async.mbarrier.arrive": barrier_object,
    "nvvm.cp.async.mbarrier.arrive.shared": barrier_object,
    "nvvm.ldmatrix": load_matrix,
    "nvvm.stmatrix": store_matrix,
    "nvvm.mma.sync": multiply,
}
