"""Which elements of a register tensor are read, and by what it is filled.

A fragment is an allocation that is looked at through many tensors: retiled for the copy that fills
it, sliced for the gemm. Each is followed; whoever gets one and is not known to leave its elements
alone may read them all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tilepass.ir.cute import static_tensor
from tilepass.ir.engine import Operation, ir
from tilepass.ir.loops import defining_operation

_ALLOCATIONS = frozenset({"cute.mma.make_fragment", "cute.memref.alloca"})
_SLICE, _ADD_OFFSET = "cute.slice", "cute.add_offset"
_NUMBER = re.compile(r'!cute\.int_tuple<"(\d+)">')
# Operations whose result looks at the same place as an operand, or at a part of it, and the number
# of that operand. The types of tensors say which elements they cover.
_LOOKED_AT = {
    _ADD_OFFSET: 0,
    "cute.get_iter": 0,
    "cute.group_modes": 0,
    "cute.make_view": 0,
    _SLICE: 0,
    "cute.tiled.copy.retile": 1,
}
_LOOKS_AT_LAYOUT = frozenset({"cute.get_layout", "cute.get_shape", "cute.get_stride", "cute.size"})
_STORES = frozenset({"cute.memref.store", "cute.memref.store_vec"})
_COORDINATE = re.compile(r'!cute\.coord<"\(((?:\d+|_)(?:,(?:\d+|_))*)\)">')
_COPY = "cute.copy"
_SOURCE, _DESTINATION = 1, 2

Reads = Callable[[Operation, int], frozenset[int] | None]
"""Of an operation and the number of an operand: the offsets from the operand's begin that are read
through it, None if that is not known."""


@dataclass
class RegisterUses:
    """`read` are offsets in elements from the allocation; `fills` the copies into it, each with the
    offset at which its destination begins; `opaque` says that an operation may read everything."""

    read: set[int] = field(default_factory=set[int])
    fills: list[tuple[Operation, int]] = field(default_factory=list[tuple[Operation, int]])
    opaque: bool = False


@dataclass(frozen=True)
class _Use:
    """An operand that looks at an allocation, `begin` elements behind its begin."""

    value: ir.Value
    begin: int
    operation: Operation
    number: int


def allocation_of(value: ir.Value) -> Operation | None:
    """The operation that allocates what a tensor looks at, None where it cannot be followed."""
    while (operation := defining_operation(value)) is not None:
        if operation.name in _ALLOCATIONS:
            return operation
        number = _LOOKED_AT.get(operation.name)
        if number is None or _step(operation, number) is None:
            return None
        value = operation.operands[number]
    return None


def uses_of(allocation: Operation, known: Reads) -> RegisterUses:
    """Follow an allocation through all tensors that look at it.

    `known` says what operations read that are given a tensor and do not read all that it covers.
    """
    uses = RegisterUses()
    for use in _uses(allocation.results[0]):
        if use.operation.name == _COPY and use.number == _DESTINATION:
            uses.fills.append((use.operation, use.begin))
            continue
        is_source = use.operation.name == _COPY and use.number == _SOURCE
        read = _covered(use.value) if is_source else known(use.operation, use.number)
        if read is None:
            uses.opaque = True
        else:
            uses.read |= {use.begin + offset for offset in read}
    return uses


def _uses(value: ir.Value) -> Iterator[_Use]:
    """Every use of a tensor and of what lies at known places in it that may read or fill it."""
    pending = [(value, 0)]
    while pending:
        current, begin = pending.pop()
        for use in current.uses:
            operation, number = use.owner.operation, use.operand_number
            if operation.name in _LOOKS_AT_LAYOUT | _STORES:
                continue
            step = _step(operation, number)
            if step is None:
                yield _Use(current, begin, operation, number)
            else:
                pending.append((operation.results[0], begin + step))


def _step(operation: Operation, number: int) -> int | None:
    """How far behind its operand an operation's result lies, None if it is no part of the tensor or
    at a place that is not known."""
    if _LOOKED_AT.get(operation.name) != number:
        return None
    if operation.name not in (_SLICE, _ADD_OFFSET):
        return 0
    tensor, place = (str(each.type) for each in operation.operands)
    if operation.name == _ADD_OFFSET:
        constant = _NUMBER.fullmatch(place)
        return int(constant[1]) if constant else None
    whole, coordinate = static_tensor(tensor), _COORDINATE.fullmatch(place)
    if whole is None or coordinate is None:
        return None
    indices, modes = coordinate[1].split(","), whole.layout.modes
    if len(indices) != len(modes):
        return None
    chosen = zip(modes, indices, strict=True)
    return sum(mode.offset(int(index)) for mode, index in chosen if index != "_")


def _covered(value: ir.Value) -> frozenset[int] | None:
    tensor = static_tensor(str(value.type))
    return None if tensor is None else frozenset(tensor.layout.offsets())
