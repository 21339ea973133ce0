"""CuTe tensors with static layouts: what `!cute.memref` types say, and how views are built."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tilepass.ir.asides import results_of
from tilepass.ir.build import Builder
from tilepass.ir.cute_layouts import Layout, parse_layout
from tilepass.ir.engine import ir

_MEMREF = re.compile(
    r'!cute\.memref<(\w+), (\w+), (?:align<(\d+)>, )?(?:(S<[\d,]+>), )?"([^"]*)"\s*>'
)
_BITS = re.compile(r"[a-z]+(\d+)(?:E\d+M\d+\w*)?")

SEGMENTS = "operandSegmentSizes"
"""The attribute that says how many operands belong to each that an operation has by name."""


@dataclass(frozen=True)
class StaticTensor:
    """A `!cute.memref` type: the element's type as text, the memory space (`rmem`, `smem`, `gmem`),
    the pointer's alignment in bytes and swizzle (empty without), and the layout."""

    element: str
    space: str
    align: int
    swizzle: str
    layout: Layout

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return _bits(self.element)

    @property
    def kept_together(self) -> int:
        """Bytes that the swizzle `S<bits,base,shift>` leaves side by side: 2 to the base."""
        return 1 << int(self.swizzle.split(",")[1]) if self.swizzle else sys.maxsize

    @property
    def pointer(self) -> str:
        """The type of the tensor's pointer."""
        return f"!cute.ptr<{self.element}, {self._place}>"

    def __str__(self) -> str:
        return f'!cute.memref<{self.element}, {self._place}, "{self.layout}">'

    def part(self, offset: int, layout: Layout) -> StaticTensor:
        """What begins `offset` elements behind, with a layout of its own: the dialect infers the
        alignment only for operations that the bindings' classes build."""
        align = math.gcd(self.align, offset * self.bits // 8)
        return replace(self, align=align, layout=layout)

    @property
    def _place(self) -> str:
        swizzle = f", {self.swizzle}" if self.swizzle else ""
        return f"{self.space}, align<{self.align}>{swizzle}"


def static_tensor(text: str) -> StaticTensor | None:
    """What a type's text says; None unless it is a tensor of numbers of whole bytes with a static
    layout."""
    match = _MEMREF.fullmatch(text)
    layout = parse_layout(match[5]) if match else None
    if match is None or layout is None or (bits := _bits(match[1])) % 8 or not bits:
        return None
    return StaticTensor(match[1], match[2], int(match[3] or bits // 8), match[4] or "", layout)


def build(
    builder: Builder,
    name: str,
    operands: Sequence[ir.Value],
    type_: object,
    attributes: Mapping[str, str] | None = None,
) -> ir.Value:
    """An operation with one result, of the type that a text or a StaticTensor names."""
    return results_of(builder.create(name, operands, [builder.type(type_)], attributes))[0]


def view_at(
    builder: Builder, begin: ir.Value, tensor: StaticTensor, offset: int, layout: Layout
) -> ir.Value:
    """A tensor of a layout that begins `offset` elements behind `begin`, a pointer to `tensor`."""
    part = tensor.part(offset, layout)
    step = build(builder, "cute.make_int_tuple", (), f'!cute.int_tuple<"{offset}">')
    place = build(builder, "cute.add_offset", [begin, step], part.pointer)
    return build(builder, "cute.make_view", [place], part)


def _bits(element: str) -> int:
    """32 for `f32` and `tf32`, 8 for `f8E4M3FN`; 0 where the text is no number's type."""
    match = _BITS.fullmatch(element)
    return int(match[1]) if match else 0
