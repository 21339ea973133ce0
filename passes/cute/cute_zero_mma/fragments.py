"""Register fragments of a `cute.gemm`: what their types say, and views of single tiles."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tilepass.ir.asides import results_of
from tilepass.ir.build import Builder
from tilepass.ir.engine import ir

_MEMREF = re.compile(r'!cute\.memref<([\w.]+), (\w+), (?:align<(\d+)>, )?"([^"]*)">')
_BITS = {"f16": 16, "bf16": 16, "f8E4M3FN": 8, "f8E5M2": 8, "tf32": 32, "f32": 32, "f64": 64}


@dataclass(frozen=True)
class Fragment:
    """A tensor in registers with a static layout of modes (value, outer, inner).

    `element` is the element type's text, `bits` its size, `align` the tensor's alignment in bytes;
    `shape` and `stride` hold one text per mode: `("(2,2)", "8", "4")`. For A the tiles are [m, k],
    for B [n, k], for the accumulator [m, n].
    """

    value: ir.Value
    element: str
    bits: int
    align: int
    shape: tuple[str, ...]
    stride: tuple[str, ...]

    @property
    def tiles(self) -> tuple[int, int]:
        """Extents of the two modes that count tiles."""
        return size_of(self.shape[1]), size_of(self.shape[2])

    def tile(self, builder: Builder, outer: int, inner: int) -> ir.Value:
        """A view of one tile, modes (value, 1, 1)."""
        pointer, align = self._pointer(builder, outer, inner)
        layout = f"({self.shape[0]},1,1):({self.stride[0]},0,0)"
        return _view(builder, pointer, self.element, align, layout)

    def words(self, builder: Builder, outer: int, inner: int) -> list[ir.Value]:
        """The registers of one tile as i32 values.

        The values of a tile must lie densely, as they do in fragments of warp-level MMAs.
        """
        pointer, align = self._pointer(builder, outer, inner)
        count = size_of(self.shape[0]) * self.bits // 32
        target = builder.type(f"!cute.ptr<i32, rmem, align<{align}>>")
        recast = _create(builder, "cute.recast_iter", [pointer], target)
        packed = _view(builder, recast, "i32", align, f"({count}):(1)")
        return [_load(builder, packed, index) for index in range(count)]

    def _pointer(self, builder: Builder, outer: int, inner: int) -> tuple[ir.Value, int]:
        """A pointer to one tile, and its alignment in bytes.

        The types are those that the dialect infers: the bindings do it only for operations that
        their own classes build.
        """
        offset = _offset(self.shape[1], self.stride[1], outer)
        offset += _offset(self.shape[2], self.stride[2], inner)
        align = math.gcd(self.align, offset * self.bits // 8)
        layout = f"({self.shape[0]}):({self.stride[0]})"
        sliced = _create(
            builder,
            "cute.slice",
            [self.value, _coordinate(builder, f"(_,{outer},{inner})")],
            builder.type(_memref(self.element, align, layout)),
        )
        target = builder.type(f"!cute.ptr<{self.element}, rmem, align<{align}>>")
        return _create(builder, "cute.get_iter", [sliced], target), align


def fragment_of(value: ir.Value) -> Fragment | None:
    """The typed view of a gemm's operand; None unless it is a static rank-3 register tensor."""
    match = _MEMREF.fullmatch(str(value.type))
    if match is None or match[2] != "rmem":
        return None
    shape, separator, stride = match[4].partition(":")
    modes, steps = split_modes(shape), split_modes(stride)
    bits = _BITS.get(match[1])
    if not separator or "?" in match[4] or bits is None or not len(modes) == len(steps) == 3:
        return None
    return Fragment(value, match[1], bits, int(match[3] or bits // 8), modes, steps)


def split_modes(text: str) -> tuple[str, ...]:
    """The top-level modes of a layout's shape or stride: `((2,2),8,4)` gives three texts."""
    if not (text.startswith("(") and text.endswith(")")):
        return (text,)
    modes: list[str] = []
    depth = start = 0
    inside = text[1:-1]
    for at, character in enumerate(inside):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            modes.append(inside[start:at])
            start = at + 1
    return (*modes, inside[start:])


def size_of(mode: str) -> int:
    """The number of elements of a static mode: `(2,(2,2))` has 8."""
    return math.prod(int(number) for number in re.findall(r"\d+", mode))


def _offset(shape: str, stride: str, index: int) -> int:
    """The offset of an index of a mode, in elements: its inner modes count fastest first."""
    offset = 0
    extents, steps = (re.findall(r"\d+", text) for text in (shape, stride))
    for extent, step in zip(map(int, extents), map(int, steps), strict=True):
        offset += index % extent * step
        index //= extent
    return offset


def _memref(element: str, align: int, layout: str) -> str:
    return f'!cute.memref<{element}, rmem, align<{align}>, "{layout}">'


def _view(builder: Builder, pointer: ir.Value, element: str, align: int, layout: str) -> ir.Value:
    """A tensor of a static layout at a register pointer."""
    result = builder.type(_memref(element, align, layout))
    return _create(builder, "cute.make_view", [pointer], result)


def _coordinate(builder: Builder, text: str) -> ir.Value:
    result = builder.type(f'!cute.coord<"{text}">')
    return _create(builder, "cute.make_coord", [], result)


def _load(builder: Builder, packed: ir.Value, index: int) -> ir.Value:
    word = builder.type("i32")
    operands = [packed, _coordinate(builder, str(index))]
    return _create(builder, "cute.memref.load", operands, word)


def _create(builder: Builder, name: str, operands: list[ir.Value], result: ir.Type) -> ir.Value:
    return results_of(builder.create(name, operands, [result]))[0]
