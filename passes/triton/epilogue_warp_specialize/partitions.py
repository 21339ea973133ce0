"""`ttg.warp_specialize`: its regions, and what they need from outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilepass.ir import engine
from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.effects import is_pure
from tilepass.ir.engine import Operation, ir, plain
from tilepass.ir.loops import defining_operation, is_inside
from tilepass.passes.triton.epilogue_warp_specialize.clones import Clones

# Up to Triton 3.6 captures are operands of warp_specialize, then of its region of partitions.
_CAPTURED_BY_PARTITIONS = (3, 7)

# Pure to the program, yet no region may repeat them: they write a descriptor to global memory.
_DESCRIPTORS = ("tt.make_tensor_descriptor", "ttng.reinterpret_tensor_descriptor")


@dataclass(frozen=True)
class Partition:
    """Warps beside the default ones: how many, the registers of each thread, what they run.

    `build` may use any value from outside the region.
    """

    num_warps: int
    registers: int
    build: Callable[[AsyncBuilder], None]


def warp_specialize(
    builder: AsyncBuilder,
    default: Callable[[AsyncBuilder], None],
    partitions: Sequence[Partition],
) -> Operation:
    """The operation, every region built.

    Regions of partitions see nothing from outside but captures. Pure computations are repeated in
    them; arguments of the function, buffers, barriers, descriptors and what was loaded is captured.
    """
    warps = ", ".join(str(each.num_warps) for each in partitions)
    registers = ", ".join(str(each.registers) for each in partitions)
    operation = builder.create(
        "ttg.warp_specialize",
        (),
        (),
        {
            "partitionNumWarps": f"array<i32: {warps}>",
            "requestedRegisters": f"array<i32: {registers}>",
        },
        regions=2,
    )
    own, around = (region.blocks.append() for region in operation.regions)
    inside = builder.inside(own)
    default(inside)
    inside.create("ttg.warp_yield")
    holder = builder.inside(around).create(
        "ttg.warp_specialize.partitions", regions=len(partitions)
    )
    for region, partition in zip(holder.regions, partitions, strict=True):
        inside = builder.inside(region.blocks.append())
        partition.build(inside)
        inside.create("ttg.warp_return")
    captures = _isolate([region.blocks[0] for region in holder.regions], holder, builder)
    by_partitions = builder.triton_version >= _CAPTURED_BY_PARTITIONS
    return _with_operands(holder if by_partitions else operation, captures, builder)


def _isolate(
    blocks: Sequence[ir.Block], holder: Operation, builder: AsyncBuilder
) -> list[ir.Value]:
    """Repeat or capture what the blocks use from outside; returns the captured values."""
    repeated = [Clones() for _ in blocks]
    captures: dict[ir.Value, None] = {}
    for block, clones in zip(blocks, repeated, strict=True):
        captures |= dict.fromkeys(_repeat(block, clones, holder, builder))
    for block, clones in zip(blocks, repeated, strict=True):
        for value in captures:
            clones[value] = block.add_argument(value.type, builder.location)
        for each in _operations_of(block):
            for index, operand in enumerate(each.operands):
                if not is_inside(operand, holder):
                    each.operands[index] = clones[operand]
    return list(captures)


def _repeat(
    block: ir.Block, clones: Clones, holder: Operation, builder: AsyncBuilder
) -> list[ir.Value]:
    """Copy pure computations from outside to the block's start; returns what is to be captured."""
    sources, captured = dict[Operation, None](), dict[ir.Value, None]()
    waiting = [operand for each in _operations_of(block) for operand in each.operands]
    while waiting:
        value = plain(waiting.pop())
        if is_inside(value, holder):
            continue
        source = defining_operation(value)
        if source is None or not is_repeatable(source):
            captured[value] = None
        elif source not in sources:
            sources[source] = None
            waiting.extend(source.operands)
    start = builder.begin(block)
    for source in _in_order(list(sources)):
        clones.copy(source, start)
    return _arguments_first(list(captured))


def is_repeatable(operation: Operation) -> bool:
    """Whether a region may compute what the operation computes for itself."""
    if operation.name in _DESCRIPTORS or operation.name.startswith("ttg.local_alloc"):
        return False
    return is_pure(operation) and not operation.regions and not _leaves_tensors(operation)


def _leaves_tensors(operation: Operation) -> bool:
    """Whether scalars come from tensors: warps of another number could not compute these."""
    results = any(ir.RankedTensorType.isinstance(each.type) for each in operation.results)
    return not results and any(
        ir.RankedTensorType.isinstance(each.type) for each in operation.operands
    )


def _in_order(sources: list[Operation]) -> list[Operation]:
    """Operations of one block in their order."""
    if not sources:
        return []
    wanted = set(sources)
    return [view.operation for view in sources[0].block if view.operation in wanted]


def _arguments_first(values: list[ir.Value]) -> list[ir.Value]:
    arguments = [each for each in values if defining_operation(each) is None]
    arguments.sort(key=lambda each: ir.BlockArgument(each).arg_number)
    results = {plain(each) for each in values if defining_operation(each) is not None}
    owners = _in_order([each for value in results if (each := defining_operation(value))])
    ordered = [plain(result) for owner in owners for result in owner.results]
    return arguments + [each for each in ordered if each in results]


def _operations_of(block: ir.Block) -> list[Operation]:
    return [each for view in block for each in engine.operations(view)]


def _with_operands(
    operation: Operation, captures: list[ir.Value], builder: AsyncBuilder
) -> Operation:
    """The operation made anew with these operands, its regions moved."""
    names = ("partitionNumWarps", "requestedRegisters")
    attributes = {
        name: operation.attributes[name] for name in names if name in operation.attributes
    }
    place = AsyncBuilder(ir.InsertionPoint(operation), builder.location, builder.triton_version)
    successor = place.create(
        operation.name, captures, (), attributes, regions=len(operation.regions)
    )
    for old, new in zip(operation.regions, successor.regions, strict=True):
        for block in list(old.blocks):
            block.append_to(new)
    operation.erase()
    return successor
