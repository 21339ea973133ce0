"""Register fragments of a `cute.gemm`: what their types say, and views of single tiles."""

from __future__ import annotations

from dataclasses import dataclass

from tilepass.ir.build import Builder
from tilepass.ir.cute import Layout, StaticTensor, build, joined, static_tensor
from tilepass.ir.engine import ir

_ELEMENTS = frozenset({"f16", "bf16", "f8E4M3FN", "f8E5M2", "tf32", "f32", "f64"})
_UNIT = Layout(1, 0)


@dataclass(frozen=True)
class Fragment:
    """A tensor in registers with a static layout of modes (value, outer, inner).

    For A the tiles are [m, k], for B [n, k], for the accumulator [m, n].
    """

    value: ir.Value
    tensor: StaticTensor

    @property
    def is_dense(self) -> bool:
        """Whether the values of a tile lie side by side. The compiler reads B's as if they did."""
        return self._values.offsets() == list(range(self._values.size))

    @property
    def tiles(self) -> tuple[int, int]:
        """Extents of the two modes that count tiles."""
        _, outer, inner = self.tensor.layout.modes
        return outer.size, inner.size

    def offsets(self, outer: int, inner: int) -> list[int]:
        """Where the elements of one tile lie, in elements from the tensor's begin."""
        start = self._offset(outer, inner)
        return [start + offset for offset in self._values.offsets()]

    def tile(self, builder: Builder, outer: int, inner: int) -> ir.Value:
        """A view of one tile, modes (value, 1, 1)."""
        pointer, part = self._pointer(builder, outer, inner)
        view = part.part(0, joined((self._values, _UNIT, _UNIT)))
        return build(builder, "cute.make_view", [pointer], view)

    def words(self, builder: Builder, outer: int, inner: int) -> list[ir.Value]:
        """The registers of one tile as i32 values.

        The values of a tile must lie densely, as they do in fragments of warp-level MMAs.
        """
        pointer, part = self._pointer(builder, outer, inner)
        count = self._values.size * part.bits // 32
        packed = StaticTensor("i32", part.space, part.align, "", joined((Layout(count, 1),)))
        recast = build(builder, "cute.recast_iter", [pointer], packed.pointer)
        view = build(builder, "cute.make_view", [recast], packed)
        return [_load(builder, view, index) for index in range(count)]

    @property
    def _values(self) -> Layout:
        return self.tensor.layout.modes[0]

    def _offset(self, outer: int, inner: int) -> int:
        _, first, second = self.tensor.layout.modes
        return first.offset(outer) + second.offset(inner)

    def _pointer(self, builder: Builder, outer: int, inner: int) -> tuple[ir.Value, StaticTensor]:
        """A pointer to one tile, and what lies there: the tile's values."""
        part = self.tensor.part(self._offset(outer, inner), joined((self._values,)))
        place = _coordinate(builder, f"(_,{outer},{inner})")
        sliced = build(builder, "cute.slice", [self.value, place], part)
        return build(builder, "cute.get_iter", [sliced], part.pointer), part


def fragment_of(value: ir.Value) -> Fragment | None:
    """The typed view of a gemm's operand; None unless it is a static rank-3 register tensor."""
    tensor = static_tensor(str(value.type))
    if tensor is None or tensor.space != "rmem" or tensor.element not in _ELEMENTS:
        return None
    return Fragment(value, tensor) if len(tensor.layout.modes) == 3 else None


def _coordinate(builder: Builder, text: str) -> ir.Value:
    return build(builder, "cute.make_coord", (), f'!cute.coord<"{text}">')


def _load(builder: Builder, packed: ir.Value, index: int) -> ir.Value:
    operands = [packed, _coordinate(builder, str(index))]
    return build(builder, "cute.memref.load", operands, "i32")
