"""Whether a warp that only copies can compute the scalars that it needs."""

from __future__ import annotations

from collections.abc import Sequence

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
        if any(map(_touches_tensors, operations(each))):
            return Refusal(each, f"{purpose}: computed from tensors ({each.name})")
        effects = effects_of(each)
        if effects & ~Effect.READ:
            return Refusal(each, f"{purpose}: {each.name} is no pure computation")
        if effects and (not each.operands or root_of(each.operands[0]) in {None, *written}):
            return Refusal(each, f"{purpose}: {each.name} may read what the tile loop stores")
    return None


def written_roots(nest: PersistentNest) -> set[tuple[str, int] | None]:
    """Where the pointers and descriptors come from that the tile loop stores through."""
    stores = (*(store.operation for store in nest.tma_stores), *nest.pointer_stores)
    return {root_of(each.operands[0]) for each in stores}


def _touches_tensors(operation: Operation) -> bool:
    values = (*operation.operands, *operation.results)
    return any(isinstance(value.type, ir.RankedTensorType) for value in values)
