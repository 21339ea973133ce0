"""What the interpreters need of the attributes of lowered operations, read once."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilepass.analysis.zero_structure.sites import transfer_bytes_of
from tilepass.analysis.zero_structure.types import Type, parse_type
from tilepass.ir.engine import Operation, ir

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
