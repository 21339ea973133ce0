"""Which order a gemm's remaining atoms are emitted in, and which gemms stay dense.

`order=auto` takes what was measured best (`expectation`). `order=search` compiles candidates:
without running it a binary tells its spills (LDL and STL), and in the control bits of each
instruction for how many cycles the issue stalls after it. Spills in a short loop cost more than
zero atoms gain; stalls rank orders of a loop that runs often roughly as an H200 does, to about one
percent. They say nothing about code that runs once per launch.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tilepass.core.decisions import Choice, Fact
from tilepass.core.digest import tool_hash
from tilepass.core.errors import OptionError, TilepassError, nearest
from tilepass.core.files import cache_folder, write_json
from tilepass.core.pass_base import BinaryFigures, PassContext
from tilepass.ir.engine import Module, copied
from tilepass.passes.cute.cute_zero_mma.rewrite import ORDERS, Rewrite, rewrite_all
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite, gemm_sites
from tilepass.passes.cute.cute_zero_mma.zeros import Known, remaining

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
    kernel, by the orders before, in and behind the loop over chunks; `a:b` is a for the first
    gemm with zero tiles there and b for the other.

        type  orders                                  1x8192  8x4096  1x512   1x64   32x64
        bf16  dense/n4/n4                              0.937   0.942   0.967   1.005   1.002
        bf16  n4 everywhere                            0.949   0.944   0.966   0.993   1.007
        bf16  dense/k-serpentine/k-serpentine          0.965   0.962   0.968   1.004   1.003
        f16   dense/longest-chain:n4/longest-chain     0.934   0.939   0.955   1.006   1.016
        f16   dense/longest-chain/longest-chain        0.947   0.956   0.959   1.009   1.015
        f16   dense/k-serpentine:n4/longest-chain      0.946   0.954   0.962   1.008   1.011
        f16   longest-chain everywhere                 0.947   0.955   0.956   0.996   1.017

    A call too short for the loop runs little but what stands before it: with that left dense
    bf16 is slower by 0.5 % at most, f16 by 1.1 to 2.1 %. All of that is waited for in the stores of
    the final state behind it, 64 of 4 bytes a thread, which are a quarter of such a call's time:
    warps that come to them more at once get less through (samples of all warps; with the state
    stored by 8 bytes, as `cute-vectorize-copies` does it, the difference is gone). Where no gemm
    with zero tiles is in a loop, and for other types, nothing was measured.
    """
    if place_of(site, sites) == "before":
        return Choice(DENSE, "before the loop: leaving atoms out does not pay in short calls")
    if site.elements[0] != "f16":
        return Choice("n4", "groups of four n were fastest on an H200, in bf16")
    if _is_behind_another_in_the_loop(site, sites):
        return Choice("n4", "for f16 groups of four n were fastest behind a loop's first gemm")
    return Choice("longest-chain", "for f16 longest chains first were fastest on an H200")


def _is_behind_another_in_the_loop(site: GemmSite, sites: Sequence[GemmSite]) -> bool:
    return site.in_loop and any(each.in_loop and each.index < site.index for each in sites)


def place_of(site: GemmSite, sites: Sequence[GemmSite]) -> str:
    """`loop`, or `before` the first gemm in a loop, or `after`; `alone` where none is in a loop.

    `sites` are those with zero tiles: a gemm before a loop of gemms without any is alone.
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


DENSE = "dense"
# Stalls within this share of each other say nothing about which binary is faster.
UNDECIDED = 0.01
_UNIFORM = ("n4", "k-serpentine", "longest-chain", "diagonal", "k")

Orders = Mapping[int, str]


@dataclass(frozen=True)
class Verdict:
    """What one candidate's binary says."""

    orders: Orders
    local_accesses: int
    stalls: int
    mma_count: int


def search(
    module: Module,
    sites: Sequence[GemmSite],
    known: Mapping[int, Known],
    heuristic: Orders,
    drop_loads: bool,
    context: PassContext,
) -> dict[int, Choice]:
    """The best candidate's order for each gemm.

    The heuristic's orders are the first candidate, and stay unless another spills less or stalls
    clearly less. The outcome is kept on disk: the same module with the same zeros is searched once.
    Raises TilepassError where nothing can be compiled here.
    """
    if context.trial is None:
        raise TilepassError("order=search compiles candidates, and there is no compiler at hand")
    file = cache_folder("zero-mma-orders") / f"{_key(module, known, drop_loads, context)}.json"
    verdicts = _read(file)
    if verdicts is None:
        candidates = [heuristic] + [
            uniform
            for name in _UNIFORM
            if (uniform := {site.index: name for site in sites}) != heuristic
        ]
        verdicts = [_try(module, orders, known, drop_loads, context) for orders in candidates]
        write_json(file, [asdict(verdict) for verdict in verdicts])
    best = verdicts[0]
    for verdict in verdicts[1:]:
        if _is_better(verdict, best):
            best = verdict
    reason = (
        f"best of {len(verdicts)} compiled candidates: {best.local_accesses} local accesses, "
        f"{best.stalls} issue-stall cycles, {best.mma_count} mma.sync"
    )
    return {site.index: Choice(best.orders[site.index], reason) for site in sites}


def _is_better(one: Verdict, other: Verdict) -> bool:
    if one.local_accesses != other.local_accesses:
        return one.local_accesses < other.local_accesses and one.stalls < other.stalls
    return one.stalls < other.stalls * (1 - UNDECIDED)


def _try(
    module: Module,
    orders: Orders,
    known: Mapping[int, Known],
    drop_loads: bool,
    context: PassContext,
) -> Verdict:
    candidate = copied(module)
    rewrites = [
        Rewrite(site, known[site.index].zeros, order)
        for site in gemm_sites(candidate)
        if isinstance(site, GemmSite) and (order := orders.get(site.index, DENSE)) != DENSE
    ]
    rewrite_all(rewrites, drop_loads=drop_loads)
    assert context.trial is not None
    figures = context.trial(candidate)
    assert isinstance(figures, BinaryFigures)
    return Verdict(
        dict(orders),
        figures.local_loads + figures.local_stores,
        issue_stalls(figures.sass),
        figures.mma_count,
    )


def _key(module: Module, known: Mapping[int, Known], drop_loads: bool, context: PassContext) -> str:
    """A hash of the module without its locations, the zeros, and all that judges it."""
    text = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=False)
    zeros = [(index, str(each.zeros)) for index, each in sorted(known.items()) if each.zeros]
    # Where the compiler is to leave its files changes nothing in them.
    options = [
        (name, " ".join(word for word in str(value).split() if "/" not in word))
        for name, value in sorted(context.compile_options.items())
    ]
    asked = (options, zeros, drop_loads, _UNIFORM)
    told = repr((tool_hash(), str(context.compiler), str(context.target), asked))
    return hashlib.sha256(f"{told}\n{text}".encode()).hexdigest()


def _read(file: Path) -> list[Verdict] | None:
    if not file.is_file():
        return None
    try:
        rows = json.loads(file.read_text())
        return [
            Verdict(
                {int(index): name for index, name in row.pop("orders").items()},
                **row,
            )
            for row in rows
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise TilepassError(f"{file}: not a record of candidates; remove it ({error})") from error


# nvdisasm prints an instruction of 128 bits as two lines, each with 64 of its bits.
_WORDS = re.compile(r"/\* 0x([0-9a-f]{16}) \*/")
# Bits 105 to 108 of an instruction, from Volta on (Jia et al. 2018, "Dissecting the NVIDIA Volta
# GPU architecture via microbenchmarking", section 2.1).
_STALL_SHIFT = 105 - 64
_STALL_MASK = 0xF


def issue_stalls(sass: str) -> int:
    """The sum over all instructions of the cycles for which a warp's issue waits after them."""
    words = [int(word, 16) for word in _WORDS.findall(sass)]
    return sum(word >> _STALL_SHIFT & _STALL_MASK for word in words[1::2])
