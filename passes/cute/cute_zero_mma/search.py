"""`order=search`: candidates are compiled, and what their binaries say decides.

Without running it a binary tells its spills (LDL and STL), and in the control bits of each
instruction for how many cycles the issue stalls after it. Spills in a short loop cost more than
zero atoms gain; stalls rank orders of a loop that runs often roughly as an H200 does, to about one
percent. They say nothing about code that runs once per launch (see `choice.expectation`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tilepass.core.decisions import Choice
from tilepass.core.digest import tool_hash
from tilepass.core.errors import TilepassError
from tilepass.core.files import cache_folder, write_json
from tilepass.core.pass_base import BinaryFigures, PassContext
from tilepass.ir.engine import Module, copied
from tilepass.passes.cute.cute_zero_mma.knowledge import Known
from tilepass.passes.cute.cute_zero_mma.rewrite import Rewrite, rewrite_all
from tilepass.passes.cute.cute_zero_mma.sass_stalls import issue_stalls
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite, gemm_sites

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
