"""`ttg.warp_specialize`: its regions, and what they need from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.effects import is_pure
from tilepass.ir.engine import Operation, ir

from .description import DESCRIPTOR_MAKERS
from .match import way_to

# Up to Triton 3.6 captures are operands of warp_specialize, then of its region of partitions.
_CAPTURED_BY_PARTITIONS = (3, 7)

_Users = Mapping[int, list[Operation]]
"""The operations at any depth that use a value, by the number of the block that they are in."""


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
    captures = _isolate([region.blocks[0] for region in holder.regions], operation, builder)
    by_partitions = builder.triton_version >= _CAPTURED_BY_PARTITIONS
    return _with_operands(holder if by_partitions else operation, captures, builder)


def _isolate(
    blocks: Sequence[ir.Block], around: Operation, builder: AsyncBuilder
) -> list[ir.Value]:
    """Repeat or capture what the blocks use from the kernel's blocks up to `around`; returns the
    captured values."""
    captures: list[tuple[ir.Value, _Users]] = []
    way = way_to(around.block)
    assert way is not None
    numbers: dict[ir.Block, int | None] = dict.fromkeys(around.block.region.blocks)
    numbers |= {block: number for number, block in enumerate(blocks)}
    before = [view.operation for block in way for view in block]
    # Backwards: a copy uses what stands before its source.
    for source in reversed(before[: before.index(around)]):
        for result in source.results:
            users = _users_by_block(result, numbers)
            if users and is_repeatable(source):
                _repeat(source, result, users, blocks, builder)
            elif users:
                captures.append((result, users))
    arguments = way[0].arguments
    used = [(each, users) for each in arguments if (users := _users_by_block(each, numbers))]
    captured = [*used, *reversed(captures)]
    for value, users in captured:
        for number, block in enumerate(blocks):
            argument = block.add_argument(value.type, builder.location)
            for user in users.get(number, []):
                user.replace_uses_of_with(value, argument)
    return [value for value, _ in captured]


def _repeat(
    source: Operation,
    result: ir.Value,
    users: _Users,
    blocks: Sequence[ir.Block],
    builder: AsyncBuilder,
) -> None:
    """Copy a computation to the start of each block that uses its result."""
    for number, inside in users.items():
        copy = source.clone(ip=builder.begin(blocks[number]).place).operation
        index = ir.OpResult(result).result_number
        for user in inside:
            user.replace_uses_of_with(result, copy.results[index])


def _users_by_block(value: ir.Value, numbers: dict[ir.Block, int | None]) -> _Users:
    found: dict[int, list[Operation]] = {}
    for use in list(value.uses):
        user = use.owner.operation
        number = _number_around(user.block, numbers)
        if number is not None:
            found.setdefault(number, []).append(user)
    return found


def _number_around(block: ir.Block, numbers: dict[ir.Block, int | None]) -> int | None:
    """The number of the nearest block around one that is in `numbers`, where it is kept."""
    if block not in numbers:
        numbers[block] = _number_around(block.owner.operation.block, numbers)
    return numbers[block]


def is_repeatable(operation: Operation) -> bool:
    """Whether a region may compute what the operation computes for itself."""
    if operation.name in DESCRIPTOR_MAKERS or operation.name.startswith("ttg.local_alloc"):
        return False
    return is_pure(operation) and not operation.regions and not _leaves_tensors(operation)


def _leaves_tensors(operation: Operation) -> bool:
    """Whether scalars come from tensors: warps of another number could not compute these."""
    results = any(isinstance(each.type, ir.RankedTensorType) for each in operation.results)
    return not results and any(
        isinstance(each.type, ir.RankedTensorType) for each in operation.operands
    )


def _with_operands(
    operation: Operation, captures: list[ir.Value], builder: AsyncBuilder
) -> Operation:
    """The operation made anew with these operands, its regions moved."""
    names = ("partitionNumWarps", "requestedRegisters")
    attributes = {
        name: operation.attributes[name] for name in names if name in operation.attributes
    }
    place = builder.at(ir.InsertionPoint(operation))
    successor = place.create(
        operation.name, captures, (), attributes, regions=len(operation.regions)
    )
    for old, new in zip(operation.regions, successor.regions, strict=True):
        for block in list(old.blocks):
            block.append_to(new)
    operation.erase()
    return successor
