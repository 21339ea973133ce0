"""Builders for what warp-specialized kernels on Hopper are made of: rings, barriers, TMA, wgmma.

They spell operations for the Triton that is to read them (3.6 to 3.9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from tilepass.ir.build import Builder
from tilepass.ir.engine import ir
from tilepass.ir.layouts import MemDescType, SwizzledShared, TensorType, parse_type
from tilepass.ir.shared_memory import blocks_apart

# Where the operand that TMA takes for im2col coordinates, and with it segment sizes, came in.
_SEGMENTED_COPY = (3, 7)
# The wait for stores says whether reading the source is all that it waits for.
_EXPLICIT_READ_WAIT = (3, 9)

_BARRIER_ENCODING = SwizzledShared(vec=1, per_phase=1, max_phase=1, order=(0,))
BARRIER = MemDescType((1,), "i64", _BARRIER_ENCODING, mutable=True)
"""The type of one mbarrier."""


def barrier_array(count: int) -> MemDescType:
    """The type of `count` mbarriers."""
    return replace(BARRIER, shape=(count, 1))


def buffer_of(block: TensorType, slots: int | None = None) -> MemDescType:
    """The type of a buffer for a block that TMA moves, or of an array of `slots` such buffers.

    Where a block is smaller than what TMA's places are multiples of, there are blocks between the
    slots that nobody uses: `AsyncBuilder.slot` knows.
    """
    assert block.encoding is not None
    shape = block.shape
    if slots is not None:
        shape = ((slots - 1) * blocks_apart(block) + 1, *shape)
    return MemDescType(shape, block.element, block.encoding, mutable=True)


@dataclass(frozen=True)
class _Made:
    """What builders of one block and of what is inside it make once: types and attributes by text
    or view, types of slots and how far apart they are by those of their arrays, constants by value
    and type at its start."""

    block: ir.Block
    types: dict[object, ir.Type] = field(default_factory=dict[object, ir.Type])
    slot_types: dict[ir.Type, tuple[ir.Type, int]] = field(
        default_factory=dict[ir.Type, tuple[ir.Type, int]]
    )
    attributes: dict[str, ir.Attribute] = field(default_factory=dict[str, ir.Attribute])
    constants: dict[tuple[int, ir.Type], ir.Value] = field(
        default_factory=dict[tuple[int, ir.Type], ir.Value]
    )


class AsyncBuilder(Builder):
    """A builder that knows for which Triton it builds."""

    def __init__(
        self,
        place: ir.InsertionPoint,
        location: ir.Location,
        triton_version: tuple[int, ...],
        made: _Made | None = None,
    ) -> None:
        super().__init__(place, location)
        self.triton_version = triton_version
        self._made = made or _Made(place.block)

    def at(self, place: ir.InsertionPoint) -> AsyncBuilder:
        """The same at another place."""
        return AsyncBuilder(place, self.location, self.triton_version, self._made)

    def inside(self, block: ir.Block) -> AsyncBuilder:
        """The same at the end of a block that has no terminator yet."""
        return self.at(ir.InsertionPoint(block))

    def begin(self, block: ir.Block) -> AsyncBuilder:
        """The same at the start of a block."""
        return self.at(ir.InsertionPoint.at_block_begin(block))

    def type(self, view: object) -> ir.Type:
        """See Builder; each is parsed once."""
        types = self._made.types
        if view not in types:
            types[view] = super().type(view)
        return types[view]

    def attribute(self, text: str) -> ir.Attribute:
        """See Builder; each is parsed once."""
        attributes = self._made.attributes
        if text not in attributes:
            attributes[text] = super().attribute(text)
        return attributes[text]

    def constant(self, value: int | bool, type_: ir.Type | str = "i32") -> ir.Value:
        """See Builder; each is made once, at the start of the block of the first builder."""
        constants = self._made.constants
        key = int(value), self.type(type_) if isinstance(type_, str) else type_
        if key not in constants:
            constants[key] = Builder(self._front(), self.location).constant(*key)
        return constants[key]

    def _front(self) -> ir.InsertionPoint:
        """Behind the constants at the start of the block: what stood there first may be what this
        builds before it, and goes."""
        last = next(reversed(self._made.constants.values()), None)
        if last is None:
            return ir.InsertionPoint.at_block_begin(self._made.block)
        return ir.InsertionPoint.after(ir.OpResult(last).owner)

    def slot(self, array: ir.Value, index: ir.Value) -> ir.Value:
        """`ttg.memdesc_index`: one buffer of an array of `buffer_of` or `barrier_array`."""
        types, type_ = self._made.slot_types, array.type
        if type_ not in types:
            kind = memdesc_of(array)
            slot = replace(kind, shape=kind.shape[1:])
            apart = 1 if slot == BARRIER else blocks_apart(slot)
            types[type_] = self.type(slot), apart
        slot_type, apart = types[type_]
        if apart > 1:
            index = self.integer("muli", index, self.constant(apart))
        return self._value("ttg.memdesc_index", (array, index), slot_type)

    def subslice(self, buffer: ir.Value, dimension: int, first: int, count: int) -> ir.Value:
        """`ttg.memdesc_subslice` of a buffer along one dimension."""
        kind = memdesc_of(buffer)
        shape = list(kind.shape)
        shape[dimension] = count
        offsets = ["0"] * len(shape)
        offsets[dimension] = str(first)
        part = replace(kind, shape=tuple(shape), alloc_shape=kind.shape)
        attributes = {"offsets": f"array<i32: {', '.join(offsets)}>"}
        return self._value("ttg.memdesc_subslice", (buffer,), self.type(part), attributes)

    def init_barrier(self, barrier: ir.Value, count: int) -> None:
        """`ttng.init_barrier`: a phase takes `count` arrivals."""
        self.create("ttng.init_barrier", (barrier,), (), {"count": f"{count} : i32"})

    def wait_barrier(self, barrier: ir.Value, parity: ir.Value) -> None:
        """`ttng.wait_barrier` until the phase of this parity is complete."""
        self.create(
            "ttng.wait_barrier",
            (barrier, parity),
            (),
            {"operandSegmentSizes": "array<i32: 1, 1, 0, 0>"},
        )

    def arrive_barrier(self, barrier: ir.Value, predicate: ir.Value | None = None) -> None:
        """`ttng.arrive_barrier` once, where the predicate (i1) is true."""
        operands = (barrier,) if predicate is None else (barrier, predicate)
        self.create("ttng.arrive_barrier", operands, (), {"count": "1 : i32"})

    def expect_bytes(self, barrier: ir.Value, count: int) -> None:
        """`ttng.barrier_expect`: arrive once, and complete when TMA has brought `count` bytes."""
        always = self.constant(True, "i1")
        self.create("ttng.barrier_expect", (barrier, always), (), {"size": f"{count} : i32"})

    def tma_load(
        self,
        descriptor: ir.Value,
        coordinates: Sequence[ir.Value],
        barrier: ir.Value,
        buffer: ir.Value,
    ) -> None:
        """`ttng.async_tma_copy_global_to_local` of one block."""
        always = self.constant(True, "i1")
        attributes = {"isVolatile": "false"}
        if self.triton_version >= _SEGMENTED_COPY:
            sizes = f"array<i32: 1, {len(coordinates)}, 0, 1, 1, 1>"
            attributes["operandSegmentSizes"] = sizes
        self.create(
            "ttng.async_tma_copy_global_to_local",
            (descriptor, *coordinates, barrier, buffer, always),
            (),
            attributes,
        )

    def tma_store(
        self, descriptor: ir.Value, coordinates: Sequence[ir.Value], buffer: ir.Value
    ) -> None:
        """`ttng.async_tma_copy_local_to_global` of one block, a separate group."""
        self.create("ttng.async_tma_copy_local_to_global", (descriptor, *coordinates, buffer), ())

    def tma_store_wait(self, pendings: int) -> None:
        """`ttng.async_tma_store_wait` until the sources of all stores but the last `pendings` have
        been read."""
        attributes: dict[str, ir.Attribute | str] = {"pendings": f"{pendings} : i32"}
        if self.triton_version >= _EXPLICIT_READ_WAIT:
            attributes["read_only"] = ir.UnitAttr.get(self.context)
        self.create("ttng.async_tma_store_wait", (), (), attributes)

    def local_store(self, value: ir.Value, buffer: ir.Value) -> None:
        """`ttg.local_store` of a tensor into a buffer."""
        self.create("ttg.local_store", (value, buffer))

    def fence_async_shared(self) -> None:
        """`ttng.fence_async_shared`: what was stored to shared memory is there for TMA."""
        self.create("ttng.fence_async_shared", (), (), {"bCluster": "false"})


def memdesc_of(value: ir.Value) -> MemDescType:
    """The view of a buffer's type."""
    return cast("MemDescType", parse_type(value.type))
