"""Which tiles of a gemm are zero or unread, however that is known."""

from __future__ import annotations

from dataclasses import dataclass, field

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
