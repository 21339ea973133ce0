"""`ping-pong`: two groups of warps take turns, one in its main loop, the other in its epilogue.

    default      group 0: tiles 0, 2, 4 ...    4 warps
    partition 0  group 1: tiles 1, 3, 5 ...    4 warps
    partition 1  producer: A and B             1 warp
    partition 2, 3  where the epilogue loads tiles: one warp for each group

An epilogue goes in pieces through buffers of the group's own, as those of `split-consumer` do.
Where it cannot be computed in parts, the groups compute it as it stands, with the source's warps,
and the producer brings the tiles that it loads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilepass.passes.triton.epilogue_warp_specialize.budget import Limits
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, Refusal
from tilepass.passes.triton.epilogue_warp_specialize.machine import Machine
from tilepass.passes.triton.epilogue_warp_specialize.options import Options, Plan, SchemeName
from tilepass.passes.triton.epilogue_warp_specialize.ping_pong_pieces import build_pieces
from tilepass.passes.triton.epilogue_warp_specialize.ping_pong_whole import (
    build_whole,
    whole_bytes,
    whole_obstacle,
)
from tilepass.passes.triton.epilogue_warp_specialize.read_back import (
    read_back_obstacle,
    store_again_obstacle,
)
from tilepass.passes.triton.epilogue_warp_specialize.schemes import (
    Scheme,
    stage_counts,
    warps_obstacle,
)
from tilepass.passes.triton.epilogue_warp_specialize.share_plans import (
    SharePlan,
    parts_obstacle,
    share_bytes,
    share_plans,
)
from tilepass.passes.triton.epilogue_warp_specialize.tile_shapes import WGMMA_WARPS, Window
from tilepass.passes.triton.epilogue_warp_specialize.turns import GROUPS, wrong_steps

NAME: SchemeName = "ping-pong"
_UNORDERED = "one group's epilogue does not wait for the other's"


def obstacle(nest: PersistentNest, machine: Machine) -> Refusal | None:
    """Each group computes every other tile alone, with 4 warps."""
    refusal = (
        warps_obstacle(nest, (WGMMA_WARPS, GROUPS * WGMMA_WARPS))
        or wrong_steps(nest)
        or read_back_obstacle(nest, _UNORDERED)
        or store_again_obstacle(nest, _UNORDERED)
    )
    if refusal is not None:
        return refusal
    in_pieces = parts_obstacle(nest, _windows(nest), WGMMA_WARPS, machine.limits)
    if in_pieces is None or nest.num_warps != WGMMA_WARPS:
        return in_pieces
    return whole_obstacle(nest, machine)


def plans(nest: PersistentNest, options: Options, limits: Limits) -> Iterator[Plan]:
    """Epilogues in pieces, one or more, where that is possible; else whole, as many stages as there
    may be. No piece is late: a group's dots do not wait for its own epilogue."""
    if options.late_subtiles not in ("auto", 0):
        return
    windows = _windows(nest)
    if parts_obstacle(nest, windows, WGMMA_WARPS, limits) is None:
        own = replace(options, late_subtiles=0, alternate_epilogues="false")
        yield from share_plans(NAME, nest, own, windows, WGMMA_WARPS, limits)
    elif options.c_buffers in ("auto", 1) and options.epilogue_subtile in ("auto", 1):
        for stages in stage_counts(options):
            yield Plan(NAME, stages, 1)


def shared_bytes(nest: PersistentNest, plan: Plan) -> int:
    """Shared memory that a plan takes, in bytes."""
    return share_bytes(nest, plan) if isinstance(plan, SharePlan) else whole_bytes(nest, plan)


def build_ping_pong(nest: PersistentNest, plan: Plan, machine: Machine) -> None:
    """Rewrite the nest in place."""
    if isinstance(plan, SharePlan):
        build_pieces(nest, plan, machine)
    else:
        build_whole(nest, plan, machine)


PING_PONG = Scheme(NAME, obstacle, plans, shared_bytes, build_ping_pong)


def _windows(nest: PersistentNest) -> list[Window]:
    """Each group's: the tile."""
    return [Window.whole(nest.tile[:2])] * GROUPS
