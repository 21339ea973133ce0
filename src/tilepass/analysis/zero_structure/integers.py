"""Integer arithmetic on intervals, and on values that are known.

Everything is computed without wrapping and then fitted to the type (`Intervals.fit`); 64-bit
results are also estimated in floating point, because int64 arrays wrap silently.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilepass.analysis.zero_structure.intervals import (
    BoolArray,
    IntArray,
    Interval,
    Intervals,
    limits_of,
)

# A 64-bit bound above this is not trusted: the products and sums of two trusted ones fit float64's
# range with room for its rounding.
_TRUSTED = 2.0**62

_EQUAL, _NOT_EQUAL = 0, 1
# Operations that give the same bits for signed and unsigned numbers, or take unsigned ones.
_UNSIGNED = ("addi", "subi", "muli", "andi", "ori", "xori", "divui", "remui", "minui", "maxui")
# Predicates of arith.cmpi above this compare unsigned values.
_SIGNED = 5


def binary(table: Intervals, name: str, one: Interval, other: Interval, width: int) -> Interval:
    """The result of `arith.<name>` on `width`-bit integers."""
    if width == 1 and name not in _UNSIGNED:
        # As a signed number a true i1 is -1, as an interval 1.
        return table.top(1)
    if one.base is not None or other.base is not None:
        return _with_base(table, name, one, other, width)
    if one.exact and other.exact and name in EXACT:
        values = EXACT[name](one.low, other.low, width)
        return table.top(width) if values is None else table.fit(values, values, width)
    if name in _BOUNDED:
        return _BOUNDED[name](table, one, other, width)
    return table.top(width)


def compare(table: Intervals, predicate: int, one: Interval, other: Interval) -> Interval:
    """The i1 of `arith.cmpi`; the predicate numbers are MLIR's."""
    # Two addresses in one object compare as their offsets, for objects do not wrap around.
    if one.base != other.base:
        return table.top(1)
    below, above = one.high < other.low, one.low > other.high
    if predicate in (_EQUAL, _NOT_EQUAL):
        same = one.known & other.known & (one.low == other.low)
        true, false = same, below | above
        if predicate == _NOT_EQUAL:
            true, false = false, true
        return _truth(table, true, false)
    at_most, at_least = one.high <= other.low, one.low >= other.high
    kind = (predicate - 2) % 4
    true, false = (
        (below, at_least),
        (at_most, above),
        (above, at_most),
        (at_least, below),
    )[kind]
    if predicate > _SIGNED:
        # Non-negative values compare alike with and without sign.
        positive = (one.low >= 0) & (other.low >= 0)
        true, false = true & positive, false & positive
    return _truth(table, true, false)


def refine(
    table: Intervals, predicate: int, one: Interval, other: Interval, width: int
) -> tuple[Interval, Interval]:
    """Both operands of a comparison, given that it holds.

    Bounds that contradict each other belong to threads in which it does not; they stay as they are.
    """
    if one.base is not None or other.base is not None or width == 1:
        return one, other
    if predicate > _SIGNED:
        if one.least < 0 or other.least < 0:
            return one, other
        predicate -= 4
    first = (one.low, one.high)
    second = (other.low, other.high)
    if predicate == _EQUAL:
        low, high = np.maximum(first[0], second[0]), np.minimum(first[1], second[1])
        return _kept(table, one, low, high), _kept(table, other, low, high)
    if predicate == _NOT_EQUAL:
        return _without(table, one, other), _without(table, other, one)
    if predicate in (4, 5):
        swapped = refine(table, predicate - 2, other, one, width)
        return swapped[1], swapped[0]
    gap = 1 if predicate == 2 else 0
    # one < other (gap 1) or one <= other (gap 0). What wraps around at an end of int64 excludes
    # nothing.
    return (
        _kept(table, one, one.low, other.high - gap),
        _kept(table, other, one.low + gap, other.high),
    )


def negated(predicate: int) -> int:
    """The predicate that holds where this one does not."""
    if predicate in (_EQUAL, _NOT_EQUAL):
        return 1 - predicate
    return _OPPOSITE[predicate]


# slt-sge, sle-sgt, ult-uge, ule-ugt.
_OPPOSITE = {2: 5, 5: 2, 3: 4, 4: 3, 6: 9, 9: 6, 7: 8, 8: 7}


def convert(table: Intervals, name: str, value: Interval, source: int, target: int) -> Interval:
    """The result of `arith.extsi`, `extui`, `trunci`, `index_cast` or `index_castui`."""
    if value.base is not None:
        # An address of shared memory fits 32 bits.
        return value if target >= 32 else table.top(target)
    if source == target:
        return value
    if source > target:
        return _truncate(table, value, target)
    if source == 1 and name in ("extsi", "index_cast"):
        return table.of(-value.high, -value.low if not value.exact else -value.high)
    if name in ("extui", "index_castui") and value.least < 0:
        span = 1 << source
        if value.exact and source < 64:
            return table.exact(np.where(value.low < 0, value.low + span, value.low))
        negative = value.low < 0
        return table.of(np.where(negative, 0, value.low), np.where(negative, span - 1, value.high))
    return value


def _truncate(table: Intervals, value: Interval, width: int) -> Interval:
    least, most = limits_of(width)
    if value.least >= least and value.most <= most:
        return value
    if value.exact:
        wrapped = value.low & ((1 << width) - 1)
        return table.exact(np.where(wrapped > most, wrapped - (1 << width), wrapped))
    bad = (value.low < least) | (value.high > most)
    return table.of(np.where(bad, least, value.low), np.where(bad, most, value.high))


def _truth(table: Intervals, true: BoolArray, false: BoolArray) -> Interval:
    return table.of(true.astype(np.int64), (~false).astype(np.int64))


def _kept(table: Intervals, value: Interval, low: IntArray, high: IntArray) -> Interval:
    possible = low <= high
    return table.of(
        np.where(possible, np.maximum(low, value.low), value.low),
        np.where(possible, np.minimum(high, value.high), value.high),
    )


def _without(table: Intervals, value: Interval, excluded: Interval) -> Interval:
    """A value that differs from one that is known, where that one is an end of the interval."""
    wide = (value.low < value.high) & excluded.known
    low = np.where(wide & (value.low == excluded.low), value.low + wide, value.low)
    high = np.where(wide & (value.high == excluded.low), value.high - wide, value.high)
    return table.of(low, high)


# ---- bounds ------------------------------------------------------------------------------------


def _add(table: Intervals, one: Interval, other: Interval, width: int) -> Interval:
    low = one.low + other.low
    high = low if one.exact and other.exact else one.high + other.high
    return table.fit(low, high, width, _overflown_sum(one, other, width))


def _subtract(table: Intervals, one: Interval, other: Interval, width: int) -> Interval:
    low = one.low - other.high
    high = low if one.exact and other.exact else one.high - other.low
    return table.fit(low, high, width, _overflown_sum(one, other, width))


def _overflown_sum(one: Interval, other: Interval, width: int) -> BoolArray | None:
    if width < 64:
        return None
    largest = np.maximum(np.abs(one.low.astype(float)), np.abs(one.high.astype(float)))
    addend = np.maximum(np.abs(other.low.astype(float)), np.abs(other.high.astype(float)))
    return np.asarray(largest + addend >= _TRUSTED)


def _multiply(table: Intervals, one: Interval, other: Interval, width: int) -> Interval:
    outside = None
    if width == 64:
        largest = np.maximum(np.abs(one.low.astype(float)), np.abs(one.high.astype(float)))
        factor = np.maximum(np.abs(other.low.astype(float)), np.abs(other.high.astype(float)))
        outside = np.asarray(largest * factor >= _TRUSTED)
    if one.exact and other.exact:
        product = one.low * other.low
        return table.fit(product, product, width, outside)
    corners = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    low = np.minimum(np.minimum(corners[0], corners[1]), np.minimum(corners[2], corners[3]))
    high = np.maximum(np.maximum(corners[0], corners[1]), np.maximum(corners[2], corners[3]))
    return table.fit(low, high, width, outside)


def _and(table: Intervals, one: Interval, other: Interval, width: int) -> Interval:
    least, most = limits_of(width)
    shape = np.broadcast_shapes(one.low.shape, other.low.shape)
    low, high = np.full(shape, least, np.int64), np.full(shape, most, np.int64)
    # A non-negative operand bounds the result from both sides.
    for bound in (one, other):
        positive = np.broadcast_to(bound.low >= 0, shape)
        low = np.where(positive, 0, low)
        high = np.where(positive, np.minimum(high, bound.high), high)
    return table.of(low, high)


def _or(table: Intervals, one: Interval, other: Interval, width: int) -> Interval:
    if width == 1:
        return table.of(np.maximum(one.low, other.low), np.maximum(one.high, other.high))
    return _below_power_of_two(table, one, other, width)


def _below_power_of_two(table: Intervals, one: Interval, other: Interval, width: int) -> Interval:
    """Or and exclusive or of non-negative values stay below the next power of two."""
    if width == 1 or one.least < 0 or other.least < 0:
        return table.top(width)
    return table.between(0, (1 << max(one.most, other.most).bit_length()) - 1)


def _monotone(
    function: Callable[[IntArray, IntArray], IntArray], shift: bool, signed: bool
) -> Callable[[Intervals, Interval, Interval, int], Interval]:
    def apply(table: Intervals, one: Interval, other: Interval, width: int) -> Interval:
        usable = other.exact and other.least >= (0 if shift else 1)
        if not usable or (shift and other.most >= width) or (not signed and one.least < 0):
            return table.top(width)
        return table.of(function(one.low, other.low), function(one.high, other.low))

    return apply


def _shifted(table: Intervals, one: Interval, other: Interval, width: int) -> Interval:
    if not other.exact or other.least < 0 or other.most > 30 or other.most >= width:
        return table.top(width)
    return _multiply(table, one, table.exact(np.left_shift(1, other.low)), width)


def _modulo(table: Intervals, one: Interval, other: Interval, width: int) -> Interval:
    if not other.exact or other.least < 1:
        return table.top(width)
    # A value below the modulus stays as it is.
    small = (one.low >= 0) & (one.high < other.low)
    low = np.where(small, one.low, np.where(one.low >= 0, 0, 1 - other.low))
    return table.of(low, np.where(small, one.high, other.low - 1))


def _modulo_unsigned(table: Intervals, one: Interval, other: Interval, width: int) -> Interval:
    if not other.exact or other.least < 1:
        return table.top(width)
    small = (one.low >= 0) & (one.high < other.low)
    return table.of(np.where(small, one.low, 0), np.where(small, one.high, other.low - 1))


def _minimum(table: Intervals, one: Interval, other: Interval, width: int) -> Interval:
    return table.of(np.minimum(one.low, other.low), np.minimum(one.high, other.high))


def _maximum(table: Intervals, one: Interval, other: Interval, width: int) -> Interval:
    return table.of(np.maximum(one.low, other.low), np.maximum(one.high, other.high))


def _if_positive(
    function: Callable[[Intervals, Interval, Interval, int], Interval],
) -> Callable[[Intervals, Interval, Interval, int], Interval]:
    def apply(table: Intervals, one: Interval, other: Interval, width: int) -> Interval:
        if one.least < 0 or other.least < 0:
            return table.top(width)
        return function(table, one, other, width)

    return apply


def _quotient(one: IntArray, other: IntArray) -> IntArray:
    return np.sign(one) * (np.abs(one) // other)


_BOUNDED: dict[str, Callable[[Intervals, Interval, Interval, int], Interval]] = {
    "addi": _add,
    "subi": _subtract,
    "muli": _multiply,
    "andi": _and,
    "ori": _or,
    "xori": _below_power_of_two,
    "shli": _shifted,
    "shrui": _monotone(np.right_shift, shift=True, signed=False),
    "shrsi": _monotone(np.right_shift, shift=True, signed=True),
    "divui": _monotone(np.floor_divide, shift=False, signed=False),
    "divsi": _monotone(_quotient, shift=False, signed=True),
    "floordivsi": _monotone(np.floor_divide, shift=False, signed=True),
    "remsi": _modulo,
    "remui": _modulo_unsigned,
    "minsi": _minimum,
    "maxsi": _maximum,
    "minui": _if_positive(_minimum),
    "maxui": _if_positive(_maximum),
}


# ---- addresses of shared objects ---------------------------------------------------------------


def _with_base(table: Intervals, name: str, one: Interval, other: Interval, width: int) -> Interval:
    """Arithmetic on address + offset that does not depend on the address."""
    if name == "subi" and one.base == other.base:
        return _subtract(table, _offset(table, one), _offset(table, other), width)
    if name == "addi" and other.base is not None and one.base is None:
        one, other = other, one
    if other.base is not None or one.base is None:
        return table.top(width)
    if name in ("addi", "subi"):
        moved = (_add if name == "addi" else _subtract)(table, _offset(table, one), other, width)
        return table.of(moved.low, moved.high, one.base)
    return _low_bits(table, name, one, other, width)


def _low_bits(table: Intervals, name: str, one: Interval, other: Interval, width: int) -> Interval:
    alignment = alignment_of(one.base)
    if not one.exact or not other.exact or one.least < 0:
        return table.top(width)
    if name == "andi" and other.least >= 0 and other.most < alignment:
        return table.exact(one.low & other.low)
    if name == "andi" and -alignment <= other.least and other.most < 0:
        return table.exact(one.low & other.low, one.base)
    if name in ("xori", "ori") and other.least >= 0 and other.most < alignment:
        return table.exact(one.low ^ other.low if name == "xori" else one.low | other.low, one.base)
    return table.top(width)


def alignment_of(base: str | None) -> int:
    """The alignment in bytes that ends the name of a shared object's base."""
    return 1 if base is None else int(base.rpartition("@")[2])


def _offset(table: Intervals, value: Interval) -> Interval:
    return table.of(value.low, value.high)


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
