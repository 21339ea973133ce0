"""CuTe coordinate tensors: what `!cute.coord_tensor` types say of the coordinates they hold."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilepass.ir.cute_layouts import Layout

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
