"""Plans for consumers of parts of a tile, and what they take of shared memory and registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tilepass.passes.triton.epilogue_warp_specialize.budget import (
    Limits,
    registers_obstacle,
    requested_registers,
)
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, Refusal
from tilepass.passes.triton.epilogue_warp_specialize.footprint import OVERHEAD_BYTES, ring_bytes
from tilepass.passes.triton.epilogue_warp_specialize.late import late_counts, turn_choices
from tilepass.passes.triton.epilogue_warp_specialize.options import (
    Options,
    Plan,
    SchemeName,
    Subtiles,
)
from tilepass.passes.triton.epilogue_warp_specialize.rings import BARRIER_BYTES
from tilepass.passes.triton.epilogue_warp_specialize.schemes import stage_counts
from tilepass.passes.triton.epilogue_warp_specialize.share_parts import (
    Part,
    Slices,
    foreign_obstacle,
    parts_of,
)
from tilepass.passes.triton.epilogue_warp_specialize.tile_shapes import Window

_LANES = 32
SUBTILES: tuple[Subtiles, ...] = (1, 2, 4)


@dataclass(frozen=True)
class SharePlan(Plan):
    """A plan, and what each consumer does by it.

    `in_place`: pieces are stored from where they were loaded to (see PieceBuffers).
    """

    in_place: bool = False
    parts: tuple[Part, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"{super().__str__()}, in place" if self.in_place else super().__str__()


def share_plans(
    name: SchemeName,
    nest: PersistentNest,
    options: Options,
    windows: Sequence[Window],
    warps: int,
    limits: Limits,
) -> Iterator[Plan]:
    """The plans that the options allow for consumers of these windows, each with so many warps;
    best first. Of those that differ in their stages alone only the best that fits is among them."""
    slices = Slices.of(nest)
    if isinstance(slices, Refusal):
        return iter(())
    registers = share_registers(nest, warps, len(windows), limits)
    found: list[SharePlan] = []
    for subtiles in SUBTILES:
        if options.epilogue_subtile not in ("auto", subtiles):
            continue
        parts = parts_of(nest, slices, windows, warps, subtiles)
        if isinstance(parts, Refusal) or foreign_obstacle(nest, parts[0]):
            continue
        found += [
            SharePlan(name, stages, buffers, subtiles, late, turns, place, parts)
            for buffers, place in _buffer_counts(options, parts[0], subtiles)
            for stages in [_most_stages(options, nest, _own_bytes(parts, buffers, place), limits)]
            for late in late_counts(options, nest, parts[0], registers)
            for turns in turn_choices(options, parts, late)
        ]
    return iter(sorted(found, key=_rank))


# Slots for the dot's operands beyond which another one gains less than overlapped stores do, and
# below which TMA's latency shows.
_ENOUGH_STAGES, _FEWEST_STAGES = 4, 3


def _rank(plan: SharePlan) -> tuple[int, ...]:
    """Best first: enough stages to hide TMA's latency, loaded tiles that are there before they are
    needed, a piece's store beside the next piece, more late pieces, more stages, larger pieces."""
    pieces = -plan.epilogue_subtile if plan.in_place else plan.epilogue_subtile
    return (
        -min(plan.stages, _FEWEST_STAGES),
        -plan.in_place,
        -min(plan.stages, _ENOUGH_STAGES),
        -min(plan.c_buffers, 2),
        -plan.late_subtiles,
        -plan.stages,
        pieces,
    )


def _buffer_counts(options: Options, part: Part, subtiles: Subtiles) -> Sequence[tuple[int, bool]]:
    """Numbers of buffers for pieces that the options allow; whether loads and stores share them."""
    in_place = [(subtiles, True)] if part.pieces.can_be_in_place else []
    if options.c_buffers == "auto":
        return [(1, False), (2, False), *in_place]
    apart = [(options.c_buffers, False)] if options.c_buffers > 0 else []
    return [*apart, *(each for each in in_place if each[0] == options.c_buffers)]


def _most_stages(options: Options, nest: PersistentNest, own_bytes: int, limits: Limits) -> int:
    """The most slots for the dot's operands that fit beside what the consumers have of their own,
    by `_rank` the best; the fewest where none do."""
    counts = stage_counts(options)
    room, blocks = limits.shared_bytes - own_bytes, [load.block for load in nest.loads]
    fitting = (each for each in counts if ring_bytes(blocks, each) <= room)
    return next(fitting, counts[-1])


def share_bytes(nest: PersistentNest, plan: SharePlan) -> int:
    """Shared memory that a plan takes, in bytes."""
    own = _own_bytes(plan.parts, plan.c_buffers, plan.in_place)
    return ring_bytes([load.block for load in nest.loads], plan.stages) + own


def _own_bytes(parts: Sequence[Part], buffers: int, in_place: bool) -> int:
    """What consumers with so many buffers take beside the ring of the dot's operands."""
    # Their windows are of one size.
    pieces = parts[0].pieces
    own = pieces.buffer_bytes(buffers, in_place) + pieces.scratch_bytes + BARRIER_BYTES
    return len(parts) * own + OVERHEAD_BYTES


def parts_obstacle(
    nest: PersistentNest, windows: Sequence[Window], warps: int, limits: Limits
) -> Refusal | None:
    """Why consumers of these windows, each with so many warps, cannot be built, whatever the
    numbers."""
    slices = Slices.of(nest)
    if isinstance(slices, Refusal):
        return slices
    parts = parts_of(nest, slices, windows, warps, 1)
    if isinstance(parts, Refusal):
        return parts
    m, n = windows[0].size
    registers = share_registers(nest, warps, len(windows), limits)
    accumulator = m * n // (_LANES * warps)
    return registers_obstacle(nest, accumulator, registers) or foreign_obstacle(nest, parts[0])


def share_registers(nest: PersistentNest, warps: int, consumers: int, limits: Limits) -> int:
    """The registers that a thread of each consumer has."""
    # One consumer alone, too, has what the warps that only copy leave.
    others = other_warps(nest, warps, consumers)
    available, *_ = requested_registers(limits, 0, [(warps, True), *others])
    return available


def other_warps(nest: PersistentNest, warps: int, consumers: int) -> list[tuple[int, bool]]:
    """The warps beside those of consumer 0, and whether they compute."""
    feeders = consumers if nest.tile_loads else 0
    return [*[(warps, True)] * (consumers - 1), *[(1, False)] * (1 + feeders)]
