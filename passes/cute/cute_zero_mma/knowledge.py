"""What is known of a gemm's tiles, from a proof or from the user, and how it is reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilepass.core.pass_base import PassContext
from tilepass.core.remarks import RemarkSink
from tilepass.ir.engine import Module
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite
from tilepass.passes.cute.cute_zero_mma.structures import NamedTiles, Structure
from tilepass.passes.cute.cute_zero_mma.zero_tiles import ZeroTiles


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
        """The proof report of one gemm, as remarks."""
        if not self.zeros:
            reason = self.failure or "no tile of A or B is zero, every accumulator is read"
            remarks.missed(site.location, f"{site}: {reason}")
            return
        remarks.analysis(site.location, f"{site}: zero tiles {self.zeros}")
        for step in self.steps:
            remarks.analysis(site.location, f"{site}: {step}")
        for assumption in self.assumptions:
            remarks.analysis(site.location, f"{site}: assumes {assumption}")


def assumed(tiles: Structure | NamedTiles, sites: Sequence[GemmSite]) -> dict[int, Known]:
    """What the user says of each gemm. Raises OptionError."""
    what = f"operand {tiles.operand.upper()} {tiles.name}" if isinstance(tiles, Structure) else ""
    because = (f"that {what or 'they are zero'}, as the user says; mode=check looks at run time",)
    return {site.index: Known(tiles.tiles_of(site), assumptions=because) for site in sites}


def proven(
    module: Module, sites: Sequence[GemmSite], strict: bool, context: PassContext
) -> dict[int, Known]:
    """What the zero-structure analysis proves of each gemm. Raises TilepassError."""
    raise NotImplementedError
