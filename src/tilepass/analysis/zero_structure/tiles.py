"""From the mma that a site ran to tiles of the gemm: register addresses against layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tilepass.analysis.zero_structure.facts import TileArray
from tilepass.analysis.zero_structure.machine import Execution
from tilepass.analysis.zero_structure.sites import GemmSite
from tilepass.analysis.zero_structure.types import Scalar, parse_type
from tilepass.ir.cute import Layout, StaticTensor

Tile = tuple[int, int]


@dataclass(frozen=True)
class Grid:
    """M, N, K tiles of a gemm, and the tiles at each byte offset of A and B."""

    extents: tuple[int, int, int]
    a: dict[int, list[Tile]]
    b: dict[int, list[Tile]]
    d: dict[int, list[Tile]]

    @property
    def count(self) -> int:
        """mma instructions that the gemm is."""
        m, n, k = self.extents
        return m * n * k


def grid_of(site: GemmSite) -> Grid | str:
    """The tiles of a gemm, or why they are not known."""
    if site.a is None or site.b is None or site.d is None:
        return "an operand of the gemm is no register tensor of static layout"
    a, b, d = (_extents(fragment.layout) for fragment in (site.a, site.b, site.d))
    if a is None or b is None or d is None:
        return "the layouts of the gemm's operands have more than three modes"
    if (a[1], b[1], a[0], b[0]) != (b[1], a[1], d[0], d[1]):
        return "the layouts of the gemm's operands do not agree"
    places = [_places(fragment) for fragment in (site.a, site.b, site.d)]
    if any(place is None for place in places):
        return "an element type of the gemm has no whole number of bytes"
    return Grid((a[0], b[0], a[1]), *(place or {} for place in places))


def _extents(layout: Layout) -> Tile | None:
    """Tiles along the two modes after the values; a mode that is missing has one tile."""
    modes = layout.modes
    if len(modes) > 3:
        return None
    sizes = [mode.size for mode in modes[1:]] + [1, 1]
    return sizes[0], sizes[1]


def _places(fragment: StaticTensor) -> dict[int, list[Tile]] | None:
    element = parse_type(fragment.element)
    if not isinstance(element, Scalar):
        return None
    modes = fragment.layout.modes
    rows = modes[1] if len(modes) > 1 else Layout(1, 0)
    columns = modes[2] if len(modes) > 2 else Layout(1, 0)
    places: dict[int, list[Tile]] = {}
    for row in range(rows.size):
        for column in range(columns.size):
            offset = (rows.offset(row) + columns.offset(column)) * element.size
            places.setdefault(offset, []).append((row, column))
    return places


def unread(
    executions: list[Execution], grid: Grid, index: int, read: set[tuple[int, int]]
) -> TileArray:
    """[M, N]: the accumulator tiles of a site that nothing reads.

    Nowhere true where the gemm uses several places in registers, or one that is not known.
    """
    shape = (grid.extents[0], grid.extents[1])
    nothing, known = np.zeros(shape, bool), np.zeros(shape, bool)
    offsets = {execution.c_offset for execution in executions}
    places = sorted(offset for offset in offsets if offset is not None)
    if len(places) < len(offsets) or {place - places[0] for place in places} != set(grid.d):
        return nothing
    for place in places:
        tiles = grid.d[place - places[0]]
        if (index, place) not in read and len(tiles) == 1:
            known[tiles[0]] = True
    return known


def fold(
    executions: Sequence[Execution],
    grid: Grid,
    offset: Callable[[Execution], int | None],
    zero: Callable[[Execution], bool],
    places: dict[int, list[Tile]],
    shape: Tile,
) -> TileArray | str:
    """Which tiles are zero in all runs of the gemm, or why that cannot be told.

    A gemm runs its tiles one after the other; the lowest address of a run is that of tile (0, 0).
    """
    result = np.ones(shape, bool)
    if len(executions) % grid.count:
        return "the tiles of the gemm are not run one by one"
    for start in range(0, len(executions), grid.count):
        visit = executions[start : start + grid.count]
        offsets = [offset(execution) for execution in visit]
        known = [place for place in offsets if place is not None]
        if len(known) < len(offsets):
            return "the operand is not loaded from registers at a known place"
        first = min(known)
        if {place - first for place in known} != set(places):
            return "the registers of the operand are not those of its layout"
        for execution, place in zip(visit, known, strict=True):
            if not zero(execution):
                for tile in places[place - first]:
                    result[tile] = False
    return result
