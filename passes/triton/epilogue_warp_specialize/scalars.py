"""Whether a warp that only copies can compute the scalars that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from tilepass.analysis.memory_order import root_of
from tilepass.ir.effects import Effect, effects_of
from tilepass.ir.engine import Operation, ir, operations
from tilepass.passes.triton.epilogue_warp_specialize.clones import tile_slice
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, Refusal


def scalar_obstacle(
    nest: PersistentNest, roots: Sequence[ir.Value], purpose: str
) -> Refusal | None:
    """Why one warp, which has neither the accumulator nor the source's layouts, cannot compute
    `roots`; `purpose` is what they are for.

    It computes them at other times than the source: what it reads, nobody may write.
    """
    written = written_roots(nest)
    needed = tile_slice(nest, roots)
    for each in (*nest.tile_operations, nest.inner.operation, *nest.epilogue):
        if each not in needed:
            continue
        if each == nest.inner.operation:
            return Refusal(nest.dot, f"{purpose}: computed from the accumulator")
        for inside in operations(each):
            if reason := _not_to_repeat(inside, written):
                return Refusal(inside, f"{purpose}: {reason}")
    return None


def _not_to_repeat(operation: Operation, written: AbstractSet[int | None]) -> str | None:
    """Why an operation of one trip is not computed again at another time."""
    name = operation.name
    if touches_tensors(operation):
        return f"computed from tensors ({name})"
    # Its effects are those of the operations inside.
    effects = Effect.NONE if name == "scf.if" else effects_of(operation)
    if effects & ~Effect.READ:
        return f"{name} is no pure computation"
    if effects and (not operation.operands or root_of(operation.operands[0]) in {None, *written}):
        return f"{name} may read what the tile loop stores"
    return None


def written_roots(nest: PersistentNest) -> set[int | None]:
    """Where the pointers and descriptors come from that the tile loop stores through."""
    stores = (*(store.operation for store in nest.tma_stores), *nest.pointer_stores)
    return {root_of(each.operands[0]) for each in stores}


def touches_tensors(operation: Operation) -> bool:
    values = (*operation.operands, *operation.results)
    return any(isinstance(value.type, ir.RankedTensorType) for value in values)
