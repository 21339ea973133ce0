"""Rows and columns that an epilogue loads (a bias, a scale), kept in shared memory.

Before:  for each tile: dots; %b = tt.load of a row; accumulator + broadcast %b
After:   for each tile: %b = tt.load; first dot; ttg.local_store %b; dots;
                        for each piece: %p = ttg.local_load of its part of the row ...

In front of the first dot a row takes a register or two of every thread, and its latency passes
under the dot. Without the buffer Triton would load it in the accumulator's layout, every thread a
quarter of it, where it is used: behind the main loop, with its latency in the open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tilepass.analysis.memory_order import root_of
from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.engine import ir, plain
from tilepass.ir.layouts import MemDescType, SwizzledShared, TensorType
from tilepass.passes.triton.epilogue_warp_specialize.description import (
    PersistentNest,
    Refusal,
    bytes_of,
    once,
    tensor_type,
)
from tilepass.passes.triton.epilogue_warp_specialize.tile_axes import (
    STORES,
    Needed,
    TileSlice,
)
from tilepass.passes.triton.epilogue_warp_specialize.tile_clone import (
    Scalars,
    TileClone,
    layouts_for,
)
from tilepass.passes.triton.epilogue_warp_specialize.tile_shapes import Axes, Layouts, Window

_PLAIN = SwizzledShared(vec=1, per_phase=1, max_phase=1, order=(0,))


@dataclass(frozen=True)
class Rows:
    """The loads of a consumer's window, and `computed`: what they alone are computed from."""

    window: Window
    layouts: Layouts
    early: tuple[Needed, ...]
    loads: tuple[Needed, ...]
    computed: frozenset[Needed]

    @cached_property
    def bytes(self) -> int:
        """Shared memory that they take."""
        return sum(bytes_of(self._type(each)) for each in self.loads)

    @property
    def operands(self) -> list[ir.Value]:
        """The scalars that must be there before they are loaded."""
        operands = [operand for each in self.early for operand in each.operation.operands]
        return [each for each in operands if not isinstance(each.type, ir.RankedTensorType)]

    def allocate(self, builder: AsyncBuilder) -> tuple[ir.Value, ...]:
        """A buffer for each load."""
        types = [self._type(each) for each in self.loads]
        return tuple(
            builder.local_alloc(
                builder.type(MemDescType(each.shape, each.element, _PLAIN, mutable=True))
            )
            for each in types
        )

    def clear(self, buffers: Sequence[ir.Value], builder: AsyncBuilder) -> None:
        """Zeros in the buffers, for late pieces of no tile: nobody reads what was never written."""
        for needed, buffer in zip(self.loads, buffers, strict=True):
            builder.local_store(builder.zeros(builder.type(self._type(needed))), buffer)

    def load(self, source: TileSlice, scalars: Scalars, builder: AsyncBuilder) -> list[ir.Value]:
        """The rows of one tile, whole."""
        clone = TileClone(source, self.window, self.layouts, scalars)
        for needed in self.early:
            clone.clone(needed, builder)
        return [clone.value(each.operation.results[0], each.axes) for each in self.loads]

    def read(
        self, needed: Needed, buffer: ir.Value, part: TileClone, builder: AsyncBuilder
    ) -> ir.Value:
        """A piece's part of a row."""
        (axis,) = needed.axes
        assert axis is not None
        first = part.window.offset[axis] - self.window.offset[axis]
        if part.window.size[axis] != self.window.size[axis]:
            buffer = builder.subslice(buffer, 0, first, part.window.size[axis])
        kind = part.type_of(needed.operation.results[0], needed.axes)
        return builder.local_load(buffer, kind)

    def _type(self, needed: Needed) -> TensorType:
        return self.layouts.type(tensor_type(needed.operation.results[0]), needed.axes)


def rows_of(nest: PersistentNest, source: TileSlice, window: Window, warps: int) -> Rows | Refusal:
    """The rows and columns of a consumer's window."""
    layouts = layouts_for(nest, source, window, warps)
    if isinstance(layouts, Refusal):
        return layouts
    return Rows(window, layouts, *_taken_apart(nest, source))


@once
def _taken_apart(
    nest: PersistentNest, source: TileSlice
) -> tuple[tuple[Needed, ...], tuple[Needed, ...], frozenset[Needed]]:
    """`early`, `loads` and `computed` of Rows."""
    early = _early_loads(nest, source)
    loads = tuple(each for each in early if _is_row(each))
    return early, loads, _only_for(loads, early, source)


def _early_loads(nest: PersistentNest, source: TileSlice) -> tuple[Needed, ...]:
    """The loads of rows and columns that may stand in front of the main loop, with what they need:
    those of memory that the nest does not store to."""
    stores = (*(each.operation for each in nest.tma_stores), *nest.pointer_stores)
    written = {root_of(each.operands[0]) for each in stores}
    loads = [
        each
        for each in source.needed
        if each.operation.name == "tt.load" and len(each.axes) == 1
        if None not in written and root_of(each.operation.operands[0]) not in {*written, None}
    ]
    wanted = {(plain(result), each.axes) for each in loads for result in each.operation.results}
    found: list[Needed] = []
    for each in reversed(source.needed):
        if any((plain(result), each.axes) in wanted for result in each.operation.results):
            found.append(each)
            wanted |= {
                (plain(operand), axes)
                for operand, axes in zip(each.operation.operands, each.operand_axes, strict=True)
            }
    return tuple(reversed(found))


def _uses(user: Needed) -> list[tuple[ir.Value, Axes]]:
    operands = [plain(each) for each in user.operation.operands]
    if user.operation.name in STORES:
        return [(each, user.axes) for each in operands]
    return list(zip(operands, user.operand_axes, strict=True))


def _is_row(needed: Needed) -> bool:
    return needed.operation.name == "tt.load" and needed.axes in ((0,), (1,))


def _only_for(
    loads: tuple[Needed, ...], early: tuple[Needed, ...], source: TileSlice
) -> frozenset[Needed]:
    """What of `early` no operation but the loads needs."""
    used = {use for user in source.needed if user not in early for use in _uses(user)}
    alone: list[Needed] = []
    for each in reversed(early):
        if each in loads:
            continue
        if any((plain(result), each.axes) in used for result in each.operation.results):
            used.update(_uses(each))
        else:
            alone.append(each)
    return frozenset(alone)
