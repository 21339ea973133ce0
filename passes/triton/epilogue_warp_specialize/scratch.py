"""The shared memory that the operations of an epilogue need for themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilepass.ir.effects import Effect, effects_of
from tilepass.ir.engine import Operation, ir, operations
from tilepass.ir.layouts import TensorType, parse_type
from tilepass.ir.loops import LoopNest, backward_slice, defining_operation
from tilepass.passes.triton.epilogue_warp_specialize.description import (
    TileLoad,
    TmaStore,
    bytes_of,
)


def scratch_of(nest: LoopNest, loads: Sequence[TileLoad], stores: Sequence[TmaStore]) -> int:
    """Bytes that the epilogue of a nest needs at a time, its rerouted loads and stores left out.

    A conversion between layouts goes through shared memory as a whole. Where the value does not
    depend on a tile that was loaded or computed, Triton converts the narrow tensors instead from
    which it is broadcast.
    """
    gone = {each for store in stores for each in store.dropped}
    gone |= {load.operation for load in loads}
    left = [each for operation in nest.after for each in operations(operation) if each not in gone]
    return max((_scratch_of(each, nest, gone) for each in left), default=0)


def _scratch_of(operation: Operation, nest: LoopNest, gone: set[Operation]) -> int:
    if operation.name == "tt.descriptor_load":
        return _most_bytes(operation.results)
    if operation.name == "tt.reduce":
        return _most_bytes(operation.operands)
    if operation.name != "ttg.convert_layout":
        return 0
    source = defining_operation(operation.operands[0])
    if source is not None and source in gone:
        return 0
    sources = backward_slice([operation.operands[0]], nest.outer.operation)
    whole = _most_bytes(operation.operands)
    depends = nest.inner[0].operation in sources or any(_loads(each, whole) for each in sources)
    return whole if depends else 0


def _loads(operation: Operation, size: int) -> bool:
    """Whether an operation loads a tensor of at least half as many bytes."""
    reads = effects_of(operation) & Effect.READ
    return bool(reads) and 2 * _most_bytes(operation.results) >= size


def _most_bytes(values: Iterable[ir.Value]) -> int:
    kinds = [parse_type(value.type) for value in values]
    tensors = [each for each in kinds if isinstance(each, TensorType) and each.pointee is None]
    return max(map(bytes_of, tensors), default=0)
