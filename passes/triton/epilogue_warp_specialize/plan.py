"""What each consumer computes of a tile, and the plans for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tilepass.core.refusal import Refusal
from tilepass.ir.effects import Effect, effects_of, is_pure
from tilepass.ir.engine import ir, operations

from .axes import Needed, TileSlice, initial_slice_of, slice_of
from .clones import layouts_for
from .cost_model import epilogue_work
from .description import PersistentNest, once
from .options import (
    BARRIER_BYTES,
    OVERHEAD_BYTES,
    Limits,
    Options,
    SchemeName,
    Subtiles,
    array_bytes,
    registers_obstacle,
    requested_registers,
    ring_bytes,
    stage_counts,
)
from .order import may_read, place_of, scalar_obstacle, stores_of, touches_tensors, written_roots
from .pieces import UNLIKE, Pieces, pieces_of
from .windows import Layouts, Window

GROUPS = 2
"""Groups of warps under `ping-pong`, consumers under `split-consumer`."""
_LOADS = ("tt.load", "tt.descriptor_load")


@dataclass(frozen=True)
class Part:
    """What one consumer computes with so many warps. `initial` is the slice of the accumulator's
    first value."""

    window: Window
    warps: int
    layouts: Layouts
    initial: TileSlice
    pieces: Pieces

    @property
    def slices(self) -> Slices:
        """What it computes, of the whole tile."""
        return Slices(self.initial, self.pieces.source)


@dataclass(frozen=True)
class Slices:
    """What a consumer computes with tensors beside the dots: the accumulator's first value, the
    epilogue."""

    initial: TileSlice
    epilogue: TileSlice

    @classmethod
    def of(cls, nest: PersistentNest) -> Slices | Refusal:
        return _slices_of(nest)


@once
def _slices_of(nest: PersistentNest) -> Slices | Refusal:
    initial, epilogue = initial_slice_of(nest), slice_of(nest)
    if isinstance(initial, Refusal):
        return initial
    for each in initial.needed:
        if each.operation.name == "tt.descriptor_load":
            reason = "the accumulator starts from a tile: a part of it cannot be loaded there"
            return Refusal(each.operation, reason, "add the tile in the epilogue")
    return epilogue if isinstance(epilogue, Refusal) else Slices(initial, epilogue)


@once
def parts_of(
    nest: PersistentNest,
    slices: Slices,
    windows: tuple[Window, ...],
    warps: int,
    subtiles: Subtiles,
) -> tuple[Part, ...] | Refusal:
    """A part for each window, with so many warps and its epilogue in `subtiles` pieces; or why
    there is none."""
    found: list[Part] = []
    for window in windows:
        layouts = layouts_for(nest, slices.initial, window, warps)
        if isinstance(layouts, Refusal):
            return layouts
        pieces = pieces_of(nest, slices.epilogue, window, subtiles, warps)
        if isinstance(pieces, Refusal):
            return pieces
        found.append(Part(window, warps, layouts, slices.initial, pieces))
    moved = [(each.pieces.load_blocks, each.pieces.store_blocks) for each in found]
    return Refusal(nest.dot, UNLIKE) if moved[1:] != moved[:-1] else tuple(found)


def foreign_obstacle(nest: PersistentNest, part: Part) -> Refusal | None:
    """What of a nest, beside the dots and what its stores need, suits no consumers of parts."""
    return (
        _foreign_functions(nest, part.warps)
        or _foreign_operations(nest, part.slices)
        or _stays_outside(nest, part.warps)
    )


@once
def _foreign_operations(nest: PersistentNest, slices: Slices) -> Refusal | None:
    roots = _scalar_roots(nest, slices)
    return _foreign_tensors(nest, slices) or scalar_obstacle(
        nest, roots, "what the consumer of a part needs"
    )


def scalar_roots(nest: PersistentNest, part: Part) -> list[ir.Value]:
    """The scalars that a consumer's tensors and stores need."""
    return _scalar_roots(nest, part.slices)


def _scalar_roots(nest: PersistentNest, slices: Slices) -> list[ir.Value]:
    pieces = [each for each in slices.epilogue.needed if not nest.is_tile_load(each.operation)]
    return scalars_of([*slices.initial.needed, *pieces])


def scalars_of(needed: Iterable[Needed]) -> list[ir.Value]:
    operands = [operand for each in needed for operand in each.operation.operands]
    return [each for each in operands if not isinstance(each.type, ir.RankedTensorType)]


def _foreign_functions(nest: PersistentNest, warps: int) -> Refusal | None:
    """The number of warps of a module is that of all its functions."""
    module = nest.function.parent
    assert module is not None
    functions = [each for each in module.regions[0].blocks[0] if each.operation.name == "tt.func"]
    if nest.num_warps == warps or len(functions) == 1:
        return None
    return Refusal(
        nest.outer.operation,
        f"num_warps becomes {warps}, and the module holds other functions",
    )


def _foreign_tensors(nest: PersistentNest, slices: Slices) -> Refusal | None:
    """Outside the slices nothing may have effects or tensors of the old number of warps."""
    known = {each.operation for each in (*slices.initial.needed, *slices.epilogue.needed)}
    for each in (*nest.prelude, *nest.tile_operations, *nest.epilogue):
        if each in known or not touches_tensors(each):
            continue
        if each in nest.prelude and not is_pure(each):
            return Refusal(each, f"{each.name} before the tile loop needs all warps")
        if effects_of(each) & ~Effect.READ:
            return Refusal(each, f"{each.name} stores nothing that comes from the dot")
    return _loads_what_it_stores(nest, slices)


@once
def _stays_outside(nest: PersistentNest, warps: int) -> Refusal | None:
    """Outside the tile loop no tensor may be left, where the number of warps changes: those
    before it go where only tensors and the loop use them."""
    if nest.num_warps == warps:
        return None
    for block in nest.function.regions[0].blocks:
        for each in (view.operation for view in block):
            inside = operations(each) if len(each.regions) else [each]
            if each == nest.outer.operation or not any(map(touches_tensors, inside)):
                continue
            if each not in nest.prelude:
                return Refusal(each, f"{each.name} behind the tile loop needs all warps")
            if not any(isinstance(result.type, ir.RankedTensorType) for result in each.results):
                return Refusal(each, f"{each.name} before the tile loop needs all warps")
    return None


def _loads_what_it_stores(nest: PersistentNest, slices: Slices) -> Refusal | None:
    """What the nest stores may be loaded where it is stored alone: the other consumer does not wait
    for the rest of the tile. And not before the tile loop: parts of it are loaded for each
    tile."""
    written, places = written_roots(nest), [place_of(each) for each in stores_of(nest)]
    for needed in (*slices.initial.needed, *slices.epilogue.needed):
        load = needed.operation
        if load.name not in _LOADS or nest.is_tile_load(load):
            continue
        once_only = load in nest.prelude
        if place_of(load) in places and not once_only:
            continue
        if may_read(load, written):
            reason = "the epilogue loads what the tile loop stores, from another place"
            if once_only:
                reason = "what the tile loop stores is loaded before it, once for all tiles"
            return Refusal(load, reason)
    return None


_LANES = 32

SUBTILES: tuple[Subtiles, ...] = (1, 2, 4)


@dataclass(frozen=True)
class Plan:
    """What is built: the scheme and its numbers, all of them decided.

    `parts` is what each consumer does, in windows; there is none where the epilogue is computed as
    it stands, with the source's warps. `in_place`: pieces are stored from where they were loaded to
    (see PieceBuffers).
    """

    scheme: SchemeName
    stages: int
    c_buffers: int = 1
    epilogue_subtile: Subtiles = 1
    late_subtiles: int = 0
    alternate_epilogues: bool = False
    in_place: bool = False
    parts: tuple[Part, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        pieces = f", {self.epilogue_subtile} subtiles" if self.epilogue_subtile > 1 else ""
        pieces += f", {self.late_subtiles} of them late" if self.late_subtiles else ""
        pieces += ", alternating" if self.alternate_epilogues else ""
        pieces += ", in place" if self.in_place else ""
        return f"{self.scheme}, {self.stages} stages, {self.c_buffers} C buffers{pieces}"

    @property
    def groups(self) -> int:
        """Groups of warps that each compute whole tiles."""
        return GROUPS if self.scheme == "ping-pong" else 1


def window_plans(
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
    registers = registers_of(nest, warps, len(windows), limits)
    found: list[Plan] = []
    for subtiles in SUBTILES:
        if options.epilogue_subtile not in ("auto", subtiles):
            continue
        parts = parts_of(nest, slices, tuple(windows), warps, subtiles)
        if isinstance(parts, Refusal) or foreign_obstacle(nest, parts[0]):
            continue
        found += [
            Plan(name, stages, buffers, subtiles, late, turns, place, parts)
            for buffers, place in _buffer_counts(options, parts[0], subtiles)
            for stages in [_most_stages(options, nest, _own_bytes(parts, buffers, place), limits)]
            for late in late_counts(options, nest, parts[0], registers)
            for turns in turn_choices(options, parts, late)
        ]
    return iter(sorted(found, key=_rank))


# Slots for the dot's operands beyond which another one gains less than overlapped stores do, and
# below which TMA's latency shows.
_ENOUGH_STAGES, _FEWEST_STAGES = 4, 3


def _rank(plan: Plan) -> tuple[int, ...]:
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


def shared_bytes(nest: PersistentNest, plan: Plan) -> int:
    """Shared memory that a plan takes: rings, buffers of the epilogue, scratch."""
    operands = ring_bytes([load.block for load in nest.loads], plan.stages)
    if plan.parts:
        return operands + _own_bytes(plan.parts, plan.c_buffers, plan.in_place)
    tiles = sum(ring_bytes([load.block], plan.groups) for load in nest.tile_loads)
    buffers = plan.groups * plan.c_buffers
    staging = sum(array_bytes(store.block, buffers) for store in nest.tma_stores)
    return operands + tiles + staging + plan.groups * nest.scratch_bytes + OVERHEAD_BYTES


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
    parts = parts_of(nest, slices, tuple(windows), warps, _fewest(nest, slices, windows[0]))
    if isinstance(parts, Refusal):
        return parts
    m, n = windows[0].size
    registers = registers_of(nest, warps, len(windows), limits)
    accumulator = m * n // (_LANES * warps)
    return registers_obstacle(nest, accumulator, registers) or foreign_obstacle(nest, parts[0])


def _fewest(nest: PersistentNest, slices: Slices, window: Window) -> Subtiles:
    """The least number of pieces: that of the kernel's own in a window."""
    own = window.size[1] * slices.epilogue.fewest_pieces // nest.tile[1]
    fewest = SUBTILES[0]
    for fewest in SUBTILES:
        if fewest >= own:
            break
    return fewest


def registers_of(nest: PersistentNest, warps: int, consumers: int, limits: Limits) -> int:
    # One consumer alone, too, has what the warps that only copy leave.
    others = other_warps(warps, consumers, consumers if nest.tile_loads else 0)
    available, *_ = requested_registers(limits, 0, [(warps, True), *others])
    return available


def other_warps(warps: int, consumers: int, feeders: int) -> list[tuple[int, bool]]:
    """The warps beside those of consumer 0, and whether they compute."""
    return [*[(warps, True)] * (consumers - 1), *[(1, False)] * (1 + feeders)]


_MOST_LATE = 2
# Instructions for an element of the tile: past this late pieces cost more than they hide. They are
# computed once in vain, before the first tile (with erf, one 128x256 tile of K = 1024 in a program:
# 0.66 of the plain kernel's rate, and 1.00 without them).
_MOST_LATE_WORK = 15.0
# What a thread of a consumer of so many warps needs beside the accumulator and what is kept:
# addresses, slots, the temporaries of an epilogue. ptxas spilled with 32 on 4 warps (GELU, 64x256),
# with 48 on 8 warps (bias, 128x256, Triton 3.9).
_OTHER_REGISTERS = {4: 48, 8: 56}


def late_counts(
    options: Options, nest: PersistentNest, part: Part, registers: int
) -> Sequence[int]:
    """How many pieces may be late, by the options and by the registers that a thread has."""
    pieces = part.pieces
    wanted = range(_MOST_LATE + 1) if options.late_subtiles == "auto" else [options.late_subtiles]
    m, n = part.window.size
    accumulator = m * n // (_LANES * part.warps)
    possible = 0
    if options.late_subtiles == "auto" and epilogue_work(nest) > _MOST_LATE_WORK:
        return [0]
    if _late_obstacle(nest) is None:
        room = registers - _OTHER_REGISTERS[part.warps] - accumulator
        count = len(pieces.windows)
        possible = min(_MOST_LATE, count - 1, max(0, room * count // accumulator))
    return [each for each in wanted if each <= possible]


def turn_choices(options: Options, parts: Sequence[Part], late: int) -> Sequence[bool]:
    """Whether the consumers' epilogues alternate.

    Measured on an H200 (six shapes, bf16, geometric mean against cuBLAS): late pieces 1.045 without
    turns and 1.032 with them; none late 1.025 with turns and 1.013 without. An epilogue that
    computes or loads takes longer than one turn can be hidden behind: GELU at K = 512 took 146 us
    with turns, 133 without.
    """
    if len(parts) == 1:
        return [False]
    if options.alternate_epilogues != "auto":
        return [options.alternate_epilogues == "true"]
    return [late == 0 and parts[0].pieces.only_converts]


def late_refusal(nest: PersistentNest, options: Options) -> Refusal | None:
    """A refusal where late pieces are asked for and no scheme can have them."""
    return _late_obstacle(nest) if options.late_subtiles in range(1, _MOST_LATE + 1) else None


def _late_obstacle(nest: PersistentNest) -> Refusal | None:
    if nest.tile_loads:
        return Refusal(nest.tile_loads[0].operation, "a late piece cannot load a tile")
    if nest.pointer_stores:
        return Refusal(nest.pointer_stores[0], "a late piece cannot be stored through pointers")
    if nest.outer.carried:
        return Refusal(
            nest.outer.operation,
            "the tile loop carries scalars, and a late piece is of the tile before",
            "compute them from the tile's number",
        )
    return None
