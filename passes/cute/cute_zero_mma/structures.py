"""The option `tiles`: structures of zeros that a user names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tilepass.core.errors import OptionError
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite
from tilepass.passes.cute.cute_zero_mma.zero_tiles import Tile, ZeroTiles

Operand = Literal["a", "b"]
# Whether the element (row, column) is zero by the structure.
IsZero = Callable[[int, int], bool]

_TOKEN = re.compile(r"(?:([mn])(\d+)(?:-(\d+))?k|m(\d+)(?:-(\d+))?n)(\d+)(?:-(\d+))?")
_NAMED = re.compile(r"(?:([ab]):)?([a-z-]+)(?::(\d+))?")
NONE = "none"
_NAMES = "upper-triangular, lower-triangular, block-diagonal:SIZE, band:WIDTH"


@dataclass(frozen=True)
class Structure:
    """A structure of an operand's matrix: A is M x K, B is K x N, as in D = A B.

    `upper-triangular` has zeros below the diagonal (row > column), `lower-triangular` above it,
    `block-diagonal:SIZE` outside of square blocks, `band:WIDTH` where |row - column| > WIDTH.
    """

    operand: Operand
    name: str
    is_zero: IsZero

    def tiles_of(self, site: GemmSite) -> ZeroTiles:
        """The tiles of a gemm that hold nothing but zeros. Raises OptionError where the warps of
        the tiled MMA do not cover blocks of rows and columns."""
        if site.permuted:
            raise OptionError(
                f"{site}: its tiled MMA permutes the tiles, so that '{self.name}' does not say "
                "which are zero; name the tiles themselves (tiles='n0-1k2 ...')"
            )
        outer = 0 if self.operand == "a" else 1
        height = site.shape[outer] * site.warps[outer]
        width = site.shape[2] * site.warps[2]
        zeros = frozenset(
            (at, k)
            for at in range(site.grid[outer])
            for k in range(site.grid[2])
            if self._is_zero_block(at * height, height, k * width, width)
        )
        return ZeroTiles(a=zeros) if self.operand == "a" else ZeroTiles(b=zeros)

    def _is_zero_block(self, outer: int, height: int, inner: int, width: int) -> bool:
        """Whether all elements of a block (outer, k) of the operand are zero."""
        return all(
            self.is_zero(o, k) if self.operand == "a" else self.is_zero(k, o)
            for o in range(outer, outer + height)
            for k in range(inner, inner + width)
        )


@dataclass(frozen=True)
class NamedTiles:
    """Tiles named one by one: `n0-1k2` of B, `m0k3` of A, `m0n1` accumulators nobody reads."""

    zeros: ZeroTiles

    def tiles_of(self, site: GemmSite) -> ZeroTiles:
        """The named tiles. Raises OptionError where the gemm has no such tile."""
        m, n, k = site.grid
        for title, tiles, extents in (
            ("n{}k{}", self.zeros.b, (n, k)),
            ("m{}k{}", self.zeros.a, (m, k)),
            ("m{}n{}", self.zeros.unread, (m, n)),
        ):
            for tile in sorted(tiles):
                if tile[0] >= extents[0] or tile[1] >= extents[1]:
                    raise OptionError(
                        f"{site} has no tile {title.format(*tile)}: its tiles are m0-{m - 1}, "
                        f"n0-{n - 1}, k0-{k - 1}"
                    )
        return self.zeros


def parse_tiles(text: str) -> Structure | NamedTiles:
    """Read the option `tiles`. Raises OptionError."""
    tokens = re.split(r"[\s+]+", text.strip())
    if all(_TOKEN.fullmatch(token) for token in tokens):
        return NamedTiles(_named(tokens))
    match = _NAMED.fullmatch(text.strip())
    if match is None or (is_zero := _named_structure(match[2], match[3])) is None:
        raise OptionError(
            f"tiles='{text}': expected {_NAMES} (with 'a:' in front for operand A), or tiles like "
            "n0-1k2 (of B), m0k3 (of A), m0n1 (accumulators that nothing reads)"
        )
    return Structure("a" if match[1] == "a" else "b", match[2], is_zero)


def _named_structure(name: str, size: str | None) -> IsZero | None:
    if name == "upper-triangular" and size is None:
        return lambda row, column: row > column
    if name == "lower-triangular" and size is None:
        return lambda row, column: row < column
    if size is None:
        return None
    extent = int(size)
    if name == "block-diagonal" and extent:
        return lambda row, column: row // extent != column // extent
    if name == "band":
        return lambda row, column: abs(row - column) > extent
    return None


def _named(tokens: list[str]) -> ZeroTiles:
    """The tiles that tokens name. Raises OptionError for a range of none."""
    found: dict[str, set[Tile]] = {"n": set(), "m": set(), "mn": set()}
    for token in tokens:
        match = _TOKEN.fullmatch(token)
        assert match is not None
        letter = match[1] or "mn"
        first, last = (match[2], match[3]) if match[1] else (match[4], match[5])
        outer = range(int(first), int(last or first) + 1)
        inner = range(int(match[6]), int(match[7] or match[6]) + 1)
        if not (outer and inner):
            raise OptionError(f"tiles: '{token}' names no tile: a range counts upwards (n0-1k2)")
        found[letter] |= {(o, i) for o in outer for i in inner}
    return ZeroTiles(*(frozenset(found[letter]) for letter in ("n", "m", "mn")))
