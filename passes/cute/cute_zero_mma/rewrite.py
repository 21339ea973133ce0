"""A module's gemms replaced by their remaining atoms, and loads that only left-out atoms read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilepass.core.diagnostics import SourceLocation
from tilepass.passes.cute.cute_zero_mma.dead_loads import drop_dead_loads
from tilepass.passes.cute.cute_zero_mma.emit import emit_atoms
from tilepass.passes.cute.cute_zero_mma.orders import ORDERS
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite
from tilepass.passes.cute.cute_zero_mma.zero_tiles import ZeroTiles, remaining

Said = tuple[SourceLocation | None, str]
"""A place in the source, and what was done there."""


@dataclass(frozen=True)
class Rewrite:
    """A gemm, its zero tiles, and the order in which its remaining atoms are emitted."""

    site: GemmSite
    zeros: ZeroTiles
    order: str


def rewrite_all(rewrites: Sequence[Rewrite], *, drop_loads: bool) -> list[Said]:
    """Rewrite gemms of one module; what was done, in words."""
    said: list[Said] = []
    if drop_loads:
        said += drop_dead_loads([(each.site, each.zeros) for each in rewrites])
    for each in rewrites:
        atoms = ORDERS[each.order](remaining(each.zeros, each.site.grid))
        emit_atoms(each.site, atoms)
        left_out = each.site.atoms - len(atoms)
        text = f"{each.site}: {left_out} of {each.site.atoms} atoms left out, order {each.order}"
        said.append((each.site.location, text + _unread(each)))
    return said


def _unread(rewrite: Rewrite) -> str:
    """What becomes of accumulators that nothing reads: their author may have forgotten to."""
    tiles, grid = len(rewrite.zeros.unread), rewrite.site.grid
    if not tiles:
        return ""
    which = "the accumulator" if tiles == grid[0] * grid[1] else f"{tiles} accumulator tile(s)"
    return f"; {tiles * grid[2]} of them since nothing reads {which} afterwards"
