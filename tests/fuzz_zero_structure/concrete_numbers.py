"""Concrete evaluation of arith, math, vector and constants: bits in, bits out."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tilepass.analysis.zero_structure.program import Instruction
from tilepass.analysis.zero_structure.types import Scalar, Type, Vector

Bits = NDArray[np.uint64]

LLVM = frozenset(("llvm.mlir.zero", "llvm.mlir.constant", "llvm.bitcast", "llvm.select"))
_FLOATS: dict[str, tuple[Any, Any]] = {
    "f16": (np.float16, np.uint16),
    "bf16": (ml_dtypes.bfloat16, np.uint16),
    "f32": (np.float32, np.uint32),
    "f64": (np.float64, np.uint64),
}
_NUMBER = re.compile(r"(?:dense<)?(true|false|-?[\d.]+(?:e[+-]?\d+)?|0x[0-9A-F]+)>?")


class NotInterpreted(Exception):
    """Something that the concrete interpreter does not know; the message says what."""


def element_of(kind: Type) -> Scalar:
    """The scalar type of a number or vector."""
    if isinstance(kind, Vector):
        return kind.element
    if isinstance(kind, Scalar):
        return kind
    raise NotInterpreted(f"a number of type {kind}")


def as_float(bits: Bits, kind: Scalar) -> NDArray[np.float64]:
    """The numbers that bits are."""
    number, carrier = _FLOATS[kind.text]
    with np.errstate(invalid="ignore"):
        # Signalling NaNs.
        return bits.astype(carrier).view(number).astype(np.float64)


def from_float(values: NDArray[Any], kind: Scalar) -> Bits:
    """The bits of numbers, rounded to a type."""
    number, carrier = _FLOATS[kind.text]
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(values.astype(number)).view(carrier).astype(np.uint64)


def as_signed(bits: Bits, width: int) -> NDArray[np.int64]:
    """Bits as signed integers."""
    if width == 64:
        return bits.astype(np.int64)
    low = (bits & np.uint64((1 << width) - 1)).astype(np.int64)
    return np.where(low >= 1 << (width - 1), low - (1 << width), low)


def cut(values: NDArray[Any], width: int) -> Bits:
    """Integers as bits of a width."""
    return values.astype(np.int64).astype(np.uint64) & np.uint64((1 << width) - 1)


def bits_of(value: float, kind: Scalar) -> int:
    """The bits of one number."""
    if kind.floating:
        return int(from_float(np.array([value]), kind)[0])
    return int(value) & ((1 << kind.width) - 1)


def evaluate(item: Instruction, values: list[Any], threads: int) -> list[Any]:
    """The results of an operation on numbers. Raises NotInterpreted."""
    name, kind = item.name, item.types[0]
    if name in ("arith.constant", "llvm.mlir.constant", "llvm.mlir.zero", "ub.poison"):
        count = kind.count if isinstance(kind, Vector) else 1
        bits = _constant(item.detail, element_of(kind)) if item.detail else 0
        return [np.full((threads, count), bits, np.uint64)]
    if name == "vector.to_elements":
        return [values[0][:, index : index + 1] for index in range(len(item.results))]
    if name == "vector.from_elements":
        return [np.concatenate(values, axis=1)]
    if name in ("vector.broadcast", "vector.splat"):
        assert isinstance(kind, Vector)
        return [np.tile(values[0], (1, kind.count // values[0].shape[1]))]
    if name == "vector.shape_cast":
        return [values[0]]
    if name in ("vector.bitcast", "llvm.bitcast", "arith.bitcast"):
        return [_recast(values[0], element_of(item.operand_types[0]), element_of(kind))]
    if name in ("arith.select", "llvm.select"):
        return [np.where((values[0] & np.uint64(1)) != 0, values[1], values[2])]
    source = element_of(item.operand_types[0])
    if name in ("arith.cmpi", "arith.cmpf"):
        return [_compare(item, values, source)]
    if source.floating:
        return [_on_floats(name, values, source, element_of(kind))]
    return [_on_integers(name, values, source, element_of(kind))]


def _constant(text: str, kind: Scalar) -> int:
    match = _NUMBER.match(text)
    if match is None:
        raise NotInterpreted(f"the constant {text}")
    if match[1] in ("true", "false"):
        return int(match[1] == "true")
    if match[1].startswith("0x"):
        return int(match[1], 16)
    return bits_of(float(match[1]) if kind.floating else int(match[1]), kind)


def _recast(bits: Bits, source: Scalar, target: Scalar) -> Bits:
    carriers = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
    packed = np.ascontiguousarray(bits.astype(carriers[source.size]))
    return packed.view(carriers[target.size]).astype(np.uint64)


_COMPARED: dict[int, Callable[[Any, Any], Any]] = {
    0: operator.eq,
    1: operator.ne,
    2: operator.lt,
    3: operator.le,
    4: operator.gt,
    5: operator.ge,
}
# arith.cmpf: 1 oeq, 2 ogt, 3 oge, 4 olt, 5 ole; 8 ueq, 9 ugt, 10 uge, 11 ult, 12 ule, 13 une.
_ORDERED = {1: operator.eq, 2: operator.gt, 3: operator.ge, 4: operator.lt, 5: operator.le}


def _compare(item: Instruction, values: list[Any], source: Scalar) -> Bits:
    if item.name == "arith.cmpi":
        predicate = item.detail
        if predicate > 5:
            return _COMPARED[predicate - 4](values[0], values[1]).astype(np.uint64)
        one, other = (as_signed(value, source.width) for value in values)
        return _COMPARED[predicate](one, other).astype(np.uint64)
    predicate = int(str(item.operation.attributes["predicate"]).split(" ")[0])
    one, other = (as_float(value, source) for value in values)
    if predicate == 13:
        return (one != other).astype(np.uint64)
    if predicate == 6:
        return ((one != other) & ~np.isnan(one) & ~np.isnan(other)).astype(np.uint64)
    if predicate in _ORDERED:
        return _ORDERED[predicate](one, other).astype(np.uint64)
    if predicate - 7 in _ORDERED:
        unordered = np.isnan(one) | np.isnan(other)
        return (_ORDERED[predicate - 7](one, other) | unordered).astype(np.uint64)
    raise NotInterpreted(f"arith.cmpf with predicate {predicate}")


_Unary = Callable[[Any], Any]
_Binary = Callable[[Any, Any], Any]

_ON_ONE_FLOAT: dict[str, _Unary] = {
    "arith.negf": np.negative,
    "arith.extf": lambda one: one,
    "arith.truncf": lambda one: one,
    "math.exp2": np.exp2,
    "math.exp": np.exp,
    "math.absf": np.abs,
}
_ON_TWO_FLOATS: dict[str, _Binary] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
}


def _on_floats(name: str, values: list[Any], source: Scalar, target: Scalar) -> Bits:
    numbers = [as_float(value, source) for value in values]
    with np.errstate(all="ignore"):
        if name in ("arith.fptosi", "arith.fptoui"):
            return cut(np.trunc(np.nan_to_num(numbers[0])), target.width)
        if name in _ON_ONE_FLOAT:
            return from_float(_ON_ONE_FLOAT[name](numbers[0]), target)
        if name in _ON_TWO_FLOATS:
            return from_float(_ON_TWO_FLOATS[name](numbers[0], numbers[1]), target)
        if name == "math.fma":
            return from_float(numbers[0] * numbers[1] + numbers[2], target)
        raise NotInterpreted(name)


def _truncated(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    safe = np.where(other == 0, 1, other)
    quotient = np.abs(one) // np.abs(safe)
    return np.where((one < 0) != (safe < 0), -quotient, quotient)


def _floored(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    return one // np.where(other == 0, 1, other)


_SIGNED: dict[str, _Binary] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "andi": lambda one, other: one & other,
    "ori": lambda one, other: one | other,
    "xori": lambda one, other: one ^ other,
    "divsi": _truncated,
    "remsi": lambda one, other: one - _truncated(one, other) * other,
    "floordivsi": _floored,
    "ceildivsi": lambda one, other: -_floored(-one, other),
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "shrsi": lambda one, other: one >> np.clip(other, 0, 63),
}
_UNSIGNED: dict[str, _Binary] = {
    "shli": lambda one, other: one << np.minimum(other, np.uint64(63)),
    "shrui": lambda one, other: one >> np.minimum(other, np.uint64(63)),
    "divui": lambda one, other: one // np.maximum(other, np.uint64(1)),
    "remui": lambda one, other: one % np.maximum(other, np.uint64(1)),
    "minui": np.minimum,
    "maxui": np.maximum,
}


def _on_integers(name: str, values: list[Any], source: Scalar, target: Scalar) -> Bits:
    short = name.partition(".")[2]
    if short in ("extui", "trunci", "index_castui"):
        return values[0] & np.uint64((1 << min(source.width, target.width)) - 1)
    if short in ("extsi", "index_cast"):
        return cut(as_signed(values[0], source.width), target.width)
    if short == "sitofp":
        return from_float(as_signed(values[0], source.width), target)
    if short == "uitofp":
        return from_float(values[0], target)
    if short in _UNSIGNED:
        return _UNSIGNED[short](*values) & np.uint64((1 << target.width) - 1)
    if short in _SIGNED:
        numbers = [as_signed(value, source.width) for value in values]
        return cut(_SIGNED[short](*numbers), target.width)
    raise NotInterpreted(name)
