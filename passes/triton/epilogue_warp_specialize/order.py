"""What a partition may compute again, at another time than the source, and in another order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from tilepass.analysis.memory_order import root_of
from tilepass.core.refusal import Refusal
from tilepass.ir.effects import Effect, effects_of
from tilepass.ir.engine import Operation, ir, operations
from tilepass.ir.loops import LoopNest, backward_slice, defining_operation

from .description import PersistentNest, once


def tile_slice(nest: PersistentNest, roots: Sequence[ir.Value]) -> set[Operation]:
    """The operations of the tile loop's own block that `roots` are computed from.

    What the tile loop carries into its next trip is included: every partition carries it.
    """
    return {*_sliced(nest, tuple(roots))}


@once
def _sliced(nest: PersistentNest, roots: tuple[ir.Value, ...]) -> set[Operation]:
    values = [*roots, *nest.outer.terminator.operands]
    waiting = [defining_operation(value) for value in values]
    found: set[Operation] = set()
    while waiting:
        operation = waiting.pop()
        if operation is None or operation in found or operation not in nest.sources:
            continue
        found.add(operation)
        waiting.extend(nest.sources[operation])
    return found


def producer_roots(nest: PersistentNest) -> list[ir.Value]:
    """The values that the producer computes for itself, those inside the inner loop left out."""
    inner = nest.inner
    return [
        inner.lower_bound,
        inner.upper_bound,
        inner.step,
        *(carried.initial for carried in nest.carried_scalars),
        *(value for load in nest.loads for value in load.coordinates),
        *(value for each in nest.step_operations for value in each.operands),
        *(value for load in nest.tile_loads for value in load.coordinates),
    ]


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
        return f"{name} is not a pure computation"
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


_TMA_STORE = "tt.descriptor_store"


def read_back_obstacle(nest: PersistentNest, because: str) -> Refusal | None:
    """A refusal where the tile loop may load what it has stored for a tile before: a scheme does
    not keep the order of the two, and `because` is why.

    A tile may be loaded from where it is stored: tiles whose place depends on their number are
    taken to be apart, as two programs that compute them would need it too.
    """
    places = [place for place in map(place_of, stores_of(nest)) if _depends_on_tile(nest, place)]
    around = (*nest.tile_operations, *nest.epilogue)
    for read in _reads_of(around, written_roots(nest)):
        if place_of(read) not in places:
            return Refusal(
                read,
                f"{read.name} may read what the tile loop stores, and {because}",
                "load and store through different arguments",
            )
    return None


def store_again_obstacle(nest: PersistentNest, because: str) -> Refusal | None:
    """A refusal where every tile is stored to one place: the last of them is to stay there."""
    for store in stores_of(nest):
        if not _depends_on_tile(nest, place_of(store)):
            return Refusal(store, f"all tiles are stored to one place, and {because}")
    return None


def stores_of(nest: PersistentNest) -> list[Operation]:
    """The stores of the epilogue, by TMA and through pointers."""
    return [*(each.operation for each in nest.tma_stores), *nest.pointer_stores]


def place_of(operation: Operation) -> tuple[ir.Value, ...]:
    """What tells where a load or store is: pointers, or a descriptor and coordinates."""
    operands = list(operation.operands)
    if operation.name == _TMA_STORE:
        return operands[0], *operands[2:]
    return tuple(operands if operation.name == "tt.descriptor_load" else operands[:1])


def _depends_on_tile(nest: PersistentNest, place: tuple[ir.Value, ...]) -> bool:
    sources = backward_slice(list(place), nest.outer.operation)
    used = [*place, *(operand for each in sources for operand in each.operands)]
    return any(defining_operation(value) is None and nest.outer.defines(value) for value in used)


def read_behind_store(nest: LoopNest) -> Refusal | None:
    """A refusal where an epilogue loads what it has stored with TMA before: the source waits for
    each store, and consumers wait only before they fill its buffer again."""
    written = set[int | None]()
    for each in nest.after:
        if read := next(_reads_of((each,), written), None) if written else None:
            return Refusal(
                read,
                f"{read.name} may read what a TMA store before it writes, and consumers do "
                "not wait there for their stores",
                "use the value that was stored",
            )
        if each.name == _TMA_STORE:
            written.add(root_of(each.operands[0]))
    return None


def _reads_of(among: Iterable[Operation], written: AbstractSet[int | None]) -> Iterator[Operation]:
    """The operations, at any depth, that may load through what derives from these roots."""
    for each in (inside for one in among for inside in operations(one)):
        if len(each.regions) or not effects_of(each) & Effect.READ:
            continue
        if may_read(each, written):
            yield each


def may_read(load: Operation, written: AbstractSet[int | None]) -> bool:
    """Whether an operation that reads may do so through what derives from these roots.

    Different arguments of the kernel are taken not to overlap, as Triton's pipeliner does.
    """
    root = root_of(load.operands[0]) if len(load.operands) else None
    return root is None or root in written or None in written
