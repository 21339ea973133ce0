"""CuTe coordinate tensors: what `!cute.coord_tensor` types say of the coordinates they hold."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    types have it; a mode of the layout has an extent, a step, and the dimension that the step is
    along."""

    text: str
    begin: tuple[Leaf, ...]
    modes: tuple[tuple[int, int, int], ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent, _, _ in self.modes:
            count *= extent
        return count

    def distance(self, index: int) -> tuple[int, ...]:
        """How far element `index` lies from the first along each dimension; the leftmost mode
        counts fastest."""
        distances = [0] * len(self.begin)
        for extent, step, dimension in self.modes:
            distances[dimension] += index % extent * step
            index //= extent
        return tuple(distances)


def coordinate_tensor(text: str) -> CoordinateTensor | None:
    """What a type's text says; None unless its layout is static and its coordinates are flat and
    counted in 32 bits."""
    match = _TENSOR.fullmatch(text)
    if match is None:
        return None
    begin = tuple(map(_leaf, match[1].removeprefix("(").removesuffix(")").split(",")))
    extents = re.findall(r"\d+", match[2])
    steps = re.findall(r"[^(),]+", match[3])
    if None in begin or "?" in match[2] or len(extents) != len(steps):
        return None
    modes: list[tuple[int, int, int]] = []
    for extent, step in zip(extents, steps, strict=True):
        found = _STEP.fullmatch(step)
        if found is None or int(found[2] or 0) >= len(begin) or (found[1] != "0" and not found[2]):
            return None
        modes.append((int(extent), int(found[1]), int(found[2] or 0)))
    return CoordinateTensor(match[1], tuple(leaf for leaf in begin if leaf), tuple(modes))


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
