"""Which order a gemm's remaining atoms are emitted in, and which gemms stay dense."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilepass.core.decisions import Choice, Fact
from tilepass.core.errors import OptionError, nearest
from tilepass.core.pass_base import PassContext
from tilepass.ir.engine import Module
from tilepass.passes.cute.cute_zero_mma.knowledge import Known
from tilepass.passes.cute.cute_zero_mma.orders import ORDERS
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite
from tilepass.passes.cute.cute_zero_mma.zero_tiles import remaining

AUTO = "auto"
SEARCH = "search"
DENSE = "dense"


def parse_order(text: str) -> dict[int | None, str]:
    """Read the option `order`: a name for all gemms (key None), or `INDEX:NAME+INDEX:NAME`.

    Names are those of ORDERS, `dense`, and for all gemms `auto` and `search`. Raises OptionError.
    """
    orders: dict[int | None, str] = {}
    for part in text.split("+"):
        index, colon, name = part.rpartition(":")
        takes = [*ORDERS, DENSE] if colon else [*ORDERS, DENSE, AUTO, SEARCH]
        if name not in takes:
            raise OptionError(
                f"order='{text}': unknown order '{name}'{nearest(name, takes)} "
                f"(orders: {', '.join(takes)})"
            )
        if colon and not index.isdecimal():
            raise OptionError(f"order='{text}': '{index}' is not the index of a gemm")
        orders[int(index) if colon else None] = name
    return orders


def choose_orders(
    module: Module,
    sites: Sequence[GemmSite],
    known: Mapping[int, Known],
    asked_for: Mapping[int | None, str],
    context: PassContext,
) -> dict[int, str | None]:
    """The order of each gemm; None where it stays dense, which is said in a remark."""
    return {site.index: _choose(site, known[site.index], asked_for, context) for site in sites}


def _choose(
    site: GemmSite, known: Known, asked_for: Mapping[int | None, str], context: PassContext
) -> str | None:
    wanted = asked_for.get(site.index, asked_for.get(None, AUTO))
    left = len(remaining(known.zeros, site.grid))
    decision = context.decide(
        "zero-mma-order",
        site.location,
        {"gemm": site.index, "in_loop": site.in_loop, "atoms": site.atoms, "remaining": left},
        forced=None if wanted == AUTO else wanted,
        model=_by_place,
        default=Choice("k", "the dense order with gaps"),
    )
    if decision.value == DENSE:
        context.remarks.missed(site.location, f"{site}: stays dense: {decision.reason}")
        return None
    context.remarks.analysis(site.location, str(decision))
    return decision.value


def _by_place(facts: Mapping[str, Fact]) -> Choice:
    if facts["in_loop"]:
        return Choice("n4", "in a loop, groups of four n leave ptxas fewest stalls")
    return Choice("k-serpentine", "outside of loops B fragments are used again at once")
