"""CuTe layouts with static shape and stride, as texts `(shape):(stride)`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

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
