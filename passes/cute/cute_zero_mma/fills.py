"""The copies that fill register fragments, and the single executions of their copy atoms."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilepass.ir.cute import Layout, StaticTensor, joined, static_tensor
from tilepass.ir.engine import Operation

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
        """What one execution takes as a tensor of its own: modes ((values, 1), (1))."""
        return joined((joined((self.values, _UNIT)), joined((_UNIT,))))

    def keep_alignment(self, needed: int) -> bool:
        """Whether executions begin at multiples of `needed` bytes, or of what the tensor is aligned
        to if that is less: a copy of its own must not need more than the whole has."""
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
