"""What is known of a gemm's tiles, from a proof or from the user, and how it is reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilepass.analysis.zero_structure import ZeroStructure, analyse, tag_sites
from tilepass.analysis.zero_structure.facts import TileArray
from tilepass.core.errors import OptionError
from tilepass.core.pass_base import PassContext
from tilepass.core.remarks import RemarkSink
from tilepass.ir.engine import Module, copied
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite
from tilepass.passes.cute.cute_zero_mma.structures import NamedTiles, Structure
from tilepass.passes.cute.cute_zero_mma.zero_tiles import Tile, ZeroTiles


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
