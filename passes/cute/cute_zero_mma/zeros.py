"""Which tiles of a gemm are zero or unread, proven or named by the user, and how it is reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tilepass.analysis.zero_structure import ZeroStructure, analyse, tag_sites
from tilepass.analysis.zero_structure.facts import TileArray
from tilepass.core.errors import OptionError
from tilepass.core.pass_base import PassContext
from tilepass.core.remarks import RemarkSink
from tilepass.ir.engine import Module, copied
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite


@dataclass(frozen=True)
class Known:
    """The zero tiles of a gemm, why they are zero, and what that rests on.

    `steps` is the chain of evidence, `failure` the first fact that failed where nothing was found.
    """

    zeros: ZeroTiles
    steps: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    failure: str | None = None

    def report(self, site: GemmSite, remarks: RemarkSink) -> None:
        """The proof report of one gemm but for the assumptions, as remarks."""
        if not self.zeros:
            reason = self.failure or "no tile of A or B is zero, every accumulator is read"
            remarks.missed(site.location, f"{site}: {reason}")
            return
        remarks.analysis(site.location, f"{site}: zero tiles {self.zeros}")
        for number, step in enumerate(self.steps, 1):
            remarks.analysis(site.location, f"{site}: evidence {number}, {step}")


def report_assumptions(
    sites: Sequence[GemmSite], known: Mapping[int, Known], remarks: RemarkSink
) -> None:
    """The assumptions, each once, with the gemms whose tiles rest on it."""
    resting: dict[str, list[str]] = {}
    for site in sites:
        for assumption in known[site.index].assumptions:
            resting.setdefault(assumption, []).append(str(site.index))
    for assumption, gemms in resting.items():
        remarks.analysis(None, f"assumed for gemms {', '.join(gemms)}: {assumption}")


def assumed(tiles: Structure | NamedTiles, sites: Sequence[GemmSite]) -> dict[int, Known]:
    """What the user says of each gemm. Raises OptionError."""
    what = "the named tiles are zero or unread"
    if isinstance(tiles, Structure):
        what = f"operand {tiles.operand.upper()} is {tiles.name}"
    because = (f"{what}: the user says so, and mode=check finds out at run time",)
    nothing = f"{what}, which leaves no whole tile zero"
    return {site.index: Known(tiles.tiles_of(site), (), because, nothing) for site in sites}


def proven(
    module: Module, sites: Sequence[GemmSite], strict: bool, context: PassContext
) -> dict[int, Known]:
    """What the zero-structure analysis proves of each gemm. Raises TilepassError."""
    if not sites:
        return {}
    if context.lower is None:
        raise OptionError(
            "the proof needs the CuTe compiler's lowering, which is not at hand here: use "
            "mode=assume with tiles=... and sites=..."
        )
    clone = copied(module)
    tag_sites(clone)
    found = analyse(context.lower(clone), strict=strict)
    return {site.index: _known(site, found) for site in sites}


def _known(site: GemmSite, found: ZeroStructure) -> Known:
    proof = found.sites.get(site.index)
    if proof is None:
        return Known(ZeroTiles(), failure=str(found.failure or "the analysis did not see it"))
    if proof.anything and proof.tiles != site.grid:
        reason = f"lowered to {proof.tiles} tiles, expected {site.grid}"
        return Known(ZeroTiles(), failure=reason)
    zeros = ZeroTiles(_tiles(proof.b_zero), _tiles(proof.a_zero), _tiles(proof.unread))
    steps = tuple(map(str, proof.evidence))
    if zeros.unread:
        steps += ("unread: no operation that may run behind the gemm reads these accumulators",)
    assumptions = tuple(each.value for each in proof.assumptions)
    return Known(zeros, steps, assumptions, proof.why_nothing())


def _tiles(table: TileArray) -> frozenset[Tile]:
    """The indices at which a table is true."""
    return frozenset((int(outer), int(inner)) for outer, inner in np.argwhere(table))


Tile = tuple[int, int]


@dataclass(frozen=True)
class ZeroTiles:
    """`b` holds tiles (n, k) of B, `a` tiles (m, k) of A, that are zero for every thread; `unread`
    holds tiles (m, n) of the accumulator that nothing reads afterwards."""

    b: frozenset[Tile] = field(default_factory=frozenset[Tile])
    a: frozenset[Tile] = field(default_factory=frozenset[Tile])
    unread: frozenset[Tile] = field(default_factory=frozenset[Tile])

    def skips(self, m: int, n: int, k: int) -> bool:
        """Whether the atom (m, n, k) adds nothing to what is read."""
        return (n, k) in self.b or (m, k) in self.a or (m, n) in self.unread

    def __bool__(self) -> bool:
        return bool(self.b or self.a or self.unread)

    def __str__(self) -> str:
        """`B n0k1 n0-1k2; unread m0n3`: tiles of one k as ranges of the other index."""
        parts = [
            f"{title} {_ranges(tiles, outer, inner)}"
            for title, tiles, outer, inner in (
                ("B", self.b, "n", "k"),
                ("A", self.a, "m", "k"),
                ("unread", self.unread, "m", "n"),
            )
            if tiles
        ]
        return "; ".join(parts) or "none"


def remaining(zeros: ZeroTiles, grid: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """The atoms (m, n, k) that have to be computed, k outermost, then m, then n."""
    return [
        (m, n, k)
        for k in range(grid[2])
        for m in range(grid[0])
        for n in range(grid[1])
        if not zeros.skips(m, n, k)
    ]


def _ranges(tiles: frozenset[Tile], outer: str, inner: str) -> str:
    """`n0k1 n0-3k2`: what the option `tiles` reads."""
    texts: list[str] = []
    for second in sorted({tile[1] for tile in tiles}):
        for first, last in _runs(sorted(tile[0] for tile in tiles if tile[1] == second)):
            span = f"{first}" if first == last else f"{first}-{last}"
            texts.append(f"{outer}{span}{inner}{second}")
    return " ".join(texts)


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """First and last of each run of consecutive numbers."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


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
            f"tiles='{text}': expected {_NAMES} (with 'a:' before it for operand A), or tiles like "
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
