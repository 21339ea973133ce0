"""What a persistent nest consists of, as the builders of all schemes see it.

prelude                                  // pure, or run once before everything
scf.for %tile = ... {                    // outer
  tile operations                        // rows, columns, trip count; a bias loaded early
  scf.for %k = ... iter_args(%acc) {     // inner
    step operations                      // scalars that the loads' coordinates need
    loads -> views -> dot
  }
  epilogue                               // elementwise, tile loads, stores
}
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, ClassVar, TypeVar, TypeVarTuple

from tilepass.core.refusal import Refusal
from tilepass.ir.engine import Operation, ir, operations
from tilepass.ir.layouts import NvmmaShared, TensorDescType, TensorType, element_bits, parse_type
from tilepass.ir.loops import Carried, Loop, defining_operation

_Arguments = TypeVarTuple("_Arguments")

_Found = TypeVar("_Found")

# Pure to the program, yet no partition may repeat them: they write a descriptor to global memory.
DESCRIPTOR_MAKERS = ("tt.make_tensor_descriptor", "ttng.reinterpret_tensor_descriptor")


@dataclass(frozen=True)
class TmaAccess:
    """An operation that moves a block between global memory and a buffer: operands are a
    descriptor, perhaps a value, and coordinates."""

    _FIRST_COORDINATE: ClassVar[int] = 1

    operation: Operation

    @cached_property
    def descriptor(self) -> ir.Value:
        return self.operation.operands[0]

    @cached_property
    def coordinates(self) -> tuple[ir.Value, ...]:
        """The first element's index in each dimension, i32."""
        return tuple(self.operation.operands)[self._FIRST_COORDINATE :]

    @cached_property
    def block(self) -> TensorType:
        """Shape, element type and shared memory encoding of a buffer for what is moved: a matrix or
        a row, also where the descriptor is of more dimensions and its block of one index in each of
        those."""
        return block_of(self.descriptor)

    @cached_property
    def unknown_place(self) -> Refusal | None:
        """A refusal where a buffer for the block is not known to be one that TMA can use: other
        layouts than these may be cut at places that are not aligned."""
        kind = parse_type(self.descriptor.type)
        if not isinstance(kind, TensorDescType) or kind.im2col:
            known = False
        else:
            known = isinstance(kind.block.encoding, NvmmaShared)
        if known:
            return None
        return Refusal(self.operation, f"a descriptor of type {kind} has no block in memory")

    @cached_property
    def bytes(self) -> int:
        return bytes_of(self.block)


@dataclass(frozen=True)
class TileLoad(TmaAccess):
    """A `tt.descriptor_load`."""


@dataclass(frozen=True)
class DotOperand:
    """An operand of the dot: which load it comes from, seen through which `ttg.memdesc_*` views."""

    load: int
    views: tuple[Operation, ...]


@dataclass(frozen=True)
class TmaStore(TmaAccess):
    """A `tt.descriptor_store`.

    `value` is what goes to the staging buffer. It is before the `ttg.convert_layout`
    operations that only this store used, `dropped`: a buffer can be written from any layout, and
    straight from the accumulator's it takes stmatrix.
    """

    _FIRST_COORDINATE: ClassVar[int] = 2

    value: ir.Value
    dropped: tuple[Operation, ...]


@dataclass(frozen=True)
class PersistentNest:
    """A tile loop with one dot loop in it, taken apart. Operations stand in program order.

    `invariant` is what makes descriptors in the tile loop, each time the same. It counts to the
    prelude, and stands where it was until `move_invariant`. `tile_operations` and `epilogue` hold
    everything else before and after the inner loop, stores and loads included. `tile_loads` are the
    descriptor loads among them that a producer may run ahead of: they read nothing that the nest
    stores. `scratch_bytes` is the shared memory that the other operations of the epilogue need.
    """

    function: Operation
    outer: Loop
    inner: Loop
    prelude: tuple[Operation, ...]
    invariant: tuple[Operation, ...]
    tile_operations: tuple[Operation, ...]
    step_operations: tuple[Operation, ...]
    loads: tuple[TileLoad, ...]
    a: DotOperand
    b: DotOperand
    dot: Operation
    accumulator: int
    epilogue: tuple[Operation, ...]
    tile_loads: tuple[TileLoad, ...]
    tma_stores: tuple[TmaStore, ...]
    pointer_stores: tuple[Operation, ...]
    num_warps: int
    scratch_bytes: int
    found: dict[tuple[object, ...], Any] = field(
        default_factory=dict[tuple[object, ...], Any], init=False, compare=False, repr=False
    )
    """What functions that are asked `once` have said."""

    def move_invariant(self) -> None:
        """Put what is invariant before the tile loop. Before anything else is rewritten."""
        for each in self.invariant:
            each.move_before(self.outer.operation)

    @cached_property
    def carried_accumulator(self) -> Carried:
        return self.inner.carried[self.accumulator]

    @cached_property
    def carried_scalars(self) -> tuple[Carried, ...]:
        """What else the inner loop carries: scalars that only the loads' coordinates need."""
        carried = self.inner.carried
        return tuple(each for index, each in enumerate(carried) if index != self.accumulator)

    @cached_property
    def sources(self) -> dict[Operation, list[Operation]]:
        """For each operation inside the tile loop those that its operands come from, the operands
        of operations in its regions included."""
        inside = operations(self.outer.operation)[1:]
        found = {each: _defined(each) for each in inside}
        for each in inside:
            if len(each.regions):
                nested = operations(each)[1:]
                found[each] = [source for one in (each, *nested) for source in _defined(one)]
        return found

    @cached_property
    def accumulator_type(self) -> TensorType:
        """Shape [M, N], element type and `#ttg.nvidia_mma` encoding of the accumulator."""
        return tensor_type(self.dot.results[0])

    @cached_property
    def tile(self) -> tuple[int, int, int]:
        """M, N and K of a step, in elements."""
        m, n = self.accumulator_type.shape
        load = self.loads[self.a.load]
        return m, n, math.prod(load.block.shape) // m

    @cached_property
    def accumulator_registers(self) -> int:
        """Registers of 32 bits that each thread has for the accumulator."""
        m, n, _ = self.tile
        return m * n // (32 * self.num_warps)

    def is_tile_load(self, operation: Operation) -> bool:
        return any(load.operation == operation for load in self.tile_loads)


def once(
    function: Callable[[PersistentNest, *_Arguments], _Found],
) -> Callable[[PersistentNest, *_Arguments], _Found]:
    """Let each nest keep what a function says of it and of other, hashable arguments: schemes and
    numbers of pieces ask the same. For what is asked before anything is rewritten."""

    @wraps(function)
    def asked(nest: PersistentNest, *arguments: *_Arguments) -> _Found:
        key = (function, *arguments)
        if key not in nest.found:
            nest.found[key] = function(nest, *arguments)
        return nest.found[key]

    return asked


def _defined(operation: Operation) -> list[Operation]:
    sources = map(defining_operation, operation.operands)
    return [source for source in sources if source is not None]


def block_of(descriptor: ir.Value) -> TensorType:
    view = parse_type(descriptor.type)
    assert isinstance(view, TensorDescType)
    return in_memory(view)


def in_memory(descriptor: TensorDescType) -> TensorType:
    """A descriptor's block as values and buffers have it: a matrix where the dimensions before are
    of size 1, integers without the sign (si8) that a descriptor tells apart."""
    block, encoding = descriptor.block, descriptor.block.encoding
    ones = outer_dimensions(block)
    if ones and encoding is not None:
        encoding = replace(encoding, extra=tuple(e for e in encoding.extra if e[0] != "rank"))
    element = block.element.replace("si", "i").replace("ui", "i")
    return TensorType(block.shape[ones:], element, encoding)


def outer_dimensions(block: TensorType) -> int:
    """How many dimensions of size 1 a block has before those of a matrix; 0 where others are among
    them."""
    ones = block.shape[:-2]
    return len(ones) if all(extent == 1 for extent in ones) else 0


def tensor_type(value: ir.Value) -> TensorType:
    view = parse_type(value.type)
    assert isinstance(view, TensorType)
    return view


def bytes_of(tensor: TensorType) -> int:
    return math.prod(tensor.shape) * element_bits(tensor.element) // 8
