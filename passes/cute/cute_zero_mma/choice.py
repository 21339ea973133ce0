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
KIND = "zero-mma-order"
"""The kind of this decision on record."""


def parse_order(text: str) -> dict[int | None, str]:
    """Read the option `order`: a name for all gemms (key None), or `INDEX:NAME+INDEX:NAME`.

    Each gemm, and all of them, may be given one. Names are those of ORDERS, `dense`, and for all
    gemms `auto` and `search`. Raises OptionError.
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
        gemm = int(index) if colon else None
        if gemm in orders:
            whose = "all gemms" if gemm is None else f"gemm {gemm}"
            raise OptionError(f"order='{text}': two orders for {whose}: {orders[gemm]} and {name}")
        orders[gemm] = name
    return orders


def choose_orders(
    module: Module,
    sites: Sequence[GemmSite],
    known: Mapping[int, Known],
    asked_for: Mapping[int | None, str],
    drop_loads: bool,
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
        found = search(module, sites, known, heuristic, drop_loads, context)
    orders: dict[int, str] = {}
    for site in sites:
        wanted = asked_for.get(site.index, asked_for.get(None, AUTO))
        choice = found.get(site.index, expected[site.index])
        decision = context.decide(
            KIND,
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
    """What is expected to be fastest, by the place and the type.

    Measured with FlashInfer's gated-delta-rule prefill on an H200 (compiler of cutlass-dsl 4.8.1,
    `results/gdn_prefill_orders.json` and `gdn_prefill_f16_orders.json`): time against the dense
    kernel, by the orders in front of, in and behind the loop over chunks; `a:b` is a for the first
    gemm with zero tiles there and b for the other.

        type  orders                                  1x8192  8x4096  1x512   1x64   32x64
        bf16  dense/n4/n4                              0.937   0.942   0.967   1.005   1.002
        bf16  n4 everywhere                            0.949   0.944   0.966   0.993   1.007
        bf16  dense/k-serpentine/k-serpentine          0.965   0.962   0.968   1.004   1.003
        f16   dense/longest-chain:n4/longest-chain     0.934   0.939   0.955   1.006   1.016
        f16   dense/longest-chain/longest-chain        0.947   0.956   0.959   1.009   1.015
        f16   dense/k-serpentine:n4/longest-chain      0.946   0.954   0.962   1.008   1.011
        f16   longest-chain everywhere                 0.947   0.955   0.956   0.996   1.017

    A call too short for the loop runs little but what stands in front of it: with that left dense
    bf16 is slower by 0.5 % at most, f16 by 1.1 to 2.1 %. All of that is waited for in the stores of
    the final state behind it, 64 of 4 bytes a thread, which are a quarter of such a call's time:
    warps that come to them more at once get less through (samples of all warps; with the state
    stored by 8 bytes, as `cute-vectorize-copies` does it, the difference is gone). Where no gemm
    with zero tiles is in a loop, and for other types, nothing was measured.
    """
    if place_of(site, sites) == "before":
        return Choice(DENSE, "in front of the loop: leaving atoms out does not pay in short calls")
    if site.elements[0] != "f16":
        return Choice("n4", "groups of four n were fastest on an H200, in bf16")
    if _is_behind_another_in_the_loop(site, sites):
        return Choice("n4", "for f16 groups of four n were fastest behind a loop's first gemm")
    return Choice("longest-chain", "for f16 longest chains first were fastest on an H200")


def _is_behind_another_in_the_loop(site: GemmSite, sites: Sequence[GemmSite]) -> bool:
    return site.in_loop and any(each.in_loop and each.index < site.index for each in sites)


def place_of(site: GemmSite, sites: Sequence[GemmSite]) -> str:
    """`loop`, or `before` the first gemm in a loop, or `after`; `alone` where none is in a loop.

    `sites` are those with zero tiles: a gemm in front of a loop of gemms without any is alone.
    """
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
