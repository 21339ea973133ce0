"""What of a function decides how nvgpu-warp-specialization fares with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tilepass.ir.engine import Operation, ir
from tilepass.ir.layouts import (
    NvidiaMma,
    TensorDescType,
    TensorType,
    bytes_of,
    element_bits,
    parse_type,
    shape_of,
)
from tilepass.ir.loops import backward_slice, defining_operation, is_inside_operation
from tilepass.passes.triton.strip_assume import ASSUME, why_not_specialized

DOT = "ttng.warp_group_dot"
LOADS = ("tt.load", "tt.descriptor_load")
TURNS = ("tt.trans", "ttg.memdesc_trans")
MOVES = (*LOADS, *TURNS, "ttg.local_alloc", "ttg.convert_layout")
# How upstream chooses what to cut (WSDataPartition.cpp, computePartitionScheme).
CONSUMERS = 2
LEAST_ROWS, LEAST_COLUMNS = 64, 128

Cut = Literal["M", "N"]


@dataclass(frozen=True)
class CutAccess:
    """A TMA load or store whose block is cut in two, and its coordinate along the cut."""

    operation: Operation
    coordinate: ir.Value

    @property
    def unowned(self) -> bool:
        """Whether the coordinate is not a result of an operation, but a block's argument."""
        return defining_operation(self.coordinate) is None

    @property
    def by_host(self) -> bool:
        """Whether the descriptor is an argument of the function."""
        return defining_operation(self.operation.operands[0]) is None

    @property
    def stores(self) -> bool:
        """Whether it is a store."""
        return self.operation.name == "tt.descriptor_store"


@dataclass(frozen=True)
class MarkedFunction:
    """A function with loops that ask for warp specialization.

    `not_specialized` is why upstream's pass leaves it alone, empty if it does not; `assumption` one
    outside the marked loops; `unusual` what of the dots is more than has been tried, empty if
    nothing; `by_pointer` an operand's load that is none of TMA; `rearranged` an operand that goes
    from its load to the dot through registers, as text, empty if there is none; `cut` what each of
    two groups gets half of, None where both get all; `half_fits` whether the dot's instruction is
    no wider than half of the columns; `doubled` tensors that a cut coordinate is spread over, which
    so get its half's offset twice; `slot_bytes` what one pipeline stage of the dots' operands
    takes, `tile_bytes` the tiles that are loaded or stored by TMA beside them.
    """

    not_specialized: str
    assumption: Operation | None
    dot: Operation | None
    unusual: str
    by_pointer: Operation | None
    rearranged: str
    cut: Cut | None
    half_fits: bool
    accesses: tuple[CutAccess, ...]
    doubled: tuple[Operation, ...]
    slot_bytes: int
    tile_bytes: int


def marked_function(loops: list[Operation], inside: list[Operation]) -> MarkedFunction:
    """The facts; `loops` are those marked among the operations `inside` the function."""
    dots = [each for each in inside if each.name == DOT and _operand_loads(each)]
    dot = dots[0] if dots else None
    cut = None if dot is None else _cut_of(dot)
    accesses = tuple(_cut_accesses(dots, cut, inside))
    operands = [load for each in dots for load in _operand_loads(each)]
    tiles = [
        each.operands[1].type if each.name == "tt.descriptor_store" else each.results[0].type
        for each in inside
        if each.name in ("tt.descriptor_store", "tt.descriptor_load") and each not in operands
    ]
    return MarkedFunction(
        not_specialized=why_not_specialized(loops, inside),
        assumption=_assumption_outside(loops, inside),
        dot=dot,
        unusual=_unusual(dots),
        by_pointer=next((each for each in operands if each.name == "tt.load"), None),
        rearranged=next((text for dot in dots if (text := _rearranged(dot))), ""),
        cut=cut,
        half_fits=dot is not None and _half_fits(dot),
        accesses=accesses,
        doubled=tuple(_doubled(accesses, inside)),
        slot_bytes=sum(bytes_of(load.results[0].type) for load in operands),
        tile_bytes=sum(map(bytes_of, tiles)),
    )


def _cut_of(dot: Operation) -> Cut | None:
    rows, columns = shape_of(dot.results[0].type)
    if rows // CONSUMERS >= LEAST_ROWS:
        return "M"
    return "N" if columns // CONSUMERS >= LEAST_COLUMNS else None


def _half_fits(dot: Operation) -> bool:
    view = parse_type(dot.results[0].type)
    assert isinstance(view, TensorType)
    layout = view.encoding
    return isinstance(layout, NvidiaMma) and layout.instr_shape[1] <= view.shape[1] // CONSUMERS


def _rearranged(dot: Operation) -> str:
    """wgmma takes operands of other than 16 bits along K alone (PTX ISA, wgmma.mma_async: the
    transpositions): others are turned on their way from the load."""
    for operand, name in enumerate("AB"):
        for load in _operand_loads(dot, (operand,)):
            view = parse_type(load.results[0].type)
            assert isinstance(view, TensorType)
            if element_bits(view.element) != 16 and _outer_dimension(dot, operand) != 0:
                return f"operand {name} has elements of {view.element}"
    return ""


def _operand_loads(dot: Operation, operands: Sequence[int] = (0, 1)) -> list[Operation]:
    """The loads in the dot's loop that its operands A (0) and B (1) come from."""
    around = dot.parent
    if around is None or around.operation.name != "scf.for":
        return []
    values = [dot.operands[index] for index in operands]
    return [each for each in backward_slice(values, around.operation) if each.name in LOADS]


def _unusual(dots: list[Operation]) -> str:
    if len(dots) > 1:
        return f"it has {len(dots)} dots"
    for dot in dots:
        around = dot.parent
        assert around is not None
        for each in backward_slice(list(dot.operands)[:2], around.operation):
            tensors = [parse_type(result.type) for result in each.results]
            if each.name not in MOVES and any(isinstance(view, TensorType) for view in tensors):
                return f"an operand of the dot goes through {each.name}"
    return ""


def _cut_accesses(
    dots: list[Operation], cut: Cut | None, inside: list[Operation]
) -> Iterator[CutAccess]:
    """TMA accesses whose block upstream cuts: an operand's, and those of tiles of the result."""
    if cut is None:
        return
    of_dots: list[Operation] = []
    for dot in dots:
        of_dots += _operand_loads(dot)
        for load in _operand_loads(dot, (0,) if cut == "M" else (1,)):
            if load.name == "tt.descriptor_load":
                dimension = _outer_dimension(dot, 0 if cut == "M" else 1)
                yield CutAccess(load, load.operands[1 + dimension])
    for each in inside:
        first = {"tt.descriptor_load": 1, "tt.descriptor_store": 2}.get(each.name)
        if first is None or each in of_dots or len(_block_shape(each)) < 2:
            continue
        yield CutAccess(each, each.operands[first + (0 if cut == "M" else 1)])


def _outer_dimension(dot: Operation, operand: int) -> int:
    """Which dimension of its block in memory is M for A, N for B: turned or not."""
    around = dot.parent
    assert around is not None
    path = backward_slice([dot.operands[operand]], around.operation)
    turned = sum(each.name in TURNS for each in path) % 2
    return (turned + operand) % 2


def _doubled(accesses: Sequence[CutAccess], inside: list[Operation]) -> Iterator[Operation]:
    """Splats of a coordinate that a cut access has: upstream moves the coordinate to the half's
    start, and with it every tensor made of it, whose range of rows has the offset already."""
    for each in inside:
        if each.name == "tt.splat" and any(
            each.operands[0] == access.coordinate for access in accesses
        ):
            yield each


def _assumption_outside(loops: list[Operation], inside: list[Operation]) -> Operation | None:
    for each in inside:
        if each.name == ASSUME and not any(is_inside_operation(each, loop) for loop in loops):
            return each
    return None


def _block_shape(access: Operation) -> tuple[int, ...]:
    type_ = parse_type(access.operands[0].type)
    return type_.block.shape if isinstance(type_, TensorDescType) else ()
