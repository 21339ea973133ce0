"""Values that tell operations apart which agree on moderate ones.

Integers: the least and the greatest, -1, 0, 1, and any bits. Floats: zeros of both signs, numbers
next to zero, infinities, NaN, the largest, and those around the ranges of narrower types. On them
signed and unsigned comparisons, divisions and shifts differ, as do the ways to treat a NaN,
conversions with and without a clamp, and sums that wrap at 16 and at 32 bits.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tilepass.sim.elements import Element

_INFINITY, _NAN = float("inf"), float("nan")
# Where two arrays meet at one index, these meet often.
_MEETING = (0.0, -0.0, _NAN, 1.0, -_INFINITY, _INFINITY)
# Around the largest of f8E4M3FN (448), f8E5M2 (57344) and f16 (65504), the edges of integers, ties.
_EDGES = (
    448.0, 464.0, 480.0, 57344.0, 61440.0, 65504.0, 65520.0, 1e5, 1e30, 127.0, 128.0, 255.0, 256.0,
    32767.0, 32768.0, 2147483520.0, 2147483648.0, 4294967296.0, 0.5, 1.5, 2.5, 1e-7, 1e-20,
)  # fmt: skip
# What a sum survives.
_SUMMABLE = (0.0, -0.0, 1.0, -1.0, 2.5, 100.0, -300.0, 1e-7)
# Elements of which one is infinite, NaN or the largest where elements are summed: a quarter of the
# rows of a tile is lost at most.
_STRETCH = 256
_NUMBERS = (2.5, -3.0, 17.0, -0.0, 500.0, 7e4, -1e5, 0.3)

Generator = np.random.Generator


def special(
    moderate: NDArray[Any], element: Element, summed: bool, size: int, generator: Generator
) -> NDArray[Any]:
    """An array with values at the edges at half of the indices.

    `size` is that of a row: where rows are summed, most are spared.
    """
    if element.kind == "float":
        return _special_floats(moderate, element, summed, size, generator)
    if summed and element.size == 1:
        # Scales and packed numbers of four bits: extremes are infinities and NaN.
        return _rarely(moderate, np.array([0, -1, 127, -128], np.int8), size, generator)
    flat = np.ravel(wide(moderate, element, summed, generator))
    least = -(1 << (element.bits - 1))
    meeting = np.array([0, 1, -1, least, -(least + 1)], element.dtype)
    _put(flat, 0, meeting, generator)
    _put(flat, 1, np.array([2, -2, least + 1, 7, -(least >> 1)], element.dtype), generator)
    return flat.reshape(moderate.shape)


def wide(
    moderate: NDArray[Any], element: Element, summed: bool, generator: Generator
) -> NDArray[Any]:
    """An array with values of all magnitudes; of moderate ones if they are to be summed."""
    shape = moderate.shape
    if element.kind == "float":
        most = 3 if summed else 11
        scale = np.exp2(generator.integers(-most, most, shape).astype(np.float64))
        return _as(moderate.astype(np.float64) * scale * 2, element)
    if summed and element.size == 1:
        return moderate
    bits = generator.integers(0, 1 << 63, shape, dtype=np.uint64) * np.uint64(2)
    # Negative and positive numbers of all lengths.
    lengths = generator.integers(64 - element.bits, 63, shape).astype(np.uint64)
    return (bits.view(np.int64) >> lengths.view(np.int64)).astype(element.dtype)


def integer(element: Element, only_wide: bool, generator: Generator) -> int:
    """A number for an integer parameter that is not an index."""
    least = -(1 << (element.bits - 1))
    listed = (-3, 1000, -(least >> 2)) if only_wide else (least, -(least + 1), -1, least + 17)
    return element.scalar(int(generator.choice(np.array(listed, object))))


def real(element: Element, only_wide: bool, generator: Generator) -> float:
    """A number for a float parameter: no infinity or NaN, of which nothing else may be left."""
    if only_wide:
        return float(generator.uniform(1, 8) * generator.choice([-1, 1]))
    largest = float(_limits(element).max)
    return max(-largest, min(largest, float(generator.choice(_NUMBERS))))


def _special_floats(
    moderate: NDArray[Any], element: Element, summed: bool, size: int, generator: Generator
) -> NDArray[Any]:
    limits = _limits(element)
    largest, normal = float(limits.max), float(limits.smallest_normal)
    least = float(limits.smallest_subnormal)
    small = [normal, -normal, least, -least, normal / 2]
    flat = np.ravel(wide(moderate, element, summed, generator))
    if summed:
        _put(flat, 0, _as(np.array([*_SUMMABLE, *small]), element), generator)
        rare = _as(np.array([_NAN, _INFINITY, -_INFINITY, largest, -largest]), element)
        return _rarely(flat, rare, size, generator).reshape(moderate.shape)
    _put(flat, 0, _as(np.array(_MEETING), element), generator)
    edges = np.array([*small, largest, -largest, *_EDGES, *(-each for each in _EDGES)])
    _put(flat, 1, _as(edges, element), generator)
    return flat.reshape(moderate.shape)


def _limits(element: Element) -> Any:
    finfo: Any = ml_dtypes.finfo
    return finfo(element.dtype)


def _as(values: NDArray[np.float64], element: Element) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return values.astype(element.dtype)


def _put(flat: NDArray[Any], at: int, listed: NDArray[Any], generator: Generator) -> None:
    """Overwrite every fourth element from one on, each by any of the list."""
    part = flat[at::4]
    part[...] = listed[generator.integers(0, len(listed), part.shape)]


def _rarely(
    values: NDArray[Any], listed: NDArray[Any], size: int, generator: Generator
) -> NDArray[Any]:
    """Overwrite one element in each stretch of them; a stretch holds at least four rows."""
    flat = np.ravel(values).copy()
    stretch = max(_STRETCH, 4 * size)
    starts = np.arange(0, len(flat), stretch)
    at = starts + generator.integers(0, stretch, starts.shape)
    at = at[at < len(flat)]
    flat[at] = listed[generator.integers(0, len(listed), at.shape)]
    return flat.reshape(values.shape)
