"""Transfer functions of operations on numbers and vectors: no memory, no control flow."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import cast

import numpy as np

from tilepass.analysis.zero_structure import floats, integers
from tilepass.analysis.zero_structure.intervals import Interval
from tilepass.analysis.zero_structure.program import DYNAMIC_INDEX, Instruction
from tilepass.analysis.zero_structure.types import Scalar, Type, Vector
from tilepass.analysis.zero_structure.values import Domain, Number, Struct, Value
from tilepass.analysis.zero_structure.zero_bytes import ZeroBytes

Pure = Callable[[Domain, Instruction, tuple[Value, ...]], "Value | tuple[Value, ...]"]

_FLOAT_ZERO = re.compile(r"(?:dense<)?(-?)0\.0+(?:e[+-]?\d+)?>?(?: :.*)?", re.DOTALL)
_NUMBER = re.compile(r"(?:dense<)?(-?\d+|true|false)>?(?: :.*)?", re.DOTALL)
# MLIR writes Inf, NaN and what has no short decimal form in bits.
_HEXADECIMAL = re.compile(r"(?:dense<)?(0x[0-9A-Fa-f]+)")
# The exponent bits of a type: all of them set in Inf and NaN.
_EXPONENTS = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF << 52}
_FINITE = re.compile(r"(?:dense<)?-?\d+\.\d+(?:e[+-]?\d+)?>?(?: :.*)?", re.DOTALL)


def element_of(kind: Type) -> Scalar:
    """The scalar type of a number or of a vector's elements."""
    if isinstance(kind, Vector):
        return kind.element
    assert isinstance(kind, Scalar)
    return kind


def is_numeric(kind: Type) -> bool:
    """Whether values of the type are numbers or vectors of them."""
    return isinstance(kind, Scalar | Vector)


def elementwise(
    function: Callable[[Domain, Instruction, tuple[Number, ...]], Number],
) -> Pure:
    """A function of scalars, applied to vectors element by element."""

    def apply(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
        kind = instruction.types[0]
        if not all(map(is_numeric, (*instruction.operand_types, kind))):
            return domain.top(kind)
        if isinstance(kind, Scalar):
            return function(domain, instruction, cast("tuple[Number, ...]", values))
        assert isinstance(kind, Vector)
        columns = [value if isinstance(value, tuple) else None for value in values]
        rows = [
            tuple(
                cast("Number", values[place] if column is None else column[index])
                for place, column in enumerate(columns)
            )
            for index in range(kind.count)
        ]
        done: dict[tuple[Number, ...], Number] = {}
        for row in rows:
            if row not in done:
                done[row] = function(domain, instruction, row)
        return tuple(done[row] for row in rows)

    return apply


def constant(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    """arith.constant: an integer, a zero, or nothing known."""
    kind, text = instruction.types[0], instruction.detail
    if not is_numeric(kind):
        return domain.top(kind)
    element = element_of(kind)
    number = _constant(domain, element, text)
    return number if isinstance(kind, Scalar) else (number,) * cast("Vector", kind).count


def _constant(domain: Domain, element: Scalar, text: str) -> Number:
    if element.floating:
        match = _FLOAT_ZERO.fullmatch(text)
        if match is None:
            return domain.maps.nothing(element.size)
        zero = domain.maps.zero(element.size)
        return domain.maps.from_code(floats.negation(zero.code), element.size) if match[1] else zero
    match = _NUMBER.fullmatch(text)
    if match is None:
        return domain.top_number(element)
    value = {"true": 1, "false": 0}.get(match[1])
    value = int(match[1]) if value is None else value
    if element.width == 1:
        value &= 1
    return domain.intervals.constant(value)


def factor_of(instruction: Instruction | None) -> floats.Factor:
    """What is known of a value that is a constant, or an integer converted (which is finite: no
    integer overflows an f32)."""
    if instruction is None:
        return floats.Factor.ANY
    if instruction.name == "arith.constant":
        return _factor_of_constant(instruction)
    if instruction.name in ("arith.sitofp", "arith.uitofp"):
        wide = element_of(instruction.types[0]).width >= 32
        return floats.Factor.FINITE if wide else floats.Factor.ANY
    return floats.Factor.ANY


def _factor_of_constant(instruction: Instruction) -> floats.Factor:
    if _FINITE.fullmatch(instruction.detail):
        return floats.Factor.FINITE
    match = _HEXADECIMAL.match(instruction.detail)
    kind = instruction.types[0]
    if match is None or not is_numeric(kind):
        return floats.Factor.ANY
    exponent = _EXPONENTS.get(element_of(kind).text)
    if exponent is None:
        return floats.Factor.ANY
    unusual = int(match[1], 16) & exponent == exponent
    return floats.Factor.UNUSUAL if unusual else floats.Factor.FINITE


def _integer_binary(name: str) -> Pure:
    def apply(domain: Domain, instruction: Instruction, row: tuple[Number, ...]) -> Number:
        width = element_of(instruction.types[0]).width
        if isinstance(row[0], ZeroBytes) or isinstance(row[1], ZeroBytes):
            bits = _bitwise(domain, name, row, width)
            if bits is not None:
                return bits
        one = domain.as_interval(row[0], width)
        other = domain.as_interval(row[1], width)
        return integers.binary(domain.intervals, name, one, other, width)

    return elementwise(apply)


def _bitwise(domain: Domain, name: str, row: tuple[Number, ...], width: int) -> Number | None:
    """Bit operations on data: a byte of an and is zero where either is, of an or where both are."""
    size = max(1, width // 8)
    one, other = domain.as_map(row[0], size), domain.as_map(row[1], size)
    if name == "andi":
        zeros = (one.facts | other.facts) & np.uint8(10)
    elif name in ("ori", "xori"):
        zeros = one.facts & other.facts & np.uint8(10)
    else:
        return None
    return domain.maps.of((zeros | zeros >> 1).astype(np.uint8))


def _compare(domain: Domain, instruction: Instruction, row: tuple[Number, ...]) -> Number:
    width = element_of(instruction.operand_types[0]).width
    if width == 1 and instruction.detail > 1:
        return domain.intervals.top(1)
    one, other = domain.as_interval(row[0], width), domain.as_interval(row[1], width)
    return integers.compare(domain.intervals, instruction.detail, one, other)


def _convert(domain: Domain, instruction: Instruction, row: tuple[Number, ...]) -> Number:
    source = element_of(instruction.operand_types[0])
    target = element_of(instruction.types[0])
    value = row[0]
    if isinstance(value, ZeroBytes):
        if target.width < source.width and target.width >= 8:
            return domain.maps.part(value, 0, target.size)
        if instruction.name == "arith.extui" and source.width >= 8:
            zeros = domain.maps.zero(target.size - source.size)
            return domain.maps.together([value, zeros])
        value = domain.as_interval(value, source.width)
    name = instruction.name.partition(".")[2]
    return integers.convert(domain.intervals, name, value, source.width, target.width)


def _select(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    condition = values[0]
    if isinstance(condition, Interval):
        return domain.pick(condition, values[1], values[2])
    if not isinstance(condition, tuple):
        return domain.join(values[1], values[2])
    picked = elementwise(
        lambda domain, _, row: domain.pick_numbers(domain.as_interval(row[0], 1), row[1], row[2])
    )
    return cast("Value", picked(domain, instruction, values))


def _float_unary(name: str) -> Pure:
    function = floats.UNARY[name]

    def apply(domain: Domain, instruction: Instruction, row: tuple[Number, ...]) -> Number:
        source = element_of(instruction.operand_types[0])
        target = element_of(instruction.types[0])
        if not source.floating or not target.floating:
            return domain.top_number(target)
        code = function(domain.as_map(row[0], source.size).code)
        return domain.maps.from_code(code, target.size)

    return elementwise(apply)


def _float_binary(name: str) -> Pure:
    function = floats.BINARY[name]

    def apply(domain: Domain, instruction: Instruction, row: tuple[Number, ...]) -> Number:
        size = element_of(instruction.types[0]).size
        one, other = domain.as_map(row[0], size), domain.as_map(row[1], size)
        if not (one.any and other.any):
            return domain.maps.nothing(size)
        return domain.maps.from_code(function(one.code, other.code), size)

    return elementwise(apply)


def product(first: floats.Factor, second: floats.Factor) -> Pure:
    """arith.mulf, with what is known of its factors."""

    def apply(domain: Domain, instruction: Instruction, row: tuple[Number, ...]) -> Number:
        size = element_of(instruction.types[0]).size
        one, other = domain.as_map(row[0], size), domain.as_map(row[1], size)
        if not (one.any or other.any):
            return domain.maps.nothing(size)
        return domain.maps.from_code(floats.product(one.code, other.code, first, second), size)

    return elementwise(apply)


def _fma(domain: Domain, instruction: Instruction, row: tuple[Number, ...]) -> Number:
    size = element_of(instruction.types[0]).size
    codes = [domain.as_map(number, size).code for number in row]
    return domain.maps.from_code(floats.multiply_add(codes[0], codes[1], codes[2]), size)


def _to_float(domain: Domain, instruction: Instruction, row: tuple[Number, ...]) -> Number:
    source = element_of(instruction.operand_types[0])
    size = element_of(instruction.types[0]).size
    value = domain.maps.from_interval(domain.as_interval(row[0], source.width), 1)
    return domain.maps.from_code(value.facts[:, 0], size)


def _bitcast(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    """The same bytes as elements of another size."""
    source, target = instruction.operand_types[0], instruction.types[0]
    if not is_numeric(source) or not is_numeric(target):
        return values[0] if source == target else domain.top(target)
    before, after = element_of(source), element_of(target)
    if before.width < 8 or after.width < 8:
        return values[0] if before.width == after.width else domain.top(target)
    whole = values[0] if isinstance(values[0], tuple) else (values[0],)
    numbers = cast("tuple[Number, ...]", whole)
    if before.size == after.size and not (after.floating or before.floating):
        return numbers if isinstance(target, Vector) else numbers[0]
    maps = [domain.as_map(number, before.size) for number in numbers]
    if before.size < after.size:
        step = after.size // before.size
        parts = [domain.maps.together(maps[i : i + step]) for i in range(0, len(maps), step)]
    else:
        parts = [
            domain.maps.part(item, start, after.size)
            for item in maps
            for start in range(0, before.size, after.size)
        ]
    return tuple(parts) if isinstance(target, Vector) else parts[0]


def _struct_member(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    value: Value = values[0]
    for position in cast("tuple[int, ...]", instruction.detail):
        if not isinstance(value, Struct) or position >= len(value.members):
            return domain.top(instruction.types[0])
        value = value.members[position]
    return value


def _with_member(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    struct, member, position = values[0], values[1], instruction.detail
    if not isinstance(struct, Struct) or len(position) != 1:
        return domain.top(instruction.types[0])
    members = list(struct.members)
    members[position[0]] = member
    return Struct(tuple(members))


def _undefined(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    return domain.top(instruction.types[0])


def _null(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    kind = instruction.types[0]
    if isinstance(kind, Scalar):
        if kind.floating:
            return domain.maps.zero(kind.size)
        return domain.intervals.constant(0)
    if isinstance(kind, Vector):
        zero = domain.maps.zero(kind.element.size)
        number = zero if kind.element.floating else domain.intervals.constant(0)
        return (number,) * kind.count
    return domain.top(kind)


def _to_elements(
    domain: Domain, instruction: Instruction, values: tuple[Value, ...]
) -> tuple[Value, ...] | Value:
    vector = values[0]
    if not isinstance(vector, tuple):
        vector = tuple(domain.top(kind) for kind in instruction.types)
    return vector if len(instruction.types) != 1 else vector[0]


def _from_elements(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    return cast("tuple[Number, ...]", values)


def _broadcast(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    kind, value = instruction.types[0], values[0]
    if not isinstance(kind, Vector):
        return domain.top(kind)
    if isinstance(value, tuple):
        # A vector is repeated as a whole, or stretched if it has one element.
        if len(value) > 1 and _stretched(instruction):
            return domain.top(kind)
        return value * (kind.count // len(value))
    return (cast("Number", value),) * kind.count


def _stretched(instruction: Instruction) -> bool:
    """Whether a broadcast repeats elements, not whole vectors."""
    source, target = instruction.operand_types[0], instruction.types[0]
    assert isinstance(source, Vector)
    assert isinstance(target, Vector)
    return target.shape[len(target.shape) - len(source.shape) :] != source.shape


def _same(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    return values[0]


def _span(kind: Vector, position: tuple[int, ...]) -> tuple[int, int] | None:
    """First element and count of the part at a position of leading indices."""
    if len(position) > len(kind.shape) or any(index < 0 for index in position):
        return None
    start = 0
    for index, extent in zip(position, kind.shape, strict=False):
        if index >= extent:
            return None
        start = start * extent + index
    count = prod(kind.shape[len(position) :])
    return start * count, count


def _extract(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    source, target, vector = instruction.operand_types[0], instruction.types[0], values[0]
    if not isinstance(source, Vector) or not isinstance(vector, tuple):
        return domain.top(target)
    if DYNAMIC_INDEX in instruction.detail or len(values) > 1:
        return domain.top(target)
    span = _span(source, instruction.detail)
    if span is None:
        return domain.top(target)
    part = vector[span[0] : span[0] + span[1]]
    return part[0] if isinstance(target, Scalar) else part


def _insert(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    kind, value, vector = instruction.types[0], values[0], values[1]
    if not isinstance(kind, Vector) or not isinstance(vector, tuple) or len(values) > 2:
        return domain.top(kind)
    span = _span(kind, instruction.detail)
    part = value if isinstance(value, tuple) else (cast("Number", value),)
    if span is None or len(part) != span[1]:
        return domain.top(kind)
    return (*vector[: span[0]], *part, *vector[span[0] + span[1] :])


def _shuffle(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    kind, one, other = instruction.types[0], values[0], values[1]
    source = instruction.operand_types[0]
    if not isinstance(one, tuple) or not isinstance(other, tuple) or not isinstance(source, Vector):
        return domain.top(kind)
    if len(source.shape) != 1 or any(index < 0 for index in instruction.detail):
        return domain.top(kind)
    both = (*one, *other)
    return tuple(both[index] for index in cast("tuple[int, ...]", instruction.detail))


def _slice(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    kind, vector = instruction.types[0], values[0]
    source = instruction.operand_types[0]
    offsets, sizes, strides = instruction.detail
    if not isinstance(vector, tuple) or not isinstance(source, Vector) or len(source.shape) != 1:
        return domain.top(kind)
    stop = offsets[0] + sizes[0] * strides[0]
    return vector[offsets[0] : stop : strides[0]]


def _insert_slice(domain: Domain, instruction: Instruction, values: tuple[Value, ...]) -> Value:
    kind, part, vector = instruction.types[0], values[0], values[1]
    offsets, strides = instruction.detail
    if not isinstance(kind, Vector) or len(kind.shape) != 1 or tuple(strides) != (1,):
        return domain.top(kind)
    if not isinstance(part, tuple) or not isinstance(vector, tuple):
        return domain.top(kind)
    return (*vector[: offsets[0]], *part, *vector[offsets[0] + len(part) :])


PURE: dict[str, Pure] = {
    "arith.constant": constant,
    "llvm.mlir.constant": constant,
    "llvm.mlir.zero": _null,
    "llvm.mlir.undef": _undefined,
    "llvm.mlir.poison": _undefined,
    "ub.poison": _undefined,
    "arith.cmpi": elementwise(_compare),
    "arith.select": _select,
    "llvm.select": _select,
    "math.fma": elementwise(_fma),
    "llvm.intr.fma": elementwise(_fma),
    "vector.fma": elementwise(_fma),
    "arith.sitofp": elementwise(_to_float),
    "arith.uitofp": elementwise(_to_float),
    "arith.bitcast": _bitcast,
    "llvm.bitcast": _bitcast,
    "vector.bitcast": _bitcast,
    "llvm.extractvalue": _struct_member,
    "llvm.insertvalue": _with_member,
    **{
        f"arith.{name}": _integer_binary(name)
        for name in (
            *("addi", "subi", "muli", "andi", "ori", "xori", "shli", "shrui", "shrsi"),
            *("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi"),
            *("minsi", "maxsi", "minui", "maxui"),
        )
    },
    **{
        f"arith.{name}": elementwise(_convert)
        for name in ("extsi", "extui", "trunci", "index_cast", "index_castui")
    },
    **{name: _float_unary(name) for name in floats.UNARY},
    **{name: _float_binary(name) for name in floats.BINARY},
    "vector.to_elements": _to_elements,
    "vector.from_elements": _from_elements,
    "vector.broadcast": _broadcast,
    "vector.splat": _broadcast,
    "vector.shape_cast": _same,
    "vector.extract": _extract,
    "vector.insert": _insert,
    "vector.shuffle": _shuffle,
    "vector.extract_strided_slice": _slice,
    "vector.insert_strided_slice": _insert_slice,
}
