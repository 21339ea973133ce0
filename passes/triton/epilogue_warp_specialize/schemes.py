"""The schemes: which consumers share a nest out, what suits them, their plans and numbers.

`ping-pong`: two groups of warps take turns, one in its main loop, the other in its epilogue.

    default      group 0: tiles 0, 2, 4 ...    4 warps
    partition 0  group 1: tiles 1, 3, 5 ...    4 warps
    partition 1  producer: A and B             1 warp
    partition 2, 3  where the epilogue loads tiles: one warp for each group

An epilogue goes in pieces through buffers of the group's own, as those of `split-consumer` do.
Where it cannot be computed in parts, the groups compute it as it stands, with the source's warps,
and the producer brings the tiles that it loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tilepass.core.refusal import Refusal
from tilepass.ir.engine import ir, operations
from tilepass.ir.loops import backward_slice

from .description import PersistentNest
from .options import (
    Limits,
    Machine,
    Options,
    SchemeName,
    registers_obstacle,
    requested_registers,
    stage_counts,
)
from .order import read_back_obstacle, store_again_obstacle
from .partitions import is_repeatable
from .plan import GROUPS, Plan, parts_obstacle, shared_bytes, window_plans
from .tiles import wrong_steps
from .windows import WGMMA_ROWS, WGMMA_WARPS, Window

_UNORDERED = "one group's epilogue does not wait for the other's"
_M, _N = 0, 1
# The narrowest wgmma (PTX ISA, wgmma.mma_async).
_FEWEST_COLUMNS = 8


@dataclass(frozen=True)
class Scheme:
    """One way to share a nest out among warps.

    `obstacle` says why a nest does not suit it, whatever the numbers. `plans` lists the numbers
    that suit the options and the target's limits, best first.
    """

    name: SchemeName
    obstacle: Callable[[PersistentNest, Machine], Refusal | None]
    plans: Callable[[PersistentNest, Options, Limits], Iterator[Plan]]


def accumulator_obstacle(nest: PersistentNest, machine: Machine) -> Refusal | None:
    """A refusal where consumers with the source's number of warps could not hold the accumulator.

    They have what a producer leaves of the registers, one group or two of them alike.
    """
    available, _ = requested_registers(machine.limits, 0, [(nest.num_warps, True), (1, False)])
    return registers_obstacle(nest, nest.accumulator_registers, available)


def warps_obstacle(nest: PersistentNest, allowed: tuple[int, ...]) -> Refusal | None:
    """A refusal where the source's number of warps does not suit a scheme."""
    if nest.num_warps in allowed:
        return None
    return Refusal(
        nest.outer.operation,
        f"num_warps = {nest.num_warps}: this takes {' or '.join(map(str, allowed))}",
    )


def choose(
    scheme: Scheme, nest: PersistentNest, options: Options, limits: Limits
) -> Plan | Refusal:
    """The best plan of a scheme that the options allow and shared memory holds."""
    least: tuple[int, Plan] | None = None
    for plan in scheme.plans(nest, options, limits):
        needed = shared_bytes(nest, plan)
        if needed <= limits.shared_bytes:
            return plan
        if least is None or needed < least[0]:
            least = (needed, plan)
    if least is None:
        return _unsuited(scheme, nest, options, limits)
    return Refusal(
        nest.outer.operation,
        f"{least[1]} takes {least[0]} bytes of shared memory of {limits.shared_bytes}",
        "take a smaller tile or fewer stages",
    )


def _unsuited(scheme: Scheme, nest: PersistentNest, options: Options, limits: Limits) -> Refusal:
    """A refusal where the options leave no plan, with the one of them that does."""
    asked_for = options.asked_for()
    texts = {name: f"{name.replace('_', '-')}={value}" for name, value in asked_for.items()}
    for name in asked_for:
        relaxed = replace(options, **{name: "auto"})
        if next(scheme.plans(nest, relaxed, limits), None) is not None:
            reason = f"{scheme.name} cannot be built with {texts[name]}"
            return Refusal(nest.outer.operation, reason, f"leave {name.replace('_', '-')} open")
    combined = ", ".join(texts.values()) or "any number of stages, buffers and subtiles"
    return Refusal(nest.outer.operation, f"{scheme.name} cannot be built with {combined}")


def _cooperative_obstacle(nest: PersistentNest, machine: Machine) -> Refusal | None:
    """All warps compute: any number of whole groups will do."""
    return warps_obstacle(nest, (4, 8)) or accumulator_obstacle(nest, machine)


def _cooperative_plans(nest: PersistentNest, options: Options, limits: Limits) -> Iterator[Plan]:
    """As many stages as there may be; with one staging buffer for each store, or the epilogue in
    pieces, where that lets another stage fit."""
    buffers = 1 if options.c_buffers == "auto" else options.c_buffers
    whole = [Plan("cooperative", stages, buffers) for stages in stage_counts(options)]
    if options.epilogue_subtile not in ("auto", 1) or options.late_subtiles not in ("auto", 0):
        whole = []
    windows = [Window.whole(nest.tile[:2])]
    pieces = window_plans("cooperative", nest, options, windows, nest.num_warps, limits)
    cut = [plan for plan in pieces if plan.epilogue_subtile > 1]
    yield from sorted([*whole, *cut], key=lambda plan: -plan.stages)


def _ping_pong_obstacle(nest: PersistentNest, machine: Machine) -> Refusal | None:
    """Each group computes every other tile alone, with 4 warps."""
    refusal = (
        warps_obstacle(nest, (WGMMA_WARPS, GROUPS * WGMMA_WARPS))
        or wrong_steps(nest)
        or read_back_obstacle(nest, _UNORDERED)
        or store_again_obstacle(nest, _UNORDERED)
    )
    if refusal is not None:
        return refusal
    in_pieces = parts_obstacle(nest, _tiles(nest), WGMMA_WARPS, machine.limits)
    if in_pieces is None or nest.num_warps != WGMMA_WARPS:
        return in_pieces
    return _whole_obstacle(nest, machine)


def _ping_pong_plans(nest: PersistentNest, options: Options, limits: Limits) -> Iterator[Plan]:
    """Epilogues in pieces, one or more, where that is possible; else whole, as many stages as there
    may be. No piece is late: a group's dots do not wait for its own epilogue."""
    if options.late_subtiles not in ("auto", 0):
        return
    windows = _tiles(nest)
    if parts_obstacle(nest, windows, WGMMA_WARPS, limits) is None:
        own = replace(options, late_subtiles=0, alternate_epilogues="false")
        yield from window_plans("ping-pong", nest, own, windows, WGMMA_WARPS, limits)
    elif options.c_buffers in ("auto", 1) and options.epilogue_subtile in ("auto", 1):
        for stages in stage_counts(options):
            yield Plan("ping-pong", stages, 1)


def _tiles(nest: PersistentNest) -> list[Window]:
    """Each group's: the tile."""
    return [Window.whole(nest.tile[:2])] * GROUPS


def _split_obstacle(nest: PersistentNest, machine: Machine) -> Refusal | None:
    windows = _halves(nest)
    if isinstance(windows, Refusal):
        return windows
    return parts_obstacle(nest, windows, WGMMA_WARPS, machine.limits)


def _split_plans(nest: PersistentNest, options: Options, limits: Limits) -> Iterator[Plan]:
    windows = _halves(nest)
    assert not isinstance(windows, Refusal)
    return window_plans("split-consumer", nest, options, windows, WGMMA_WARPS, limits)


def _halves(nest: PersistentNest) -> tuple[Window, ...] | Refusal:
    """Both halves: of M where they fill wgmma instructions, else of N."""
    m, n, _ = nest.tile
    whole = Window.whole((m, n))
    if m >= GROUPS * WGMMA_ROWS:
        return whole.split(_M, GROUPS)
    if m == WGMMA_ROWS and n >= GROUPS * _FEWEST_COLUMNS:
        return whole.split(_N, GROUPS)
    return Refusal(nest.dot, f"a tile of {m}x{n} cannot be shared out to two consumers")


def _whole_obstacle(nest: PersistentNest, machine: Machine) -> Refusal | None:
    """Why groups of the source's warps cannot compute the epilogue as it stands."""
    return accumulator_obstacle(nest, machine) or _captured_tensor(nest)


def _captured_tensor(nest: PersistentNest) -> Refusal | None:
    """A partition repeats tensors of the prelude; one that was loaded it can neither repeat nor
    capture."""
    used = [
        operand
        for each in (*nest.tile_operations, *nest.epilogue)
        for inside in operations(each)
        for operand in inside.operands
        if not nest.outer.defines(operand)
    ]
    for each in backward_slice([*used, nest.carried_accumulator.initial], nest.function):
        tensor = any(isinstance(result.type, ir.RankedTensorType) for result in each.results)
        if each in nest.prelude and tensor and not is_repeatable(each):
            return Refusal(each, f"a tensor from before the tile loop ({each.name})")
    return None


SCHEMES: Mapping[str, Scheme] = {
    each.name: each
    for each in (
        Scheme("cooperative", _cooperative_obstacle, _cooperative_plans),
        Scheme("ping-pong", _ping_pong_obstacle, _ping_pong_plans),
        Scheme("split-consumer", _split_obstacle, _split_plans),
    )
}
