"""A lowered kernel as a tree of instructions: decoded once, interpreted many times.

The decoder is all that the abstract interpreter shares with the concrete one that tests it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tilepass.analysis.zero_structure.attributes import DETAILS, integer_attribute
from tilepass.analysis.zero_structure.sites import site_of
from tilepass.analysis.zero_structure.types import Type, parse_type, size_of
from tilepass.ir.engine import Module, Operation, ir, operations

# Operations whose location may name a site.
_LOCATED = frozenset(("nvvm.mma.sync", "llvm.inline_asm", "nvvm.wgmma.mma_async"))
KERNELS = ("cuda.kernel", "gpu.func")


@dataclass(eq=False, slots=True)
class Instruction:
    """One operation: values by number, types as views, the attributes it needs in `detail`."""

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    types: tuple[Type, ...]
    operand_types: tuple[Type, ...]
    detail: Any
    regions: tuple[Block, ...]
    operation: Operation
    site: int | None
    number: int
    parent: Instruction | None
    memo: dict[Any, Any] = field(default_factory=dict[Any, Any])


@dataclass(eq=False, slots=True)
class Block:
    """The one block of a region."""

    arguments: tuple[int, ...]
    types: tuple[Type, ...]
    body: tuple[Instruction, ...]


@dataclass(eq=False)
class Program:
    """A kernel: its body and, for each value number, the type and the defining instruction."""

    operation: Operation
    body: Block
    types: list[Type]
    definitions: dict[int, Instruction]
    instructions: list[Instruction]
    objects: dict[str, SharedObject]


@dataclass(frozen=True)
class SharedObject:
    """A variable in shared memory; bytes is None where the launch gives the size."""

    name: str
    alignment: int
    bytes: int | None


class UnsupportedControlFlow(Exception):
    """A region of several blocks: the message names the operation."""


def kernels_of(module: Module) -> list[Operation]:
    """The device kernels of a lowered module."""
    return [operation for operation in operations(module) if operation.name in KERNELS]


def decode(module: Module, kernel: Operation) -> Program:
    """The instructions of a kernel. Raises UnsupportedControlFlow."""
    with module.context, ir.Location.unknown(module.context):
        return _Decoder(shared_objects(module)).program(kernel)


def shared_objects(module: Module) -> dict[str, SharedObject]:
    """The variables in shared memory, by name."""
    found: dict[str, SharedObject] = {}
    for operation in operations(module):
        if operation.name != "llvm.mlir.global" or integer_attribute(operation, "addr_space") != 3:
            continue
        name = str(operation.attributes["sym_name"]).strip('"')
        kind = parse_type(str(operation.attributes["global_type"]))
        alignment = (
            integer_attribute(operation, "alignment") if "alignment" in operation.attributes else 1
        )
        found[name] = SharedObject(name, max(1, alignment), size_of(kind) or None)
    return found


class _Decoder:
    def __init__(self, objects: dict[str, SharedObject]) -> None:
        self._objects = objects
        self._numbers: dict[ir.Value, int] = {}
        self._types: list[Type] = []
        self._texts: dict[Any, Type] = {}
        self._definitions: dict[int, Instruction] = {}
        self._instructions: list[Instruction] = []

    def program(self, kernel: Operation) -> Program:
        body = self._block(kernel.regions[0], None, kernel.name)
        return Program(
            kernel, body, self._types, self._definitions, self._instructions, self._objects
        )

    def _value(self, value: ir.Value) -> int:
        number = self._numbers[value] = len(self._types)
        self._types.append(self._type(value.type))
        return number

    def _type(self, kind: ir.Type) -> Type:
        found = self._texts.get(kind)
        if found is None:
            found = self._texts[kind] = parse_type(str(kind))
        return found

    def _block(self, region: ir.Region, parent: Instruction | None, name: str) -> Block:
        blocks = list(region.blocks)
        if not blocks:
            return Block((), (), ())
        if len(blocks) > 1:
            raise UnsupportedControlFlow(f"a region of {name} has {len(blocks)} blocks")
        numbers = tuple(self._value(argument) for argument in blocks[0].arguments)
        body = tuple(self._instruction(view.operation, parent) for view in blocks[0].operations)
        return Block(numbers, tuple(self._types[number] for number in numbers), body)

    def _instruction(self, operation: Operation, parent: Instruction | None) -> Instruction:
        name = operation.name
        numbers = self._numbers
        operands = tuple(numbers[operand] for operand in operation.operands)
        results = tuple(self._value(result) for result in operation.results)
        detail = DETAILS[name](operation) if name in DETAILS else None
        instruction = Instruction(
            name,
            operands,
            results,
            tuple(self._types[number] for number in results),
            tuple(self._types[number] for number in operands),
            detail,
            (),
            operation,
            None,
            len(self._instructions),
            parent,
        )
        if name in _LOCATED:
            instruction.site = site_of(operation.location)
        self._instructions.append(instruction)
        for number in results:
            self._definitions[number] = instruction
        if len(operation.regions):
            instruction.regions = tuple(
                self._block(region, instruction, name) for region in operation.regions
            )
        return instruction


def walk(block: Block) -> Iterator[Instruction]:
    """All instructions of a block and of the regions inside it."""
    for instruction in block.body:
        yield instruction
        for region in instruction.regions:
            yield from walk(region)
