"""`split-consumer`: two consumers, each with half of the tile and an epilogue of its own.

    default      consumer 0: upper half       4 warps
    partition 0  consumer 1: lower half       4 warps
    partition 1  producer: A and B            1 warp
    partition 2, 3  where the epilogue loads tiles: one warp for each consumer

Both read the same slots: B whole, A by halves (or the other way round where M cannot be cut), so
that a slot is empty after two arrivals. Nothing else holds them together: one's epilogue runs under
the other's main loop. `alternate_epilogues` makes sure that it does. A turn is handed over when the
first dot of a consumer's next tile is issued, and taken in front of an epilogue; each turn is a
barrier with one arrival a tile:

    consumer 0:  dots 0 | wait turn[0]  epilogue 0 | first dot of 1, arrive turn[1] | dots 1 ...
    consumer 1:  dots 0 | wait turn[1] ............................ epilogue 0 | ...

The first wait of consumer 0 passes, as it asks for the parity before the first phase; at its end
it arrives once more, for the last epilogue of consumer 1. So a wait that does not pass has one
arrival, and neither can be ahead by more than one: the parity is unambiguous.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilepass.passes.triton.epilogue_warp_specialize.budget import Limits
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, Refusal
from tilepass.passes.triton.epilogue_warp_specialize.machine import Machine
from tilepass.passes.triton.epilogue_warp_specialize.options import Options, Plan, SchemeName
from tilepass.passes.triton.epilogue_warp_specialize.schemes import Scheme
from tilepass.passes.triton.epilogue_warp_specialize.share_plans import (
    SharePlan,
    parts_obstacle,
    share_bytes,
    share_plans,
)
from tilepass.passes.triton.epilogue_warp_specialize.shares import build_shares
from tilepass.passes.triton.epilogue_warp_specialize.tile_shapes import (
    WGMMA_ROWS,
    WGMMA_WARPS,
    Window,
)

NAME: SchemeName = "split-consumer"
CONSUMERS = 2
_M, _N = 0, 1
# The narrowest wgmma (PTX ISA, wgmma.mma_async).
_FEWEST_COLUMNS = 8


def split_obstacle(nest: PersistentNest, machine: Machine) -> Refusal | None:
    """Why a nest does not suit this scheme, whatever the numbers."""
    windows = _windows(nest)
    if isinstance(windows, Refusal):
        return windows
    return parts_obstacle(nest, windows, WGMMA_WARPS, machine.limits)


def split_plans(nest: PersistentNest, options: Options, limits: Limits) -> Iterator[Plan]:
    """The plans that the options allow."""
    windows = _windows(nest)
    assert not isinstance(windows, Refusal)
    return share_plans(NAME, nest, options, windows, WGMMA_WARPS, limits)


def split_shared_bytes(nest: PersistentNest, plan: Plan) -> int:
    """Shared memory that a plan takes, in bytes."""
    assert isinstance(plan, SharePlan)
    return share_bytes(nest, plan)


def build_split_consumer(nest: PersistentNest, plan: Plan, machine: Machine) -> None:
    """Rewrite the nest in place."""
    assert isinstance(plan, SharePlan)
    build_shares(nest, plan, machine)


SPLIT_CONSUMER = Scheme(NAME, split_obstacle, split_plans, split_shared_bytes, build_split_consumer)


def _windows(nest: PersistentNest) -> tuple[Window, ...] | Refusal:
    """Both halves: of M where they fill wgmma instructions, else of N."""
    m, n, _ = nest.tile
    whole = Window.whole((m, n))
    if m >= CONSUMERS * WGMMA_ROWS:
        return whole.split(_M, CONSUMERS)
    if m == WGMMA_ROWS and n >= CONSUMERS * _FEWEST_COLUMNS:
        return whole.split(_N, CONSUMERS)
    return Refusal(nest.dot, f"a tile of {m}x{n} cannot be shared out to two consumers")
