"""Which order a gemm's remaining atoms are emitted in, and which gemms stay dense."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilepass.core.decisions import Choice, Fact
from tilepass.core.errors import OptionError, nearest
from tilepass.core.pass_base import PassContext
from tilepass.ir.engine import Module
from tilepass.passes.cute.cute_zero_mma.knowledge import Known
from tilepass.passes.cute.cute_zero_mma.orders import ORDERS
from tilepass.passes.cute.cute_zero_mma.search import DENSE, Orders, search
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite
from tilepass.passes.cute.cute_zero_mma.zero_tiles import remaining

AUTO = "auto"
SEARCH = "search"


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
) -> Orders:
    """The order of each gemm, `dense` where it stays as it is; each is a decision on record.

    Raises OptionError where an order is asked for a gemm that has no zero tile.
    """
    _check_indices(sites, asked_for)
    expected = {site.index: expectation(site, sites) for site in sites}
    found: Mapping[int, Choice] = {}
    if asked_for.get(None) == SEARCH and sites:
        heuristic = {index: choice.value for index, choice in expected.items()}
        found = search(module, sites, known, heuristic, context)
    orders: dict[int, str] = {}
    for site in sites:
        wanted = asked_for.get(site.index, asked_for.get(None, AUTO))
        choice = found.get(site.index, expected[site.index])
        decision = context.decide(
            "zero-mma-order",
            site.location,
            _facts(site, sites, known[site.index]),
            forced=None if wanted in (AUTO, SEARCH) else wanted,
            model=_always(choice),
            default=Choice("k", "the dense order with gaps"),
        )
        orders[site.index] = decision.value
        if decision.value == DENSE:
            context.remarks.missed(site.location, f"{site}: stays dense: {decision.reason}")
        else:
            context.remarks.analysis(site.location, str(decision))
    return orders


def expectation(site: GemmSite, sites: Sequence[GemmSite]) -> Choice:
    """What is expected to be fastest, from what was measured on an H200 (CUDA 13's ptxas).

    Groups of four n keep bf16 from spilling in a loop and leave it fewest stalls; for f16, which
    converts in fewer instructions, a serpentine was faster. Code in front of the loop is all that
    a call too short for the loop runs: there a serpentine gained in bf16, and nothing did in f16.
    """
    place = place_of(site, sites)
    if place == "loop":
        if site.elements[0] == "bf16":
            return Choice("n4", "in loops of bf16 groups of four n do not spill and stall least")
        return Choice("k-serpentine", "in loops a serpentine uses B fragments again at once")
    if place == "before" and site.elements[0] == "f16":
        return Choice(DENSE, "runs once, in front of the loop: f16 gains nothing there")
    return Choice("k-serpentine", "runs once: a serpentine uses B fragments again at once")


def place_of(site: GemmSite, sites: Sequence[GemmSite]) -> str:
    """`loop`, or `before` the first gemm in a loop, or `after`; `alone` where none is in a loop."""
    if site.in_loop:
        return "loop"
    in_loops = [each.index for each in sites if each.in_loop]
    if not in_loops:
        return "alone"
    return "before" if site.index < in_loops[0] else "after"


def _facts(site: GemmSite, sites: Sequence[GemmSite], known: Known) -> Mapping[str, Fact]:
    return {
        "gemm": site.index,
        "element": site.elements[0],
        "place": place_of(site, sites),
        "atoms": site.atoms,
        "remaining": len(remaining(known.zeros, site.grid)),
    }


def _always(choice: Choice) -> Callable[[Mapping[str, Fact]], Choice]:
    def model(facts: Mapping[str, Fact]) -> Choice:
        del facts
        return choice

    return model


def _check_indices(sites: Sequence[GemmSite], asked_for: Mapping[int | None, str]) -> None:
    known = {site.index for site in sites}
    for index in asked_for:
        if index is not None and index not in known:
            listed = ", ".join(map(str, sorted(known))) or "none"
            raise OptionError(
                f"order: gemm {index} has no zero tile to leave out (gemms that have: {listed})"
            )
