"""The integer domain of the zero-structure analysis: what either side allows, the result allows.

Intervals of 8 bits and less are compared with every value that they hold, wider ones with their
ends and what lies beside them. Each property also says how precise a result must be, so that "any
value" is not a right answer to a question that the domain can answer.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tilepass.analysis.zero_structure.integers import (
    EXACT,
    alignment_of,
    binary,
    compare,
    convert,
    negated,
    refine,
)
from tilepass.analysis.zero_structure.intervals import Interval, Intervals, limits_of

Ends = tuple[int, int]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

WIDTHS = (1, 8, 16, 32, 64)
TABLE = Intervals()


def ends(interval: Interval, threads: int) -> list[Ends]:
    """Its bounds, for each thread."""
    low, high = np.broadcast_to(interval.low, threads), np.broadcast_to(interval.high, threads)
    return [(int(a), int(b)) for a, b in zip(low, high, strict=True)]


def interval_of(bounds: list[Ends], base: str | None = None) -> Interval:
    low, high = (np.array(column, np.int64) for column in zip(*bounds, strict=True))
    return TABLE.of(low, high, base)


@st.composite
def bounds_of(draw: st.DrawFn, width: int) -> Ends:
    """Bounds of a type: a value, a few, up to an end of the type, or anything."""
    least, most = limits_of(width)
    special = [each for each in (least, -1, 0, 1, 2, 7, most - 1, most) if least <= each <= most]
    low = draw(st.sampled_from(special) | st.integers(least, most))
    reach = draw(st.sampled_from((0, 0, 1, 3)) | st.integers(0, most - low))
    return low, min(most, low + reach)


@st.composite
def pairs_of(draw: st.DrawFn, widths: tuple[int, ...]) -> tuple[int, list[Ends], list[Ends]]:
    """Two operands of one width: the same bounds in all threads, or others in each."""
    width = draw(st.sampled_from(widths))
    threads = draw(st.sampled_from((1, 1, 2, 3)))
    sides = [
        draw(st.lists(bounds_of(width), min_size=count, max_size=count))
        for count in (draw(st.sampled_from((1, threads))), threads)
    ]
    first, second = sides if draw(st.booleans()) else reversed(sides)
    return width, first, second


def values_in(bounds: Ends) -> list[int]:
    """All of a few values, else the ends of an interval and where signs and carries change."""
    low, high = bounds
    if high - low < 8:
        return list(range(low, high + 1))
    power = 1 << max(0, high.bit_length() - 1)
    inside = (-1, 0, 1, power - 1, power, (low + high) // 2)
    near = [low, low + 1, low + 2, high - 2, high - 1, high]
    return sorted({*near, *(each for each in inside if low <= each <= high)})


def signed(value: int, width: int) -> int:
    """The value of the lowest bits; of an i1 0 or 1."""
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


SIGNED: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "minsi": min,
    "maxsi": max,
    "divsi": _quotient,
    "remsi": lambda a, b: a - _quotient(a, b) * b,
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "shrsi": lambda a, b: a >> b,
}
UNSIGNED: dict[str, Callable[[int, int], int]] = {
    "shli": lambda a, b: a << b,
    "shrui": lambda a, b: a >> b,
    "divui": lambda a, b: a // b,
    "remui": lambda a, b: a % b,
    "minui": min,
    "maxui": max,
}
NAMES = (*SIGNED, *UNSIGNED)
DIVISIONS = ("divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui")
SHIFTS = ("shli", "shrui", "shrsi")


def result_of(name: str, a: int, b: int, width: int) -> int | None:
    """The value of `arith.<name>`, None where it is undefined or poison."""
    mask = (1 << width) - 1
    if name in DIVISIONS and b == 0:
        return None
    if name in SHIFTS and (b & mask) >= width:
        return None
    if name in UNSIGNED:
        return signed(UNSIGNED[name](a & mask, b & mask), width)
    if name == "shrsi":
        b &= mask
    if width == 1 and (name.endswith("si") or name == "shrsi"):
        # A signed i1 is 0 or -1.
        a, b = -a, b if name == "shrsi" else -b
    value = SIGNED[name](a, b)
    if name in DIVISIONS and not -(1 << (width - 1)) <= value < 1 << max(1, width - 1):
        return None
    return signed(value, width)


@functools.cache
def table_of(name: str) -> tuple[Numbers, Flags]:
    """All results of an operation on 8 bits from (-128, -128) on, and where it has one."""
    numbers, defined = np.zeros((256, 256), np.int64), np.zeros((256, 256), bool)
    for a, b in itertools.product(range(-128, 128), repeat=2):
        value = result_of(name, a, b, 8)
        defined[a + 128, b + 128] = value is not None
        numbers[a + 128, b + 128] = value or 0
    return numbers, defined


def part_of(whole: Numbers | Flags, one: Ends, other: Ends) -> NDArray[Any]:
    """What a table of 8 bits says of two intervals."""
    return whole[one[0] + 128 : one[1] + 129, other[0] + 128 : other[1] + 129]


# ---- the lattice ---------------------------------------------------------------------------------


@given(pairs_of((8,)))
def test_interval_is_known_by_its_bounds(case: tuple[int, list[Ends], list[Ends]]) -> None:
    for bounds in case[1:]:
        one = interval_of(bounds)
        assert ends(one, len(bounds)) == bounds
        assert one is interval_of(list(bounds))
        assert (one.least, one.most) == (min(a for a, _ in bounds), max(b for _, b in bounds))
        assert one.exact == all(low == high for low, high in bounds)
        assert one.known.tolist() == [a == b for a, b in (bounds[:1] if same(bounds) else bounds)]
        assert (one.low.shape == (1,)) == same(bounds)
        assert one.uniform == (one.exact and same(bounds))
        assert interval_of(bounds, "a@16") is not one
        assert interval_of(bounds, "a@16") is not interval_of(bounds, "b@16")
        # A set that is smaller by one value is another.
        for thread, (low, high) in enumerate(bounds):
            if low < high:
                smaller = [*bounds[:thread], (low + 1, high), *bounds[thread + 1 :]]
                assert interval_of(smaller) is not one


def same(bounds: list[Ends]) -> bool:
    """Whether all threads agree."""
    return all(each == bounds[0] for each in bounds)


@pytest.mark.parametrize("width", WIDTHS)
def test_any_value_of_a_type(width: int) -> None:
    least, most = limits_of(width)
    assert (least, most) == ((0, 1) if width == 1 else (-(2 ** (width - 1)), 2 ** (width - 1) - 1))
    top = TABLE.top(width)
    assert (ends(top, 1), top.base) == ([(least, most)], None)
    assert TABLE.between(least, most) is top
    assert TABLE.constant(1) is TABLE.between(1, 1) is TABLE.exact(np.array([1], np.int64))
    assert TABLE.constant(0) is not TABLE.constant(1)


@given(st.lists(st.tuples(st.integers(-700, 700), st.integers(0, 300)), min_size=1, max_size=3),
       st.sampled_from((None, 0, 1)), st.booleans())  # fmt: skip
def test_bounds_that_leave_the_type_are_any_value(
    raw: list[tuple[int, int]], distrusted: int | None, known: bool
) -> None:
    low = np.array([start for start, _ in raw], np.int64)
    high = low if known else np.array([start + reach for start, reach in raw], np.int64)
    outside = None if distrusted is None else np.arange(len(raw)) == distrusted
    found = ends(TABLE.fit(low, high, 8, outside), len(raw))
    for thread, (least, most) in enumerate(found):
        start, end = int(low[thread]), int(high[thread])
        held = {signed(value, 8) for value in range(start, end + 1)}
        assert min(held) >= least
        assert max(held) <= most
        if known or (start >= -128 and end <= 127 and thread != distrusted):
            assert (least, most) == (min(held), max(held))
        elif thread == distrusted:
            assert (least, most) == (-128, 127)


def test_known_value_of_64_bits_that_is_not_trusted_is_any_value() -> None:
    value = np.array([5], np.int64)
    assert TABLE.fit(value, value, 64, np.array([True])) is TABLE.top(64)
    assert TABLE.fit(value, value, 64, np.array([False])) is TABLE.constant(5)


@given(pairs_of((1, 8, 32, 64)))
def test_join_is_the_least_that_holds_both(case: tuple[int, list[Ends], list[Ends]]) -> None:
    width, first, second = case
    threads = max(len(first), len(second))
    for base in (None, "s@16"):
        one, other = interval_of(first, base), interval_of(second, base)
        both = TABLE.join(one, other, width)
        assert both.base == base
        pairs = zip(ends(one, threads), ends(other, threads), strict=True)
        assert ends(both, threads) == [(min(a, c), max(b, d)) for (a, b), (c, d) in pairs]
        assert TABLE.join(one, one) is one
    assert TABLE.join(interval_of(first, "s@16"), interval_of(second), width) is TABLE.top(width)
    other = interval_of(second, "t@16")
    assert TABLE.join(interval_of(first, "s@16"), other) is TABLE.top(64)


@given(pairs_of((1, 8, 32, 64)))
def test_widening_gives_up_the_bounds_that_moved(case: tuple[int, list[Ends], list[Ends]]) -> None:
    width, first, second = case
    least, most = limits_of(width)
    threads = max(len(first), len(second))
    old, new = interval_of(first), interval_of(second)
    widened = TABLE.widen(old, new, width)
    expected = [
        (least if low < before else low, most if high > after else high)
        for (before, after), (low, high) in zip(ends(old, threads), ends(new, threads), strict=True)
    ]
    assert ends(widened, threads) == expected
    for a, b in ((old, interval_of(second, "s@16")), (interval_of(first, "s@16"), new)):
        assert TABLE.widen(a, b, width) is TABLE.top(width)
    based = interval_of(first, "s@16"), interval_of(second, "s@16")
    assert TABLE.widen(*based, width) is TABLE.top(width)


@given(st.lists(bounds_of(8), min_size=6, max_size=6))
def test_widening_ends(chain: list[Ends]) -> None:
    """However what is joined goes on, it changes once for each bound."""
    current, changes = interval_of(chain[:1]), 0
    for bounds in chain[1:]:
        joined = TABLE.join(current, interval_of([bounds]))
        following = TABLE.widen(current, joined, 8)
        assert TABLE.join(following, joined) is following
        changes += following is not current
        current = following
    assert changes <= 2


CONDITIONS = ((0, 0), (1, 1), (0, 1))


@given(pairs_of((8,)), st.lists(st.sampled_from(CONDITIONS), min_size=3, max_size=3))
def test_pick_holds_what_the_condition_may_choose(
    case: tuple[int, list[Ends], list[Ends]], conditions: list[Ends]
) -> None:
    _, first, second = case
    threads = max(len(first), len(second))
    for count in {1, threads}:
        chosen = interval_of(conditions[:count])
        for base in (None, "s@16"):
            one, other = interval_of(first, base), interval_of(second, base)
            result = TABLE.pick(chosen, one, other, 8)
            assert result.base == base
            for truth, a, b, found in zip(
                ends(chosen, threads), ends(one, threads), ends(other, threads),
                ends(result, threads), strict=True,
            ):  # fmt: skip
                sides = [side for side, at in ((a, 1), (b, 0)) if truth[0] <= at <= truth[1]]
                assert found == (min(low for low, _ in sides), max(high for _, high in sides))
    away = TABLE.pick(TABLE.top(1), interval_of(first, "s@16"), interval_of(second), 8)
    assert away is TABLE.top(8)


@given(st.lists(bounds_of(8), min_size=7, max_size=7), st.integers(1, 63))
@settings(max_examples=20)
def test_values_of_other_threads(some: list[Ends], step: int) -> None:
    bounds = [some[(thread * thread + thread // 32) % 7] for thread in range(64)]
    source = np.arange(64) * step % 64
    for each in (bounds, [(low, low) for low, _ in bounds]):
        value = interval_of(each, "s@16")
        moved = TABLE.lanes(value, source)
        assert (moved.base, ends(moved, 64)) == ("s@16", [each[at] for at in source])
        warps = TABLE.over_warps(value)
        hull = [
            (min(low for low, _ in part), max(high for _, high in part))
            for part in (each[:32], each[32:])
        ]
        assert (warps.base, ends(warps, 64)) == ("s@16", [hull[0]] * 32 + [hull[1]] * 32)
    everywhere = interval_of(bounds[:1])
    assert TABLE.lanes(everywhere, source) is everywhere
    assert TABLE.over_warps(everywhere) is everywhere


# ---- arithmetic ----------------------------------------------------------------------------------


def hull(name: str, one: Ends, other: Ends, width: int) -> Ends | None:
    """The least and greatest result of two intervals, None where all are undefined."""
    if width == 8:
        numbers, defined = (part_of(each, one, other) for each in table_of(name))
        return (int(numbers[defined].min()), int(numbers[defined].max())) if defined.any() else None
    found = [
        value
        for a, b in itertools.product(values_in(one), values_in(other))
        if (value := result_of(name, a, b, width)) is not None
    ]
    return (min(found), max(found)) if found else None


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=30)
def test_arithmetic_holds_every_result(name: str, data: st.DataObject) -> None:
    width, first, second = data.draw(pairs_of((1, 8, 8, 8, 16, 32, 64)))
    one, other = interval_of(first), interval_of(second)
    threads = max(len(first), len(second))
    found = ends(binary(TABLE, name, one, other, width), threads)
    least, most = limits_of(width)
    for a, b, (low, high) in zip(ends(one, threads), ends(other, threads), found, strict=True):
        assert least <= low <= high <= most
        expected = hull(name, a, b, width)
        assert expected is None or (low <= expected[0] and expected[1] <= high), (a, b)


@pytest.mark.parametrize("name", NAMES)
def test_known_values_of_8_bits_are_computed(name: str) -> None:
    """All pairs: the result is exact, but for what is undefined."""
    values = np.arange(-128, 128, dtype=np.int64)
    one, other = (grid.ravel() for grid in np.meshgrid(values, values, indexing="ij"))
    wrapped, defined = (each.ravel() for each in table_of(name))
    found = binary(TABLE, name, TABLE.exact(one[defined]), TABLE.exact(other[defined]), 8)
    if name in ("minui", "maxui"):
        # Known by their bounds, of values of one sign.
        positive = defined & (one >= 0) & (other >= 0)
        found = binary(TABLE, name, TABLE.exact(one[positive]), TABLE.exact(other[positive]), 8)
        defined = positive
    assert np.array_equal(np.broadcast_to(found.low, defined.sum()), wrapped[defined])
    assert np.array_equal(np.broadcast_to(found.high, defined.sum()), wrapped[defined])


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("name", EXACT)
def test_known_values_are_computed_or_not_claimed(name: str, width: int) -> None:
    least, most = limits_of(width)
    some = (least, least + 1, -1000, -7, -2, -1, 0, 1, 2, 3, 7, 14, 15, 16, 31, 32, 62, 63, 64, 99)
    values = [value for value in (*some, most // 2, most - 1, most) if least <= value <= most]
    claimed = 0
    for a, b in itertools.product(values, values):
        exact = EXACT[name](np.array([a], np.int64), np.array([b], np.int64), width)
        expected = result_of(name, a, b, width)
        if exact is not None and expected is not None:
            claimed += 1
            assert signed(int(exact[0]), width) == expected, (a, b)
        elif exact is None:
            # Not said where it is not defined, and at the ends of 64 bits.
            at_an_end = min(a, b) < -(1 << 61) or max(a, b) >= 1 << 30 or name == "shli"
            negative = width == 64 and min(a, b) < 0 and "u" in name
            assert expected is None or negative or (width == 64 and at_an_end), (a, b)
    assert claimed > 150
    # One thread in which it is not defined is enough.
    for amount in (0,) if name in DIVISIONS else (width, -1) if name in SHIFTS else ():
        undefined = np.array([1, amount], np.int64)
        assert EXACT[name](np.array([4, 4], np.int64), undefined, width) is None


MONOTONE = ("addi", "subi", "muli", "minsi", "maxsi", "minui", "maxui", *SHIFTS, "divsi", "divui",
            "floordivsi")  # fmt: skip


@pytest.mark.parametrize("width", [8, 32, 64])
@pytest.mark.parametrize("name", MONOTONE)
@given(data=st.data())
@settings(max_examples=10)
def test_arithmetic_is_as_precise_as_intervals_are(
    name: str, width: int, data: st.DataObject
) -> None:
    """The least interval where nothing wraps and values are not negative; negative ones too where
    the sign does not matter, and known divisors and shifts."""
    free = name in ("addi", "subi", "muli", "minsi", "maxsi", "shli", "shrsi", "floordivsi")
    reach = 1 << min(width // 2 - 1, 30)
    small = st.integers(-reach + 1 if free else 0, reach - 1)
    sides = [sorted(data.draw(st.tuples(small, small))) for _ in range(2)]
    if name in SHIFTS or name in ("divsi", "divui", "floordivsi"):
        known = data.draw(st.integers(0 if name in SHIFTS else 1, width // 2 - 1))
        sides[1] = [known, known]
    (a, b), (c, d) = sides
    # All of these are monotone in either operand: corners tell the least and the greatest.
    corners = [result_of(name, x, y, width) for x in (a, b) for y in (c, d)]
    raw = [each for each in corners if each is not None]
    least, most = limits_of(width)
    if name == "shli":
        assume(all(least <= x << c <= most for x in (a, b)))
    found = binary(TABLE, name, TABLE.between(a, b), TABLE.between(c, d), width)
    assert ends(found, 1) == [(min(raw), max(raw))]


@given(st.tuples(st.integers(0, 100), st.integers(0, 27)), st.integers(1, 60))
def test_remainders_of_known_divisors(start: tuple[int, int], divisor: int) -> None:
    low, high = start[0], start[0] + start[1]
    for name, width in itertools.product(("remsi", "remui"), (8, 32)):
        for sign in (1, -1) if name == "remsi" else (1,):
            value = TABLE.between(*sorted((sign * low, sign * high)))
            found = ends(binary(TABLE, name, value, TABLE.constant(divisor), width), 1)[0]
            if sign < 0 and low:
                assert found == (1 - divisor, divisor - 1) if start[1] else found[0] == found[1]
            elif high < divisor or not start[1]:
                assert found == (low % divisor, high % divisor) if sign > 0 or not high else True
            elif sign > 0:
                assert found == (0, divisor - 1)


@given(bounds_of(8), bounds_of(8))
def test_bits_are_bounded_by_those_of_the_operands(first: Ends, second: Ends) -> None:
    one, other = interval_of([first]), interval_of([second])
    if one.exact and other.exact:
        return
    both = ends(binary(TABLE, "andi", one, other, 8), 1)[0]
    bounds = [high for low, high in (first, second) if low >= 0]
    assert both == ((0, min(bounds)) if bounds else (-128, 127))
    for name in ("ori", "xori"):
        either = ends(binary(TABLE, name, one, other, 8), 1)[0]
        positive = min(first[0], second[0]) >= 0
        largest = max(first[1], second[1])
        assert either == ((0, 2 ** largest.bit_length() - 1) if positive else (-128, 127))


def test_flags_are_combined() -> None:
    for first, second in itertools.product(CONDITIONS, CONDITIONS):
        one, other = interval_of([first]), interval_of([second])
        for name in ("andi", "ori"):
            assert ends(binary(TABLE, name, one, other, 1), 1) == [hull(name, first, second, 1)]


def test_one_thread_that_may_wrap_leaves_the_others() -> None:
    near = TABLE.of(np.array([3, 126], np.int64), np.array([4, 127], np.int64))
    found = binary(TABLE, "addi", near, TABLE.constant(1), 8)
    assert ends(found, 2) == [(4, 5), (-128, 127)]
    largest = TABLE.of(np.array([3, 1 << 61], np.int64), np.array([4, 1 << 62], np.int64))
    for name, addend in (("addi", 1 << 61), ("muli", 4), ("subi", -(1 << 61))):
        found = ends(binary(TABLE, name, largest, TABLE.constant(addend), 64), 2)
        assert found[1] == limits_of(64)
        assert found[0] == (SIGNED[name](3, addend), SIGNED[name](4, addend))


# ---- comparisons ---------------------------------------------------------------------------------

TRUTHS: tuple[Callable[[int, int], bool], ...] = (
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
)  # fmt: skip


def holds(predicate: int, a: int, b: int, width: int) -> bool:
    """Whether `arith.cmpi` of this predicate is true."""
    if predicate < 6:
        return TRUTHS[predicate](a, b)
    mask = (1 << width) - 1
    return TRUTHS[predicate - 4](a & mask, b & mask)


@functools.cache
def truths_of(predicate: int) -> Flags:
    """All comparisons of 8 bits."""
    truth = np.zeros((256, 256), bool)
    for a, b in itertools.product(range(-128, 128), repeat=2):
        truth[a + 128, b + 128] = holds(predicate, a, b, 8)
    return truth


@pytest.mark.parametrize("predicate", range(10))
@given(case=pairs_of((8, 8, 32, 64)))
@settings(max_examples=25)
def test_comparisons_are_decided_where_they_can_be(
    predicate: int, case: tuple[int, list[Ends], list[Ends]]
) -> None:
    width, first, second = case
    one, other = interval_of(first), interval_of(second)
    threads = max(len(first), len(second))
    found = ends(compare(TABLE, predicate, one, other), threads)
    for a, b, truth in zip(ends(one, threads), ends(other, threads), found, strict=True):
        if width == 8:
            seen = set(part_of(truths_of(predicate), a, b).ravel().tolist())
        else:
            pairs = itertools.product(values_in(a), values_in(b))
            seen = {holds(predicate, x, y, width) for x, y in pairs}
        assert truth[0] <= min(seen)
        assert truth[1] >= max(seen)
        if width == 8 and (predicate < 6 or min(a[0], b[0]) >= 0):
            assert truth == (min(seen), max(seen))


def operands_that_hold(
    predicate: int, one: Ends, other: Ends, width: int
) -> tuple[Ends, Ends] | None:
    """The least and the greatest operands of comparisons that are true, None if none is."""
    if width == 8:
        held = np.argwhere(part_of(truths_of(predicate), one, other)) + np.array((one[0], other[0]))
        pairs = [*map(tuple, (held.min(0), held.max(0)))] if len(held) else []
    else:
        every = itertools.product(values_in(one), values_in(other))
        pairs = [pair for pair in every if holds(predicate, *pair, width)]
    if not pairs:
        return None
    first, second = ([int(each) for each in side] for side in zip(*pairs, strict=True))
    return (min(first), max(first)), (min(second), max(second))


@pytest.mark.parametrize("predicate", range(10))
@given(case=pairs_of((8, 8, 8, 32, 64)))
@settings(max_examples=40)
def test_what_a_comparison_says_of_its_operands(
    predicate: int, case: tuple[int, list[Ends], list[Ends]]
) -> None:
    width, first, second = case
    one, other = interval_of(first), interval_of(second)
    threads = max(len(first), len(second))
    refined = refine(TABLE, predicate, one, other, width)
    signs = predicate < 6 or min(one.least, other.least) >= 0
    for a, b, x, y in zip(
        *(ends(each, threads) for each in (one, other, *refined)), strict=True
    ):  # fmt: skip
        held = operands_that_hold(predicate, a, b, width)
        if held is None:
            # It holds in no case: the bounds stay.
            assert predicate == 1 or width > 8 or (x, y) == (a, b)
            continue
        for kept, (least, most), whole in ((x, held[0], a), (y, held[1], b)):
            assert whole[0] <= kept[0] <= least
            assert most <= kept[1] <= whole[1]
            if width == 8 and signs:
                assert kept == (least, most)


def test_comparison_of_64_bits_far_from_their_ends() -> None:
    one, three = TABLE.between(-5, 9), TABLE.constant(3)
    for predicate, expected in ((2, (-5, 2)), (3, (-5, 3)), (4, (4, 9)), (5, (3, 9))):
        assert refine(TABLE, predicate, one, three, 64) == (TABLE.between(*expected), three)


def test_opposite_predicates() -> None:
    values = list(itertools.product((-2, -1, 0, 1), repeat=2))
    for predicate in range(10):
        for a, b in values:
            assert holds(negated(predicate), a, b, 8) != holds(predicate, a, b, 8)


def test_flags_are_not_compared_as_numbers() -> None:
    one, other = TABLE.constant(1), TABLE.top(1)
    assert refine(TABLE, 0, one, other, 1) == (one, other)


# ---- conversions ---------------------------------------------------------------------------------

CONVERSIONS = [
    (name, source, target)
    for name, source, target in itertools.product(
        ("extsi", "extui", "trunci", "index_cast", "index_castui"), WIDTHS, WIDTHS
    )
    if (source > target if name == "trunci" else source < target)
    or (name.startswith("index") and source > target > 1)
]


def converted(name: str, value: int, source: int, target: int) -> int:
    if name in ("extui", "index_castui") and source < target:
        value &= (1 << source) - 1
    elif source == 1:
        value = -value
    return signed(value, target)


@pytest.mark.parametrize(("name", "source", "target"), CONVERSIONS)
@given(data=st.data())
@settings(max_examples=8)
def test_conversions_hold_every_result(
    name: str, source: int, target: int, data: st.DataObject
) -> None:
    bounds = data.draw(st.lists(bounds_of(source), min_size=1, max_size=2))
    value = interval_of(bounds)
    for exactly in (False, True):
        if exactly:
            bounds = [(low, low) for low, _ in bounds]
            value = interval_of(bounds)
        found = ends(convert(TABLE, name, value, source, target), len(bounds))
        for (low, high), (least, most) in zip(bounds, found, strict=True):
            held = [converted(name, each, source, target) for each in values_in((low, high))]
            assert least <= min(held)
            assert max(held) <= most
            if exactly and (source < 64 or target < 64):
                assert (least, most) == (held[0], held[0])
            # Neither wraps nor changes sign.
            fits = limits_of(target)[0] <= low and high <= limits_of(target)[1]
            signless = source == 1 or name not in ("extui", "index_castui") or low >= 0
            if fits and signless and (source < target or target > 1):
                assert (least, most) == (min(held), max(held))


def test_conversion_to_the_same_type_is_none() -> None:
    value = TABLE.between(-3, 9)
    assert convert(TABLE, "index_cast", value, 64, 64) is value


# ---- addresses of shared objects -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["addi", "subi", "andi", "ori", "xori", "muli", "shrui"])
@given(data=st.data())
def test_address_arithmetic_holds_wherever_the_object_lies(name: str, data: st.DataObject) -> None:
    alignment = data.draw(st.sampled_from((1, 16, 1024)))
    base = f"smem@{alignment}"
    assert alignment_of(base) == alignment
    offsets = st.sampled_from((0, 1, 15, 16, 256, 1023, 1024)) | st.integers(0, 4096)
    low = data.draw(offsets)
    start = (low, low + data.draw(st.sampled_from((0, 0, 0, 40))))
    small = st.sampled_from((-1024, -1025, -16, -1, 0, 1, 15, 16, 896, 1023, 1024))
    number = data.draw(small | st.integers(-5000, 5000))
    both, swapped = data.draw(st.sampled_from((False, False, True))), data.draw(st.booleans())
    end = (number, number + data.draw(st.sampled_from((0, 0, 0, 3))))
    address, other = interval_of([start], base), interval_of([end], base if both else None)
    operands = (other, address) if swapped else (address, other)
    result = binary(TABLE, name, *operands, 64)
    assert result.base in (None, base)
    for place in (1 << 20, (1 << 20) + alignment, 3 * alignment << 12):
        for a, b in itertools.product(values_in(start), values_in(end)):
            first, second = place + a, b + (place if both else 0)
            if swapped:
                first, second = second, first
            value = result_of(name, first, second, 64)
            if value is not None:
                value -= place if result.base else 0
                assert result.least <= value <= result.most


def test_low_bits_of_an_address_are_those_of_its_offset() -> None:
    for start in (0, 1, 40):
        address = interval_of([(start, start)], "smem@64")
        for name, mask, base, expected in (
            ("andi", 63, None, start), ("andi", 0, None, 0), ("andi", -64, "smem@64", 0),
            ("andi", -1, "smem@64", start), ("ori", 63, "smem@64", 63),
            ("ori", 0, "smem@64", start), ("xori", 63, "smem@64", 63 - start),
            ("xori", 0, "smem@64", start),
        ):  # fmt: skip
            found = binary(TABLE, name, address, TABLE.constant(mask), 64)
            assert (found.base, ends(found, 1)) == (base, [(expected, expected)]), (name, mask)
        for name, mask in (("andi", 64), ("andi", -65), ("ori", 64), ("ori", -1), ("xori", 64)):
            assert binary(TABLE, name, address, TABLE.constant(mask), 64) is TABLE.top(64)
    below = interval_of([(-1, -1)], "smem@64")
    assert binary(TABLE, "andi", below, TABLE.constant(63), 64) is TABLE.top(64)


def test_address_arithmetic_keeps_what_it_can() -> None:
    address = TABLE.of(np.array([256], np.int64), np.array([264], np.int64), "smem@1024")
    moved = binary(TABLE, "addi", TABLE.constant(8), address, 64)
    assert (moved.base, ends(moved, 1)) == ("smem@1024", [(264, 272)])
    moved = binary(TABLE, "subi", address, TABLE.between(1, 2), 64)
    assert (moved.base, ends(moved, 1)) == ("smem@1024", [(254, 263)])
    apart = binary(TABLE, "subi", moved, address, 64)
    assert (apart.base, ends(apart, 1)) == (None, [(-10, 7)])
    assert binary(TABLE, "subi", TABLE.constant(8), address, 64) is TABLE.top(64)
    other = TABLE.of(np.array([0], np.int64), np.array([0], np.int64), "other@1024")
    assert binary(TABLE, "subi", address, other, 64) is TABLE.top(64)
    assert compare(TABLE, 2, address, other) is TABLE.top(1)
    assert compare(TABLE, 2, moved, binary(TABLE, "addi", address, TABLE.constant(50), 64)) is (
        TABLE.constant(1)
    )
    known = TABLE.exact(np.array([260], np.int64), "smem@1024")
    for name, number, base, value in (
        ("andi", 1023, None, 260),
        ("andi", -8, "smem@1024", 256),
        ("andi", -1024, "smem@1024", 0),
        ("xori", 1023, "smem@1024", 763),
        ("ori", 3, "smem@1024", 263),
        ("ori", 0, "smem@1024", 260),
    ):
        found = binary(TABLE, name, known, TABLE.constant(number), 64)
        assert (found.base, ends(found, 1)) == (base, [(value, value)])


def test_address_is_no_smaller_number() -> None:
    address = TABLE.exact(np.array([256], np.int64), "smem@1024")
    assert convert(TABLE, "trunci", address, 64, 32) is address
    assert convert(TABLE, "trunci", address, 64, 16) is TABLE.top(16)
    assert refine(TABLE, 0, address, TABLE.constant(0), 64)[0] is address
