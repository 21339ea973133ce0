"""Typed views of CuTe's types: layouts with static shape and stride, tensors with such layouts, and
coordinate tensors; and how views of tensors are built."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tilepass.ir.build import Builder
from tilepass.ir.engine import ir

Nested = int | tuple["Nested", ...]
_TOKEN = re.compile(r"\d+|[(),]")


@dataclass(frozen=True)
class Layout:
    """Shape and stride, nested alike."""

    shape: Nested
    stride: Nested

    @property
    def modes(self) -> tuple[Layout, ...]:
        """The top-level modes."""
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            return (self,)
        return tuple(map(Layout, self.shape, self.stride))

    def __str__(self) -> str:
        return f"{_text(self.shape)}:{_text(self.stride)}"

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return prod(flat(self.shape))

    def offset(self, coordinate: int) -> int:
        """The element offset of a linear coordinate, leftmost mode fastest."""
        total = 0
        for extent, step in zip(flat(self.shape), flat(self.stride), strict=True):
            total += coordinate % extent * step
            coordinate //= extent
        return total

    def offsets(self) -> list[int]:
        """The element offsets of all coordinates."""
        return [self.offset(coordinate) for coordinate in range(self.size)]


def joined(modes: Sequence[Layout]) -> Layout:
    """The layout whose top-level modes these are."""
    return Layout(tuple(mode.shape for mode in modes), tuple(mode.stride for mode in modes))


def flat(nested: Nested) -> tuple[int, ...]:
    """The integers of a nested tuple from left to right."""
    if isinstance(nested, int):
        return (nested,)
    return tuple(number for part in nested for number in flat(part))


def parse_layout(text: str) -> Layout | None:
    """The layout of a text; None where a part is dynamic, a swizzle or not of this form."""
    shape, separator, stride = text.partition(":")
    if not separator or re.search(r"[^\d(),:\s]", text):
        return None
    layout = Layout(_nested(shape), _nested(stride))
    if len(flat(layout.shape)) != len(flat(layout.stride)):
        return None
    return layout


def _text(nested: Nested) -> str:
    return str(nested) if isinstance(nested, int) else f"({','.join(map(_text, nested))})"


def _nested(text: str) -> Nested:
    tokens: list[str] = _TOKEN.findall(text)

    def read(position: int) -> tuple[Nested, int]:
        if tokens[position] != "(":
            return int(tokens[position]), position + 1
        parts, position = list[Nested](), position + 1
        while tokens[position] != ")":
            if tokens[position] == ",":
                position += 1
                continue
            part, position = read(position)
            parts.append(part)
        return tuple(parts), position + 1

    return read(0)[0]


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
        """What begins `offset` elements behind, with its own layout: the dialect infers the
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
    return builder.create(name, operands, [builder.type(type_)], attributes).results[0]


def view_at(
    builder: Builder, begin: ir.Value, tensor: StaticTensor, offset: int, layout: Layout
) -> ir.Value:
    """A tensor of a layout that begins `offset` elements behind `begin`, a pointer to `tensor`."""
    part = tensor.part(offset, layout)
    step = build(builder, "cute.make_int_tuple", (), f'!cute.int_tuple<"{offset}">')
    place = build(builder, "cute.add_offset", [begin, step], part.pointer)
    return build(builder, "cute.make_view", [place], part)


def _bits(element: str) -> int:
    """32 for `f32` and `tf32`, 8 for `f8E4M3FN`; 0 where the text is not a number's type."""
    match = _BITS.fullmatch(element)
    return int(match[1]) if match else 0


_TENSOR = re.compile(r'!cute\.coord_tensor<"([^"]*)", "([^":]*):([^":]*)">')
_COORDINATE = re.compile(r'!cute\.coord<"([^"]*)">')
_LEAF = re.compile(r"(?P<constant>\d+)|\?(?:\{div=(?P<divisor>\d+)\})?")
_STEP = re.compile(r"(\d+)(?:@(\d+))?")


@dataclass(frozen=True)
class Leaf:
    """A number that is `constant`, or not known when the kernel is compiled but a multiple of
    `divisor`; `text` is how types have it."""

    text: str
    constant: int | None
    divisor: int


@dataclass(frozen=True)
class CoordinateTensor:
    """`begin` is the coordinate of the first element, one leaf for each dimension, and `text` how
    types have it; `along` holds for each dimension how far the elements lie from the first."""

    text: str
    begin: tuple[Leaf, ...]
    along: tuple[Layout, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.along[0].size

    def distance(self, index: int) -> tuple[int, ...]:
        """How far element `index` lies from the first along each dimension; the leftmost mode
        counts fastest."""
        return tuple(layout.offset(index) for layout in self.along)


def coordinate_tensor(text: str) -> CoordinateTensor | None:
    """What a type's text says; None unless its layout is static and its coordinates are flat and
    counted in 32 bits."""
    match = _TENSOR.fullmatch(text)
    if match is None or "?" in match[2]:
        return None
    texts = match[1].removeprefix("(").removesuffix(")").split(",")
    begin = [leaf for leaf in map(_leaf, texts) if leaf is not None]
    extents = tuple(map(int, re.findall(r"\d+", match[2])))
    steps = [_step(step) for step in re.findall(r"[^(),]+", match[3])]
    if len(begin) != len(texts) or len(extents) != len(steps):
        return None
    strides = [[0] * len(steps) for _ in begin]
    for mode, step in enumerate(steps):
        if step is None or step[1] >= len(begin):
            return None
        strides[step[1]][mode] = step[0]
    along = tuple(Layout(extents, tuple(each)) for each in strides)
    return CoordinateTensor(match[1], tuple(begin), along)


def is_made_of_its_operands(text: str, count: int) -> bool:
    """Whether a `!cute.coord` has just the numbers that it was made of, `count` side by side, and
    not besides them some that are constants: `(?,?)`, but not `(0,?)` or `(_,?)`."""
    match = _COORDINATE.fullmatch(text)
    leaves = match[1].removeprefix("(").removesuffix(")").split(",") if match else []
    return len(leaves) == count and all(leaf.startswith("?") for leaf in leaves)


def _leaf(text: str) -> Leaf | None:
    match = _LEAF.fullmatch(text)
    if match is None:
        return None
    if match["constant"]:
        return Leaf(text, int(match["constant"]), 0)
    return Leaf(text, None, int(match["divisor"] or 1))


def _step(text: str) -> tuple[int, int] | None:
    """The length of a step and the dimension that it is along: `8@1`, or `0` along whichever."""
    match = _STEP.fullmatch(text)
    if match is None or (match[2] is None and match[1] != "0"):
        return None
    return int(match[1]), int(match[2] or 0)
