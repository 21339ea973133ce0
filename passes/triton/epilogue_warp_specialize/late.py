"""Pieces of an epilogue that wait in registers until the next tile's first dot is issued.

    dots of tile t | pieces 0, 1 of t | first dot of t+1 | pieces 2, 3 of t | other dots of t+1 ...

The tensor cores have work while the late pieces are computed and stored. A late piece takes its
part of the accumulator beside the accumulator itself: a quarter of 64x256 on 4 warps is 32
registers.
Before the first tile there is nothing to be late: the same code runs, reads what the first tile
will read, and its TMA stores go outside of the array, where TMA writes nothing (PTX ISA,
cp.async.bulk.tensor: out-of-bounds writes are dropped). So what else has effects in an epilogue,
pointer stores and the reading of loaded tiles, cannot be late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.engine import ir
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, Refusal
from tilepass.passes.triton.epilogue_warp_specialize.options import Options
from tilepass.passes.triton.epilogue_warp_specialize.pieces import Pieces
from tilepass.passes.triton.epilogue_warp_specialize.share_parts import Part
from tilepass.passes.triton.epilogue_warp_specialize.work import epilogue_work

_MOST = 2
# Instructions for an element of the tile: past this late pieces cost more than they hide. They are
# computed once in vain, before the first tile (with erf, one 128x256 tile of K = 1024 in a program:
# 0.66 of the plain kernel's rate, and 1.00 without them).
_MOST_LATE_WORK = 15.0
_LANES = 32
# What a thread of a consumer of so many warps needs beside the accumulator and what is kept:
# addresses, slots, the temporaries of an epilogue. ptxas spilled with 32 on 4 warps (GELU, 64x256),
# with 48 on 8 warps (bias, 128x256, Triton 3.9).
_OTHER_REGISTERS = {4: 48, 8: 56}


@dataclass(frozen=True)
class LateState:
    """What the tile loop carries: parts of the accumulator, and the tile that they are of."""

    columns: tuple[ir.Value, ...] = ()
    tile: ir.Value | None = None

    @property
    def values(self) -> list[ir.Value]:
        """As the loop carries them."""
        return [*self.columns] if self.tile is None else [*self.columns, self.tile]

    @classmethod
    def nothing(
        cls, pieces: Pieces, count: int, nest: PersistentNest, builder: AsyncBuilder
    ) -> LateState:
        """Before the first tile: zeros, of a tile that scalars can be computed for."""
        if count == 0:
            return cls()
        type_ = builder.type(pieces.accumulator_type)
        columns = tuple(builder.zeros(type_) for _ in range(count))
        return cls(columns, nest.outer.lower_bound)

    @classmethod
    def split(cls, state: Sequence[ir.Value], count: int) -> tuple[list[ir.Value], LateState]:
        """What else a loop carries, and its late pieces."""
        if count == 0:
            return list(state), cls()
        *others, tile = state
        end = len(others) - count
        return others[:end], cls(tuple(others[end:]), tile)


def late_counts(
    options: Options, nest: PersistentNest, part: Part, registers: int
) -> Sequence[int]:
    """How many pieces may be late, by the options and by the registers that a thread has."""
    pieces = part.pieces
    wanted = range(_MOST + 1) if options.late_subtiles == "auto" else [options.late_subtiles]
    m, n = part.window.size
    accumulator = m * n // (_LANES * part.warps)
    possible = 0
    if options.late_subtiles == "auto" and epilogue_work(nest) > _MOST_LATE_WORK:
        return [0]
    if _late_obstacle(nest) is None:
        room = registers - _OTHER_REGISTERS[part.warps] - accumulator
        count = len(pieces.windows)
        possible = min(_MOST, count - 1, max(0, room * count // accumulator))
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
    return _late_obstacle(nest) if options.late_subtiles in range(1, _MOST + 1) else None


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
