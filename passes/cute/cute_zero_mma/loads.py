"""Loads into fragments that no remaining atom reads are left out.

One `cute.copy` fills a fragment by many executions of its copy atom: an `ldmatrix` of four 8 x 8
matrices brings two tiles of B. Those whose every element nobody reads are not executed.

A fragment is an allocation that is looked at through many tensors: retiled for the copy that fills
it, sliced for the gemm. Each is followed; whoever gets one and is not known to leave its elements
alone may read them all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tilepass.core.diagnostics import SourceLocation
from tilepass.ir.build import Builder
from tilepass.ir.cute import SEGMENTS, Layout, StaticTensor, build, joined, static_tensor, view_at
from tilepass.ir.engine import Operation, ir, location_of
from tilepass.ir.loops import defining_operation
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite
from tilepass.passes.cute.cute_zero_mma.zeros import ZeroTiles, remaining

# Operands of `cute.gemm`.
_A, _B = 2, 3


def drop_dead_loads(
    rewritten: Sequence[tuple[GemmSite, ZeroTiles]],
) -> Iterator[tuple[SourceLocation | None, str]]:
    """Leave out the loads of what only skipped atoms read, and say where and for which gemm.

    To be called before the gemms, each with its zero tiles, are replaced.
    """
    read = {
        (site.index, number): frozenset(_offsets_read(site, zeros, number))
        for site, zeros in rewritten
        for number, fragment in ((_A, site.a), (_B, site.b))
        if fragment.is_dense
    }
    sites = [site for site, _ in rewritten]

    def known(operation: Operation, number: int) -> frozenset[int] | None:
        index = next((site.index for site in sites if site.operation == operation), None)
        return None if index is None else read.get((index, number))

    for site, name, allocation in _allocations(sites):
        uses = uses_of(allocation, known)
        if uses.opaque:
            continue
        for operation, begin in uses.fills:
            fill = fill_of(operation)
            if fill is None:
                continue
            needed = fill.needed({offset - begin for offset in uses.read})
            count = len(fill.source.starts)
            if len(needed) < count:
                place, dead = location_of(operation), count - len(needed)
                _split(fill, needed)
                yield (
                    place,
                    f"{site}: {dead} of {count} loads of {name} left out: no atom reads them",
                )


def _allocations(sites: Sequence[GemmSite]) -> Iterator[tuple[GemmSite, str, Operation]]:
    """What allocates the operands of gemms, each once, with a gemm and the operand's name."""
    seen: list[Operation] = []
    for site in sites:
        for name, fragment in (("A", site.a), ("B", site.b)):
            allocation = allocation_of(fragment.value)
            if allocation is not None and allocation not in seen:
                seen.append(allocation)
                yield site, name, allocation


def _offsets_read(site: GemmSite, zeros: ZeroTiles, number: int) -> Iterator[int]:
    """What the remaining atoms read of operand A or B."""
    for m, n, k in remaining(zeros, site.grid):
        yield from site.a.offsets(m, k) if number == _A else site.b.offsets(n, k)


def _split(fill: Fill, needed: Sequence[int]) -> None:
    """Replace a copy by one copy for each execution that is needed."""
    builder = Builder.before(fill.operation)
    atom, *tensors = fill.operation.operands
    segments = fill.operation.attributes[SEGMENTS]
    sides = list(zip(tensors, (fill.source, fill.destination), strict=True))
    begins = [
        build(builder, "cute.get_iter", [value], side.tensor.pointer) for value, side in sides
    ]
    for index in needed:
        parts = [
            view_at(builder, begin, side.tensor, side.starts[index], side.one)
            for begin, (_, side) in zip(begins, sides, strict=True)
        ]
        builder.create("cute.copy", [atom, *parts], (), {SEGMENTS: segments})
    fill.operation.erase()


_LDMATRIX = re.compile(
    r"!cute_nvgpu\.atom\.ldsm<val_type = b?f16, mode = <\"\(8,8\)\">, sz_pattern = u16, "
    r"num_matrices = (\d), [nt]>"
)
_PLAIN_COPY = re.compile(r"!cute_nvgpu\.atom\.universal_copy<\w+, (\d+) b>")
# 16-bit elements in the row of a matrix that `ldmatrix` reads at a thread's address.
_ROW = 8
_REGISTER = 4
_UNIT = Layout(1, 0)


@dataclass(frozen=True)
class Executions:
    """A tensor as one side of a copy: what one execution of the atom takes of it, and at which
    offsets the executions begin, in elements."""

    tensor: StaticTensor
    values: Layout
    starts: tuple[int, ...]

    @property
    def one(self) -> Layout:
        """What one execution takes as a separate tensor: modes ((values, 1), (1))."""
        return joined((joined((self.values, _UNIT)), joined((_UNIT,))))

    def keep_alignment(self, needed: int) -> bool:
        """Whether executions begin at multiples of `needed` bytes, or of what the tensor is aligned
        to if that is less: its own copy must not need more than the whole has."""
        least = min(self.tensor.align, needed)
        return all(start * self.tensor.bits // 8 % least == 0 for start in self.starts)


@dataclass(frozen=True)
class Fill:
    """A copy into registers by `len(source.starts)` executions of its atom."""

    operation: Operation
    source: Executions
    destination: Executions

    def needed(self, read: set[int]) -> list[int]:
        """Which executions bring an element that is read; `read` are offsets from the destination,
        in elements."""
        values = self.destination.values.offsets()
        return [
            index
            for index, start in enumerate(self.destination.starts)
            if any(start + offset in read for offset in values)
        ]


def fill_of(operation: Operation) -> Fill | None:
    """The typed view of a `cute.copy` into registers.

    None for what cannot be taken apart: other atoms than `ldmatrix` and plain copies, predicated
    copies, layouts that are not static, and tensors that do not begin with what one execution
    takes.
    """
    operands = operation.operands
    if len(operands) != 3:
        return None
    source, destination = (static_tensor(str(tensor.type)) for tensor in operands[1:])
    if source is None or destination is None or source.element != destination.element:
        return None
    needs = _needs_of(str(operands[0].type), destination.bits)
    if needs is None:
        return None
    begin, end = (
        _executions(side, need.values)
        for side, need in zip((source, destination), needs, strict=True)
    )
    if begin is None or end is None or len(begin.starts) != len(end.starts):
        return None
    kept = begin.keep_alignment(needs[0].align) and end.keep_alignment(needs[1].align)
    return Fill(operation, begin, end) if kept else None


@dataclass(frozen=True)
class _Need:
    """What one execution takes of one side in each thread: elements, aligned to so many bytes."""

    values: int
    align: int


def _needs_of(atom: str, bits: int) -> tuple[_Need, _Need] | None:
    """What one execution of an atom takes of source and destination."""
    if match := _LDMATRIX.search(atom):
        return _Need(_ROW, _ROW * 2), _Need(2 * int(match[1]), _REGISTER)
    if match := _PLAIN_COPY.search(atom):
        size = int(match[1]) // 8
        return _Need(size * 8 // bits, size), _Need(size * 8 // bits, size)
    return None


def _executions(tensor: StaticTensor, size: int) -> Executions | None:
    """Taken apart as ((values, rest), rest ...); None if the values are not `size` elements."""
    first, *outer = tensor.layout.modes
    values, *inner = first.modes
    if values.size != size:
        return None
    rest = joined((*inner, *outer))
    return Executions(tensor, values, tuple(rest.offsets()))


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
    """How far behind its operand an operation's result lies, None if it is not a part of the
    tensor or at a place that is not known."""
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
