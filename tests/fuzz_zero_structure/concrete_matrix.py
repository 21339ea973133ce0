"""Concrete ldmatrix, stmatrix, shfl.sync and mma.sync, lane by lane (PTX ISA)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.fuzz_zero_structure.concrete_memory import Memory
from tests.fuzz_zero_structure.concrete_numbers import (
    Bits,
    NotInterpreted,
    as_float,
    from_float,
)
from tilepass.analysis.zero_structure.program import MatrixMove, MatrixProduct
from tilepass.analysis.zero_structure.types import Scalar

_TYPES = {
    "f16": Scalar("f16", 16, floating=True),
    "bf16": Scalar("bf16", 16, floating=True),
    "f32": Scalar("f32", 32, floating=True),
}
_HALF = np.uint64(0xFFFF)


def shuffle(kind: str, values: list[Bits]) -> Bits:
    """shfl.sync: (mask, value, lane or offset, clamp)."""
    result = values[1].copy()
    for thread in range(len(result)):
        lane, start = thread % 32, thread - thread % 32
        operand, clamp = int(values[2][thread, 0]) & 31, int(values[3][thread, 0])
        segment = (clamp >> 8) & 31
        last = (lane & segment) | (clamp & 31 & ~segment)
        if "up" in kind:
            source, valid = lane - operand, lane - operand >= last
        elif "down" in kind:
            source, valid = lane + operand, lane + operand <= last
        elif "bfly" in kind:
            source, valid = lane ^ operand, (lane ^ operand) <= last
        else:
            source = (lane & segment) | (operand & ~segment)
            valid = source <= last
        if valid:
            result[thread] = values[1][start + source]
    return result


def load_matrix(
    memory: Memory, move: MatrixMove, address: Bits, mask: NDArray[np.bool_]
) -> list[Bits]:
    """The registers of ldmatrix: a warp's matrices of 8 rows of 16 bytes."""
    threads = len(address)
    if not move.supported:
        raise NotInterpreted("ldmatrix of another shape")
    rows = memory.load(address[:, 0], 8, 2, mask)
    registers = [np.zeros((threads, 1), np.uint64) for _ in range(move.count)]
    for thread in range(threads):
        lane, start = thread % 32, thread - thread % 32
        for index, register in enumerate(registers):
            matrix = rows[start + 8 * index : start + 8 * index + 8]
            matrix = matrix.T if move.transposed else matrix
            low, high = matrix[lane // 4, 2 * (lane % 4) : 2 * (lane % 4) + 2]
            register[thread, 0] = low | high << np.uint64(16)
    return registers


def store_matrix(
    memory: Memory,
    move: MatrixMove,
    address: Bits,
    values: list[Bits],
    mask: NDArray[np.bool_],
) -> None:
    """stmatrix, the inverse of `load_matrix`."""
    threads = len(address)
    if not move.supported:
        raise NotInterpreted("stmatrix of another shape")
    rows = np.zeros((threads, 8), np.uint64)
    active = np.zeros(threads, bool)
    for start in range(0, threads, 32):
        for index, value in enumerate(values):
            matrix = np.zeros((8, 8), np.uint64)
            for lane in range(32):
                bits = value[start + lane, 0]
                matrix[lane // 4, 2 * (lane % 4)] = bits & _HALF
                matrix[lane // 4, 2 * (lane % 4) + 1] = bits >> np.uint64(16) & _HALF
            place = slice(start + 8 * index, start + 8 * index + 8)
            rows[place] = matrix.T if move.transposed else matrix
            active[place] = mask[start : start + 32].all()
    memory.store(address[:, 0], rows, 2, active)


def _halves(register: Bits) -> Bits:
    """A 32-bit register, or a vector of two halves, as two 16-bit elements."""
    if register.shape[1] == 2:
        return register
    return np.concatenate([register & _HALF, register >> np.uint64(16) & _HALF], axis=1)


def is_zero(detail: MatrixProduct, registers: list[Bits], mask: NDArray[np.bool_]) -> bool:
    """Whether all elements of a fragment are 0.0 or -0.0 in all threads of the mask."""
    elements = np.concatenate([_halves(register) for register in registers], axis=1)
    return bool(((elements[mask] & np.uint64(0x7FFF)) == 0).all())


def multiply(detail: MatrixProduct, a: list[Bits], b: list[Bits], c: list[Bits]) -> list[Any]:
    """D = A B + C of m16n8k8 and m16n8k16 with f32 accumulators, warp by warp."""
    m, n, k = detail.shape
    if (m, n) != (16, 8) or k not in (8, 16):
        raise NotInterpreted(f"mma.sync of shape {detail.shape}")
    kind = _TYPES[detail.a_type or "f16"]
    single = _TYPES["f32"]
    a_parts = [as_float(_halves(register), kind) for register in a]
    b_parts = [as_float(_halves(register), kind) for register in b]
    c_parts = [as_float(register, single)[:, 0] for register in c]
    results = [np.zeros(len(part)) for part in c_parts]
    for start in range(0, len(c_parts[0]), 32):
        left, right, total = np.zeros((m, k)), np.zeros((k, n)), np.zeros((m, n))
        for lane in range(32):
            group, quarter, thread = lane // 4, lane % 4, start + lane
            for index, part in enumerate(a_parts):
                row, column = group + 8 * (index % 2), 2 * quarter + 8 * (index // 2)
                left[row, column : column + 2] = part[thread]
            for index, part in enumerate(b_parts):
                row = 2 * quarter + 8 * index
                right[row : row + 2, group] = part[thread]
            for index, part in enumerate(c_parts):
                total[group + 8 * (index // 2), 2 * quarter + index % 2] = part[thread]
        with np.errstate(all="ignore"):
            total = left @ right + total
        for lane in range(32):
            group, quarter = lane // 4, lane % 4
            for index, result in enumerate(results):
                result[start + lane] = total[group + 8 * (index // 2), 2 * quarter + index % 2]
    return [from_float(result, single)[:, None] for result in results]
