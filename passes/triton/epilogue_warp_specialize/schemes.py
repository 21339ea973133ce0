"""What a scheme is, and what schemes share when they choose their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tilepass.passes.triton.epilogue_warp_specialize.budget import (
    Limits,
    registers_obstacle,
    requested_registers,
)
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, Refusal
from tilepass.passes.triton.epilogue_warp_specialize.footprint import ring_bytes
from tilepass.passes.triton.epilogue_warp_specialize.machine import Machine
from tilepass.passes.triton.epilogue_warp_specialize.options import Options, Plan, SchemeName

# A dot is issued before the slot of the one before is handed back: with one slot nobody moves.
_FEWEST_STAGES = 2
_MOST_STAGES = 12


@dataclass(frozen=True)
class Scheme:
    """One way to share a nest out among warps.

    `obstacle` says why a nest does not suit it, whatever the numbers. `plans` lists the numbers
    that suit the options and the target's limits, best first. `shared_bytes` is the shared memory
    that a plan takes, `build` rewrites the nest; both work from the description and the plan alone.
    """

    name: SchemeName
    obstacle: Callable[[PersistentNest, Machine], Refusal | None]
    plans: Callable[[PersistentNest, Options, Limits], Iterator[Plan]]
    shared_bytes: Callable[[PersistentNest, Plan], int]
    build: Callable[[PersistentNest, Plan, Machine], None]


def stage_counts(options: Options) -> list[int]:
    """The numbers of slots for the dot's operands that the options allow, largest first."""
    if options.stages == "auto":
        return list(range(_MOST_STAGES, _FEWEST_STAGES - 1, -1))
    return [options.stages]


def rings_bytes(nest: PersistentNest, plan: Plan, slots: int = 1) -> int:
    """The producer's rings: `slots` for each tile load."""
    tiles = sum(ring_bytes([load.block], slots) for load in nest.tile_loads)
    return ring_bytes([load.block for load in nest.loads], plan.stages) + tiles


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
        needed = scheme.shared_bytes(nest, plan)
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
