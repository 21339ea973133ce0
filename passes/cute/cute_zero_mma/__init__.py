"""`cute-zero-mma`: leave out the MMA atoms of CuTe DSL kernels that multiply zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilepass.core.anchor import Anchor
from tilepass.core.errors import OptionError
from tilepass.core.pass_base import Pass, PassContext
from tilepass.core.refusal import Refusal, attempt
from tilepass.core.registry import register
from tilepass.ir.engine import Module
from tilepass.passes.cute.cute_vectorize_copies import vectorizable
from tilepass.passes.cute.cute_zero_mma.choice import DENSE, choose_orders, parse_order
from tilepass.passes.cute.cute_zero_mma.rewrite import Rewrite, check_all, rewrite_all
from tilepass.passes.cute.cute_zero_mma.sites import ALL, GemmSite, gemm_sites, selected
from tilepass.passes.cute.cute_zero_mma.zeros import (
    NONE,
    Known,
    assumed,
    parse_tiles,
    proven,
    report_assumptions,
)


@register
class CuteZeroMma(Pass):
    """Replace a `cute.gemm` by the atoms whose A and B fragments may hold something but zeros.

    Before (B is upper triangular; 8 n x 4 k tiles of 8 x 16):
        cute.gemm(%mma, %d, %a, %b, %d)
    After (one gemm per remaining tile, 20 of 32):
        %b00 = cute.slice(%b, (_,0,0)); ... cute.gemm(%mma, %d0, %a0, %b00, %d0)
        ...
        %b73 = cute.slice(%b, (_,7,3)); ... cute.gemm(%mma, %d7, %a3, %b73, %d7)

    `mode=auto` leaves out what `tilepass.analysis.zero_structure` proves to be zero for every
    thread, and accumulator tiles that nothing reads. `mode=assume` takes the user's word
    (`tiles=upper-triangular`, `block-diagonal:16`, `n0-1k2 n0-3k3`) for the gemms in `sites`.
    `mode=check` keeps the dense gemm and traps where such a fragment is not zero.

    Sound where the fragments are zero, with the assumptions that the proof report lists: among
    them that 0 * x is 0, unless `strict`: a product with an infinite or NaN factor in the other
    operand, and an accumulator of -0.0, come out otherwise than dense. The accumulator is updated
    in place and stays initialised; the sums of what remains are formed in the same order.
    Loads into fragments (`ldmatrix`, plain copies) of what no atom reads any more are left out too
    where every reader of the fragment is known, unless `loads=keep`: then ptxas is left to do it.

    Refuses wgmma and tcgen05 (no smaller piece than the whole instruction), operands that are not
    static register fragments, and gemms whose C and D differ.
    """

    name = "cute-zero-mma"
    anchor = Anchor.end_of("trace")
    touches = ("cute.gemm",)

    @dataclass(frozen=True)
    class Options:
        mode: Literal["auto", "assume", "check"] = "auto"
        strict: bool = False
        tiles: str = NONE
        sites: str = ALL
        order: str = "auto"
        loads: Literal["remove", "keep"] = "remove"

    options: Options

    def run(self, module: Module, context: PassContext) -> None:
        """Find out which tiles are zero, then rewrite or check gemm by gemm."""
        asked_for = parse_order(self.options.order)
        sites = self._reachable(module, context)
        known = attempt(self._knowledge, module, sites, context, at=None)
        if isinstance(known, Refusal):
            if known.error and self.options.mode != "auto":
                raise known.error
            context.refuse(known, "nothing left out")
            return
        zero_sites = [site for site in sites if known[site.index].zeros]
        for site in sites:
            known[site.index].report(site, context.remarks)
        report_assumptions(zero_sites, known, context.remarks)
        if self.options.mode == "check":
            tiles = [(site, known[site.index].zeros) for site in zero_sites]
            check_all(tiles, context.remarks, proven=self.options.tiles == NONE)
            return
        drop_loads = self.options.loads == "remove"
        orders = choose_orders(module, zero_sites, known, asked_for, drop_loads, context)
        rewrites = [
            Rewrite(site, known[site.index].zeros, orders[site.index])
            for site in zero_sites
            if orders[site.index] != DENSE
        ]
        for place, text in rewrite_all(rewrites, drop_loads=drop_loads):
            context.remarks.passed(place, text)
        if rewrites:
            _point_to_vectors(module, context)

    def _reachable(self, module: Module, context: PassContext) -> list[GemmSite]:
        sites: list[GemmSite] = []
        for index, site in selected(gemm_sites(module), self.options.sites).items():
            if isinstance(site, Refusal):
                context.refuse(site, f"gemm {index}")
            else:
                sites.append(site)
        return sites

    def _knowledge(
        self, module: Module, sites: list[GemmSite], context: PassContext
    ) -> dict[int, Known]:
        tiles = self.options.tiles
        if self.options.mode == "auto" and tiles != NONE:
            raise OptionError("tiles= names an assumption: it needs mode=assume or mode=check")
        if self.options.mode == "assume" and tiles == NONE:
            raise OptionError(
                "mode=assume needs tiles=..., the structure to assume (mode=auto proves it)"
            )
        if tiles == NONE:
            return proven(module, sites, self.options.strict, context)
        if self.options.sites == ALL:
            raise OptionError(
                f"tiles='{tiles}' is an assumption: name the gemms that it is about by sites=... "
                "(an index, file.py:LINE or a part of the statement)"
            )
        return assumed(parse_tiles(tiles), sites)


def _point_to_vectors(module: Module, context: PassContext) -> None:
    """Say which copies would hide or eat up in short calls what left-out atoms gain."""
    for place, copy in vectorizable(module):
        context.remarks.analysis(
            place,
            f"{copy}, which cute-vectorize-copies before this pass makes vectors: calls that "
            "do little else may wait longer there once the schedule changes",
        )
