"""A lowered kernel decoded: instructions, what interpreters need of their attributes, and sites.

Order does not tell which gemm of the traced module a lowered operation comes from: lowering may
move, unroll or drop operations. `tag_sites` wraps the location of every `cute.gemm` of a module in
the name `tilepass.site.<index>`, which lowering hands on to what it makes of the gemm, and writes
the operand types into an attribute of the module. A TMA load says in its type how many bits it
copies, and nothing lowered says it any more: its location gets the name `tilepass.copy.<bytes>`.

Tag the clone that is lowered for analysis, never the module that is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tilepass.analysis.zero_structure.types import Type, parse_type, size_of
from tilepass.ir.cute import StaticTensor, static_tensor
from tilepass.ir.engine import Module, Operation, ir, operations
from tilepass.ir.values import plain_values

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


@plain_values()
def decode(module: Module, kernel: Operation) -> Program:
    """The instructions of a kernel. Raises UnsupportedControlFlow."""
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


# The value that stands for "a run-time operand" among the constant indices of a GEP.
DYNAMIC_INDEX = -(1 << 31)


@dataclass(frozen=True)
class MatrixMove:
    """nvvm.ldmatrix or nvvm.stmatrix: `supported` means 8x8 matrices of 16-bit elements."""

    transposed: bool
    count: int
    supported: bool


@dataclass(frozen=True)
class MatrixProduct:
    """nvvm.mma.sync: operand registers of A, B and C; element width in bits, None if not known."""

    registers: tuple[int, int, int]
    shape: tuple[int, int, int]
    a_type: str | None
    b_type: str | None


@dataclass(frozen=True)
class Bulk:
    """A bulk copy into shared memory: bytes from the tag of its copy, operand groups."""

    segments: tuple[int, ...]
    bytes: int | None


def integer_attribute(operation: Operation, name: str) -> int:
    """An integer attribute."""
    return ir.IntegerAttr(operation.attributes[name]).value


def _numbers(operation: Operation, name: str) -> tuple[int, ...]:
    """A dense array attribute."""
    text = str(operation.attributes[name]).partition(":")[2]
    return tuple(int(part) for part in re.findall(r"-?\d+", text))


def _gep(operation: Operation) -> tuple[Type, tuple[int, ...]]:
    kind = parse_type(str(operation.attributes["elem_type"]))
    return kind, _numbers(operation, "rawConstantIndices")


def _ldmatrix(operation: Operation) -> MatrixMove:
    text = str(operation.attributes["shape"]) if "shape" in operation.attributes else "m8n8"
    layout = str(operation.attributes["layout"])
    return MatrixMove("col" in layout, integer_attribute(operation, "num"), "m8n8" in text)


def _stmatrix(operation: Operation) -> MatrixMove:
    text = str(operation.attributes["shape"]) if "shape" in operation.attributes else "m8n8"
    layout = str(operation.attributes["layout"])
    return MatrixMove("col" in layout, len(operation.operands) - 1, "m8n8" in text)


def _mma(operation: Operation) -> MatrixProduct:
    registers = _numbers(operation, "operandSegmentSizes")
    shape = tuple(int(part) for part in re.findall(r"\d+", str(operation.attributes["shape"])))

    def element(name: str) -> str | None:
        if name not in operation.attributes:
            return None
        match = re.search(r"mma_type<(\w+)>", str(operation.attributes[name]))
        return match[1] if match else None

    return MatrixProduct(
        (registers[0], registers[1], registers[2]),
        (shape[0], shape[1], shape[2]),
        element("multiplicandAPtxType"),
        element("multiplicandBPtxType"),
    )


def _constant(operation: Operation) -> str:
    return str(operation.attributes["value"])


def _text(name: str) -> Callable[[Operation], str]:
    return lambda operation: str(operation.attributes[name])


def _bulk(operation: Operation) -> Bulk:
    segments = ()
    if "operandSegmentSizes" in operation.attributes:
        segments = _numbers(operation, "operandSegmentSizes")
    return Bulk(segments, transfer_bytes_of(operation.location))


DETAILS: dict[str, Callable[[Operation], Any]] = {
    "arith.constant": _constant,
    "llvm.mlir.constant": _constant,
    "arith.cmpi": lambda operation: integer_attribute(operation, "predicate"),
    "llvm.alloca": lambda operation: parse_type(str(operation.attributes["elem_type"])),
    "llvm.getelementptr": _gep,
    "llvm.load": lambda operation: (
        integer_attribute(operation, "alignment") if "alignment" in operation.attributes else None
    ),
    "llvm.extractvalue": lambda operation: _numbers(operation, "position"),
    "llvm.insertvalue": lambda operation: _numbers(operation, "position"),
    "llvm.mlir.addressof": lambda operation: str(operation.attributes["global_name"]).strip('@"'),
    "llvm.inline_asm": lambda operation: str(operation.attributes["asm_string"]).strip('"'),
    "llvm.call": lambda operation: (
        str(operation.attributes["callee"]).strip('@"') if "callee" in operation.attributes else ""
    ),
    "nvvm.ldmatrix": _ldmatrix,
    "nvvm.stmatrix": _stmatrix,
    "nvvm.mma.sync": _mma,
    "nvvm.shfl.sync": _text("kind"),
    "nvvm.cp.async.shared.global": lambda operation: integer_attribute(operation, "size"),
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": _bulk,
    "nvvm.cp.async.bulk.shared.cluster.global": _bulk,
    "vector.extract": lambda operation: _numbers(operation, "static_position"),
    "vector.insert": lambda operation: _numbers(operation, "static_position"),
    "vector.shuffle": lambda operation: _numbers(operation, "mask"),
    "vector.extract_strided_slice": lambda operation: tuple(
        tuple(int(part) for part in re.findall(r"\d+", re.sub(r": i64", "", str(attribute))))
        for attribute in (
            operation.attributes["offsets"],
            operation.attributes["sizes"],
            operation.attributes["strides"],
        )
    ),
    "vector.insert_strided_slice": lambda operation: tuple(
        tuple(int(part) for part in re.findall(r"\d+", re.sub(r": i64", "", str(attribute))))
        for attribute in (operation.attributes["offsets"], operation.attributes["strides"])
    ),
}


GEMM = "cute.gemm"
COPY = "cute.copy"
ATTRIBUTE = "tilepass.sites"
_SITE = re.compile(r'"tilepass\.site\.(\d+)"')
_COPY = re.compile(r'"tilepass\.copy\.(\d+)"')
_COPY_BITS = re.compile(r"tma_load<.*?copy_bits = (\d+)", re.DOTALL)


@dataclass(frozen=True)
class GemmSite:
    """A gemm as traced: `d` is the accumulator, None where an operand is not a register tensor."""

    index: int
    atom: str
    d: StaticTensor | None
    a: StaticTensor | None
    b: StaticTensor | None


def gemms_of(module: Module) -> list[Operation]:
    """The gemms of a traced module in the order of their site indices."""
    return [operation for operation in operations(module) if operation.name == GEMM]


@plain_values()
def tag_sites(module: Module) -> int:
    """Tag a clone of a traced module, in place; the number of gemms."""
    with module.context:
        rows = list[ir.Attribute]()
        for operation in [each for each in operations(module) if each.name in (GEMM, COPY)]:
            types = [str(operand.type) for operand in operation.operands]
            if operation.name == GEMM:
                _rename(operation, f"tilepass.site.{len(rows)}")
                rows.append(ir.ArrayAttr.get([ir.StringAttr.get(text) for text in types]))
            elif match := _COPY_BITS.search(types[0]):
                _rename(operation, f"tilepass.copy.{-(-int(match[1]) // 8)}")
        module.operation.attributes[ATTRIBUTE] = ir.ArrayAttr.get(rows)
    return len(rows)


def _rename(operation: Operation, name: str) -> None:
    # The stubs of the bindings know no setter.
    operation.location = ir.Location.name(name, operation.location)  # pyright: ignore[reportAttributeAccessIssue]


def sites_of(module: Module) -> list[GemmSite]:
    """What `tag_sites` wrote into a module, read from its lowered form."""
    if ATTRIBUTE not in module.operation.attributes:
        return []
    rows = ir.ArrayAttr(module.operation.attributes[ATTRIBUTE])
    found = list[GemmSite]()
    for index, row in enumerate(rows):
        texts = [ir.StringAttr(text).value for text in ir.ArrayAttr(row)]
        fragments = [_fragment(text) for text in texts[1:4]]
        fragments += [None] * (3 - len(fragments))
        found.append(GemmSite(index, texts[0], fragments[0], fragments[1], fragments[2]))
    return found


def site_of(location: ir.Location) -> int | None:
    """The site that a location names; the last one where it names several."""
    found = _SITE.findall(str(location))
    return int(found[-1]) if found else None


def transfer_bytes_of(location: ir.Location) -> int | None:
    """The bytes of the TMA copy that a location names."""
    found = _COPY.findall(str(location))
    return max(int(size) for size in found) if found else None


def _fragment(text: str) -> StaticTensor | None:
    tensor = static_tensor(text)
    return tensor if tensor is not None and tensor.space == "rmem" else None
