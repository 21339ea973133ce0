"""What each consumer of a tile computes, and what cannot be shared out to several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilepass.ir.effects import Effect, effects_of, is_pure
from tilepass.ir.engine import ir, operations
from tilepass.passes.triton.epilogue_warp_specialize.description import (
    PersistentNest,
    Refusal,
    once,
)
from tilepass.passes.triton.epilogue_warp_specialize.options import Subtiles
from tilepass.passes.triton.epilogue_warp_specialize.pieces import Pieces, pieces_of
from tilepass.passes.triton.epilogue_warp_specialize.read_back import may_read, place_of, stores_of
from tilepass.passes.triton.epilogue_warp_specialize.scalars import (
    scalar_obstacle,
    touches_tensors,
    written_roots,
)
from tilepass.passes.triton.epilogue_warp_specialize.tile_axes import (
    Needed,
    TileSlice,
    initial_slice_of,
    slice_of,
)
from tilepass.passes.triton.epilogue_warp_specialize.tile_clone import layouts_for
from tilepass.passes.triton.epilogue_warp_specialize.tile_shapes import (
    Layouts,
    Window,
)

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
        """Both, or what cannot be computed for a part of the tile."""
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


def parts_of(
    nest: PersistentNest,
    slices: Slices,
    windows: Sequence[Window],
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
    return tuple(found)


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
    """The operands that are no tensors."""
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
            return Refusal(each, f"{each.name} in front of the tile loop needs all warps")
        if effects_of(each) & ~Effect.READ:
            return Refusal(each, f"{each.name} stores nothing that comes from the dot")
    return _loads_what_it_stores(nest, slices)


def _stays_outside(nest: PersistentNest, warps: int) -> Refusal | None:
    """Outside the tile loop no tensor may be left, where the number of warps changes: those in
    front of it go where only tensors and the loop use them."""
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
                return Refusal(each, f"{each.name} in front of the tile loop needs all warps")
    return None


def _loads_what_it_stores(nest: PersistentNest, slices: Slices) -> Refusal | None:
    """What the nest stores may be loaded where it is stored alone: the other consumer does not wait
    for the rest of the tile. And not in front of the tile loop: parts of it are loaded for each
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
                reason = "what the tile loop stores is loaded in front of it, once for all tiles"
            return Refusal(load, reason)
    return None
