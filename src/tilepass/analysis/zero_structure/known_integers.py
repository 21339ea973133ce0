"""Integer arithmetic on values that are known: arrays in, arrays out, None where it is undefined.

Results need not fit the type: `Intervals.fit` wraps them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilepass.analysis.zero_structure.intervals import IntArray


def _unsigned(values: IntArray, width: int) -> IntArray:
    return values if width == 64 else values & ((1 << width) - 1)


def _shift_left(one: IntArray, other: IntArray, width: int) -> IntArray | None:
    if width == 64:
        small = (np.abs(one) < (1 << 31)) & (other >= 0) & (other < 31)
        return one << other if small.all() else None
    if ((other < 0) | (other >= width)).any():
        return None
    low = (one & ((1 << width) - 1)).astype(np.uint64) << other.astype(np.uint64)
    return (low & np.uint64((1 << width) - 1)).astype(np.int64)


def _shift_right(one: IntArray, other: IntArray, width: int) -> IntArray | None:
    if ((other < 0) | (other >= width)).any() or (width == 64 and (one < 0).any()):
        return None
    return _unsigned(one, width) >> other


def _shift_right_signed(one: IntArray, other: IntArray, width: int) -> IntArray | None:
    return None if ((other < 0) | (other >= width)).any() else one >> other


def _divide(one: IntArray, other: IntArray, width: int) -> IntArray | None:
    # The least number of 64 bits is its own magnitude in numpy.
    if (other == 0).any() or (np.minimum(one, other) < -(1 << 62)).any():
        return None
    return np.sign(one) * np.sign(other) * (np.abs(one) // np.abs(other))


def _remainder(one: IntArray, other: IntArray, width: int) -> IntArray | None:
    quotient = _divide(one, other, width)
    return None if quotient is None else one - quotient * other


def _floor(one: IntArray, other: IntArray, width: int) -> IntArray | None:
    return None if (other == 0).any() else one // other


def _ceiling(one: IntArray, other: IntArray, width: int) -> IntArray | None:
    return None if (other == 0).any() or (one < -(1 << 62)).any() else -((-one) // other)


def _divide_unsigned(one: IntArray, other: IntArray, width: int) -> IntArray | None:
    if (other == 0).any() or (width == 64 and ((one < 0) | (other < 0)).any()):
        return None
    return _unsigned(one, width) // _unsigned(other, width)


def _remainder_unsigned(one: IntArray, other: IntArray, width: int) -> IntArray | None:
    if (other == 0).any() or (width == 64 and ((one < 0) | (other < 0)).any()):
        return None
    return _unsigned(one, width) % _unsigned(other, width)


EXACT: dict[str, Callable[[IntArray, IntArray, int], IntArray | None]] = {
    "andi": lambda one, other, width: one & other,
    "ori": lambda one, other, width: one | other,
    "xori": lambda one, other, width: one ^ other,
    "shli": _shift_left,
    "shrui": _shift_right,
    "shrsi": _shift_right_signed,
    "divsi": _divide,
    "remsi": _remainder,
    "floordivsi": _floor,
    "ceildivsi": _ceiling,
    "divui": _divide_unsigned,
    "remui": _remainder_unsigned,
}
