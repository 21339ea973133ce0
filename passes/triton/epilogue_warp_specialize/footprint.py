"""The shared memory that a plan takes, in bytes."""

from __future__ import annotations

from collections.abc import Iterable

from tilepass.ir.effects import Effect, effects_of
from tilepass.ir.engine import Operation, ir
from tilepass.ir.layouts import TensorType, parse_type
from tilepass.ir.loops import backward_slice, defining_operation
from tilepass.passes.triton.epilogue_warp_specialize.description import (
    PersistentNest,
    bytes_of,
)
from tilepass.passes.triton.epilogue_warp_specialize.rings import BARRIER_BYTES

# Captures of the partitions and their state (well under 256 bytes), and the gaps in front of
# buffers, which begin at multiples of 1024 bytes at most.
OVERHEAD_BYTES = 1024


def ring_bytes(blocks: Iterable[int], slots: int) -> int:
    """A ring of slots with buffers of these sizes, its barriers included."""
    return slots * (sum(blocks) + 2 * BARRIER_BYTES)


def scratch_bytes(nest: PersistentNest) -> int:
    """What the epilogue's own operations need at a time.

    A conversion between layouts goes through shared memory as a whole. Where the value does not
    depend on a tile that was loaded or computed, Triton converts the narrow tensors instead from
    which it is broadcast.
    """
    gone = {each for store in nest.tma_stores for each in store.dropped}
    sizes = [_scratch_of(each, nest) for each in nest.epilogue if each not in gone]
    return max(sizes, default=0)


def _scratch_of(operation: Operation, nest: PersistentNest) -> int:
    if operation.name == "tt.descriptor_load" and not nest.is_tile_load(operation):
        return _bytes(operation.results[0])
    if operation.name != "ttg.convert_layout":
        return max(map(_bytes, operation.operands)) if operation.name == "tt.reduce" else 0
    source = defining_operation(operation.operands[0])
    if source is not None and nest.is_tile_load(source):
        return 0
    sources = backward_slice([operation.operands[0]], nest.outer.operation)
    whole = _bytes(operation.operands[0])
    if nest.inner.operation in sources or any(_loads(each, whole) for each in sources):
        return whole
    return 0


def _loads(operation: Operation, size: int) -> bool:
    """Whether an operation loads a tensor of at least half as many bytes."""
    return bool(effects_of(operation) & Effect.READ) and any(
        2 * _bytes(result) >= size for result in operation.results
    )


def _bytes(value: ir.Value) -> int:
    kind = parse_type(value.type)
    if not isinstance(kind, TensorType) or kind.pointee is not None:
        return 0
    return bytes_of(kind)
