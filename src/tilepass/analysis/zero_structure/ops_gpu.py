"""Transfer functions of NVVM operations on threads, barriers and bulk copies."""

from __future__ import annotations

import numpy as np

from tilepass.analysis.zero_structure.attributes import Bulk
from tilepass.analysis.zero_structure.intervals import IntArray, Interval
from tilepass.analysis.zero_structure.machine import Effect, Machine
from tilepass.analysis.zero_structure.ops_memory import clobber_at
from tilepass.analysis.zero_structure.private import Registers
from tilepass.analysis.zero_structure.program import Instruction
from tilepass.analysis.zero_structure.types import Scalar
from tilepass.analysis.zero_structure.values import Mask, Number, Struct, Value
from tilepass.analysis.zero_structure.zero_bytes import ZeroBytes

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
}
