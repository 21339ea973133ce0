"""Parts of an accumulator: its columns cut in two, and again, without moving a register.

Before:  %acc : tensor<64x256xf32, #mma>                         // #mma: wgmma, 64x256
After:   %0 = tt.reshape %acc : tensor<64x256> -> tensor<64x2x128>
         %1 = tt.trans %0 {order = [0, 2, 1]}
         %left, %right = tt.split %1 : tensor<64x128x2> -> tensor<64x128>
         %x = ttg.convert_layout %left : tensor<64x128xf32, #linear> -> tensor<64x128xf32, #half>
Sound always. It costs nothing: `#linear` and `#half`, wgmma of half the columns, are the same
layout, so that the conversion is the identity and all else renames registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tilepass.ir.build import Builder
from tilepass.ir.engine import ir, plain
from tilepass.ir.layouts import Bases, Linear, NvidiaMma, TensorType, parse_type
from tilepass.passes.triton.epilogue_warp_specialize.tile_shapes import LayoutError, fitted_mma

# A group of 4 lanes holds 8 columns of a row, 2 in each lane (PTX ISA, the accumulator of
# wgmma.m64nNk16): below that a cut would go through a lane's registers or between lanes.
_FEWEST_COLUMNS = 8


def column_parts(builder: Builder, accumulator: ir.Value, parts: int) -> list[ir.Value]:
    """`parts` (a power of two) equal blocks of columns, from left to right.

    Each has the layout that `fitted_mma` gives to its shape. Raises LayoutError.
    """
    type_ = parse_type(accumulator.type)
    assert isinstance(type_, TensorType)
    return _cut(builder, accumulator, _cuts(type_, parts))


def column_part(type_: TensorType, parts: int) -> TensorType:
    """The type of each of so many blocks of columns. Raises LayoutError where `column_parts`
    does."""
    cuts = _cuts(type_, parts)
    return cuts[-1].half if cuts else type_


@dataclass(frozen=True)
class _Cut:
    """The types on the way from an accumulator to one of its halves (see above)."""

    apart: TensorType
    turned: TensorType
    part: TensorType
    half: TensorType

    @classmethod
    def of(cls, type_: TensorType) -> _Cut:
        """Those of an accumulator's type. Raises LayoutError."""
        layout, (rows, columns) = type_.encoding, type_.shape
        if not isinstance(layout, NvidiaMma) or layout.warps_per_cta[1] != 1:
            raise LayoutError(f"the accumulator {type_} cannot be cut into columns")
        half = columns // 2
        if half < _FEWEST_COLUMNS:
            raise LayoutError(f"{columns} columns are too few to be cut in two")
        bases = _linear(layout, rows, columns)

        def pairs(of: Bases) -> Bases:
            return tuple((row, column // half, column % half) for row, column in of)

        def turned(of: Bases) -> Bases:
            return tuple((row, inner, outer) for row, outer, inner in pairs(of))

        def kept(of: Bases) -> Bases:
            return tuple((row, column) for row, column in of if column < half)

        def typed(shape: tuple[int, ...], change: Callable[[Bases], Bases]) -> TensorType:
            register, lane, warp = map(change, (bases.register, bases.lane, bases.warp))
            changed = replace(bases, register=register, lane=lane, warp=warp)
            return TensorType(shape, type_.element, changed)

        fitted = fitted_mma(layout, (rows, half), layout.warps_per_cta[0])
        return cls(
            typed((rows, 2, half), pairs),
            typed((rows, half, 2), turned),
            typed((rows, half), kept),
            TensorType((rows, half), type_.element, fitted),
        )


def _cuts(type_: TensorType, parts: int) -> list[_Cut]:
    cuts: list[_Cut] = []
    while 2 ** len(cuts) < parts:
        cuts.append(_Cut.of(cuts[-1].half if cuts else type_))
    return cuts


def _cut(builder: Builder, value: ir.Value, cuts: Sequence[_Cut]) -> list[ir.Value]:
    """The blocks that a value falls into by these cuts, one after the other."""
    if not cuts:
        return [value]
    first, *others = cuts
    apart = builder.create("tt.reshape", [value], [builder.type(first.apart)])
    order = {"order": "array<i32: 0, 2, 1>"}
    turn = builder.create("tt.trans", apart.results, [builder.type(first.turned)], order)
    split = builder.create("tt.split", turn.results, [builder.type(first.part)] * 2)
    half = builder.type(first.half)
    halves = [builder.convert_layout(plain(each), half) for each in split.results]
    return [part for each in halves for part in _cut(builder, each, others)]


def _linear(layout: NvidiaMma, rows: int, columns: int) -> Linear:
    """A wgmma accumulator's layout by basis vectors: 2 columns to a lane, 4 lanes and then 8 rows
    to a group, 16 rows to a warp (PTX ISA, the accumulator of wgmma.m64nNk16)."""
    instruction = layout.instr_shape[1]
    warps = layout.warps_per_cta[0]
    register = [(0, 1), (8, 0), *((0, n) for n in _powers(8, min(instruction, columns)))]
    # Beyond one instruction, columns come before rows.
    register += [(0, n) for n in _powers(instruction, columns)]
    register += [(m, 0) for m in _powers(16 * warps, rows)]
    lane = [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]
    warp = [(m, 0) for m in _powers(16, 16 * warps)]
    return Linear(register=tuple(register), lane=tuple(lane), warp=tuple(warp), block=())


def _powers(first: int, end: int) -> list[int]:
    """first, 2 first, 4 first, ... below end."""
    found: list[int] = []
    while first < end:
        found.append(first)
        first *= 2
    return found
