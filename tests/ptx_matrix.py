"""ldmatrix, stmatrix and mma.sync for whole warps, as the PTX ISA lays their fragments out.

Arrays are [warps, 32 lanes, ...]; registers hold two 16-bit elements, the lower one first.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
Halves = NDArray[np.uint16]

_LANE = np.arange(32)
_GROUP = _LANE // 4
"""A lane's row in an 8x8 matrix, and in the upper half of an accumulator."""
_PAIR = _LANE % 4 * 2
"""A lane's first column in an 8x8 matrix, and in an accumulator."""


def halves(words: Words) -> Halves:
    """[..., n] words as [..., 2n] elements."""
    return np.ascontiguousarray(words).view(np.uint16)


def matrix_elements(lane_rows: Halves, transpose: bool) -> Words:
    """What each lane gets of one 8x8 matrix [warps, 8, 8]: a register [warps, 32]."""
    matrix = lane_rows.swapaxes(1, 2) if transpose else lane_rows
    pairs = np.stack([matrix[:, _GROUP, _PAIR], matrix[:, _GROUP, _PAIR + 1]], axis=-1)
    return np.ascontiguousarray(pairs).view(np.uint32)[..., 0]


def matrix_rows(registers: Words, transpose: bool) -> Halves:
    """The inverse: one register of each lane [warps, 32] as an 8x8 matrix [warps, 8, 8]."""
    pairs = halves(registers[..., None])
    matrix = np.empty((registers.shape[0], 8, 8), np.uint16)
    matrix[:, _GROUP, _PAIR] = pairs[..., 0]
    matrix[:, _GROUP, _PAIR + 1] = pairs[..., 1]
    return matrix.swapaxes(1, 2) if transpose else matrix


def multiply(a: Words, b: Words, c: NDArray[np.float32], kind: str) -> NDArray[np.float32]:
    """mma.sync.m16n8k16.row.col: a [warps, 32, 4], b [warps, 32, 2], c [warps, 32, 4].

    Products and their sum are exact to fp64, rounded once. A GPU rounds differently inside, but as
    here a product of zeros changes nothing.
    """
    left = np.empty((a.shape[0], 16, 16))
    right = np.empty((a.shape[0], 16, 8))
    start = np.empty((a.shape[0], 16, 8))
    for register in range(4):
        low, high = _values(a[..., register], kind)
        row, column = _GROUP + register % 2 * 8, _PAIR + register // 2 * 8
        left[:, row, column], left[:, row, column + 1] = low, high
        start[:, _GROUP + register // 2 * 8, _PAIR + register % 2] = c[..., register]
    for register in range(2):
        low, high = _values(b[..., register], kind)
        row = _PAIR + register * 8
        right[:, row, _GROUP], right[:, row + 1, _GROUP] = low, high
    total = (start + left @ right).astype(np.float32)
    places = [(_GROUP + i // 2 * 8, _PAIR + i % 2) for i in range(4)]
    return np.stack([total[:, row, column] for row, column in places], axis=-1)


def _values(words: Words, kind: str) -> tuple[NDArray[Any], NDArray[Any]]:
    elements = halves(words[..., None])
    return tuple(to_float(elements[..., i], kind) for i in range(2))  # pyright: ignore[reportReturnType]


def to_float(elements: Halves, kind: str) -> NDArray[np.float32]:
    """16-bit elements of kind `bf16` or `f16` as fp32."""
    dtype: Any = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}[kind]
    return np.ascontiguousarray(elements).view(dtype).astype(np.float32)


def from_float(values: NDArray[np.float32], kind: str) -> Halves:
    """fp32 rounded to nearest even."""
    dtype: Any = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}[kind]
    with np.errstate(over="ignore"):
        return values.astype(dtype).view(np.uint16)
