"""Copies of a nest's operations, in which other values stand for those of the source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilepass.ir import engine
from tilepass.ir.build import Builder
from tilepass.ir.engine import Operation, ir, plain
from tilepass.ir.loops import defining_operation
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, once


class Clones:
    """Which value stands for which of the source; a value without a stand-in is itself."""

    def __init__(self, values: dict[ir.Value, ir.Value] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, value: ir.Value) -> ir.Value:
        source = plain(value)
        return self._values.get(source, source)

    def __setitem__(self, value: ir.Value, stand_in: ir.Value) -> None:
        self._values[plain(value)] = plain(stand_in)

    def of(self, values: Iterable[ir.Value]) -> list[ir.Value]:
        """The stand-ins of several values."""
        return [self[value] for value in values]

    def nested(self) -> Clones:
        """The same at first; what it learns stays with it."""
        return Clones(self._values)

    def copy(self, operation: Operation, builder: Builder) -> Operation:
        """A copy of an operation; its results stand for the source's from now on."""
        clone = operation.clone(ip=builder.place).operation
        for each in engine.operations(clone) if len(clone.regions) else [clone]:
            for index, operand in enumerate(each.operands):
                if (stand_in := self._values.get(plain(operand))) is not None:
                    each.operands[index] = stand_in
        for source, result in zip(operation.results, clone.results, strict=True):
            self[source] = result
        return clone


def tile_slice(nest: PersistentNest, roots: Sequence[ir.Value]) -> set[Operation]:
    """The operations of the tile loop's own block that `roots` are computed from.

    What the tile loop carries into its next trip is included: every partition carries it.
    """
    return {*_sliced(nest, tuple(map(plain, roots)))}


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
