"""Transfer functions of the vector dialect: elements change places, nothing is computed."""

from __future__ import annotations

from math import prod
from typing import cast

from tilepass.analysis.zero_structure.attributes import DYNAMIC_INDEX
from tilepass.analysis.zero_structure.ops_numbers import Pure
from tilepass.analysis.zero_structure.program import Instruction
from tilepass.analysis.zero_structure.types import Scalar, Vector
from tilepass.analysis.zero_structure.values import Domain, Number, Value


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
        if kind.count % len(value) or (len(value) > 1 and _stretched(instruction)):
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
