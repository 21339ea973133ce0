"""What the zero-structure analysis knows of data: bytes that are zero, in registers and memory.

Facts about bytes are compared with byte strings that they allow, in either of the two worlds that
a map speaks of (0 * x is 0, or not); registers and shared memory with a memory that holds bytes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilepass.analysis.zero_structure import floats, private
from tilepass.analysis.zero_structure.floats import Factor
from tilepass.analysis.zero_structure.intervals import Interval
from tilepass.analysis.zero_structure.private import PrivateObject, Registers
from tilepass.analysis.zero_structure.program import SharedObject
from tilepass.analysis.zero_structure.shared import NOBODY, UNCOVERED, SharedMemory
from tilepass.analysis.zero_structure.types import Address, Fields, Opaque, Scalar, Vector
from tilepass.analysis.zero_structure.values import (
    ANY_SHARED,
    ANYWHERE,
    OUTSIDE,
    UNKNOWN,
    Domain,
    Number,
    Pointer,
    Region,
    Struct,
    Value,
    shared_base,
)
from tilepass.analysis.zero_structure.zero_bytes import (
    ALL,
    FREE_SIGN,
    FREE_ZERO,
    STRICT_SIGN,
    STRICT_ZERO,
    ZeroBytes,
)

THREADS = 64
DOMAIN = Domain(THREADS)
MAPS, TABLE = DOMAIN.maps, DOMAIN.intervals
WORLDS = ((FREE_SIGN, FREE_ZERO), (STRICT_SIGN, STRICT_ZERO))
# What a world may say of one byte: nothing, 0 or 0x80, 0.
LEVELS = (0, 1, 3)
FACTS = [free | strict << 2 for free in LEVELS for strict in LEVELS]

Rows = list[list[int]]


def rows_of(value: ZeroBytes, threads: int = THREADS) -> Rows:
    """The facts, for each thread."""
    return np.broadcast_to(value.facts, (threads, value.size)).tolist()


def side_by_side(parts: list[Rows]) -> Rows:
    """Values that follow each other in memory."""
    return [[byte for row in rows for byte in row] for rows in zip(*parts, strict=True)]


def map_of(rows: Rows) -> ZeroBytes:
    return MAPS.of(np.array(rows, np.uint8))


@st.composite
def maps(draw: st.DrawFn, size: int) -> ZeroBytes:
    """Facts about `size` bytes: in all threads, or by thread from two kinds."""
    byte = st.sampled_from((ALL, ALL, 0, *FACTS))
    kinds = [draw(st.lists(byte, min_size=size, max_size=size)) for _ in range(2)]
    cut = draw(st.sampled_from((0, 1, 32, 40)))
    return map_of([kinds[thread < cut] for thread in range(THREADS)])


conditions = st.sampled_from([(0, 0), (1, 1), (0, 1)])


@st.composite
def flags(draw: st.DrawFn) -> Interval:
    """A condition: true, false or either, by thread."""
    some = [draw(conditions) for _ in range(2)]
    cut = draw(st.sampled_from((0, 1, 33)))
    low, high = (np.array([some[thread < cut][side] for thread in range(THREADS)], np.int64)
                 for side in (0, 1))  # fmt: skip
    return TABLE.of(low, high)


def picked(condition: Interval, one: Rows, other: Rows) -> Rows:
    """What holds of all sides that a condition may choose, byte by byte."""
    low, high = DOMAIN.spread(condition.low), DOMAIN.spread(condition.high)
    result = Rows()
    for thread in range(THREADS):
        true, false = high[thread] >= 1, low[thread] <= 0
        a = one[thread] if true else other[thread]
        b = other[thread] if false else one[thread]
        result.append([x & y for x, y in zip(a, b, strict=True)])
    return result


# ---- facts about bytes ---------------------------------------------------------------------------


@given(st.data())
def test_facts_of_two_values(data: st.DataObject) -> None:
    size = data.draw(st.sampled_from((1, 2, 4)))
    one, other = data.draw(maps(size)), data.draw(maps(size))
    first, second = rows_of(one), rows_of(other)
    assert map_of(first) is one
    assert one.any == any(map(any, first))
    assert (one is other) == (first == second)
    both = [[a & b for a, b in zip(*pair, strict=True)] for pair in zip(first, second, strict=True)]
    assert rows_of(MAPS.join(one, other)) == both
    condition = data.draw(flags())
    assert rows_of(MAPS.pick(condition, one, other)) == picked(condition, first, second)
    assert MAPS.pick(condition, one, one) is one
    mask = np.arange(THREADS) % 3 == 1
    chosen = [a if taken else b for taken, a, b in zip(mask, first, second, strict=True)]
    assert rows_of(MAPS.where(mask, one, other)) == chosen


@given(st.data())
def test_parts_of_values(data: st.DataObject) -> None:
    parts = [data.draw(maps(size)) for size in data.draw(st.sampled_from([(2,), (1, 2), (4, 4)]))]
    whole = MAPS.together(parts)
    expected = side_by_side([rows_of(part) for part in parts])
    assert rows_of(whole) == expected
    start = data.draw(st.integers(0, whole.size - 1))
    size = data.draw(st.integers(1, whole.size - start))
    part = MAPS.part(whole, start, size)
    assert rows_of(part) == [row[start : start + size] for row in expected]
    source = np.arange(THREADS) * 5 % THREADS
    assert rows_of(MAPS.lanes(whole, source)) == [expected[at] for at in source]
    warps = [
        [_all(column) for column in zip(*expected[at : at + 32], strict=True)] for at in (0, 32)
    ]
    assert rows_of(MAPS.over_warps(whole)) == [warps[0]] * 32 + [warps[1]] * 32
    zeros = [all(byte & STRICT_ZERO for byte in row) for row in expected]
    assert np.broadcast_to(MAPS.exactly_zero(whole), THREADS).tolist() == zeros


def _all(facts: Iterable[int]) -> int:
    result = ALL
    for each in facts:
        result &= each
    return result


@given(maps(2))
def test_floating_point_zero_is_all_bytes_but_the_sign(value: ZeroBytes) -> None:
    codes = np.broadcast_to(value.code, THREADS).tolist()
    for (lower, top), code in zip(rows_of(value), codes, strict=True):
        for sign, zero in WORLDS:
            assert bool(code & sign) == bool(lower & zero and top & sign)
            assert bool(code & zero) == bool(lower & zero and top & zero)


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("code", FACTS)
def test_value_of_a_code_has_that_code(code: int, size: int) -> None:
    value = MAPS.from_code(np.array([code, 0] * 32, np.uint8), size)
    assert np.broadcast_to(value.code, THREADS).tolist() == [code, 0] * 32
    if size > 1:
        # The lower byte of either zero is 0.
        for sign, zero in WORLDS:
            assert bool(rows_of(value)[0][0] & zero) == bool(code & sign)
    assert not any(rows_of(value)[1])


def test_nothing_and_zero() -> None:
    for size in (1, 2, 8):
        assert rows_of(MAPS.nothing(size)) == [[0] * size] * THREADS
        assert rows_of(MAPS.zero(size)) == [[ALL] * size] * THREADS
        assert MAPS.from_code(np.zeros(THREADS, np.uint8), size) is MAPS.nothing(size)


@given(st.lists(st.sampled_from([(0, 0), (0, 1), (-1, 0), (1, 1), (-2, -1), (3, 9)]), min_size=2,
                max_size=2), st.sampled_from((None, "s@16")))  # fmt: skip
def test_bytes_of_integers(some: list[tuple[int, int]], base: str | None) -> None:
    bounds = [some[thread % 2] for thread in range(THREADS)]
    low, high = (np.array(column, np.int64) for column in zip(*bounds, strict=True))
    value = TABLE.of(low, high, base)
    zero = [base is None and each == (0, 0) for each in bounds]
    for size in (1, 4):
        expected = [[ALL if known else 0] * size for known in zero]
        assert rows_of(MAPS.from_interval(value, size)) == expected
        assert rows_of(DOMAIN.as_map(value, size)) == expected
    assert DOMAIN.as_interval(value, 32) is value


@given(maps(4))
def test_integers_of_bytes(value: ZeroBytes) -> None:
    found = DOMAIN.as_interval(value, 32)
    least, most = -(1 << 31), (1 << 31) - 1
    for row, low, high in zip(
        rows_of(value), DOMAIN.spread(found.low), DOMAIN.spread(found.high), strict=True
    ):
        zero = all(byte & STRICT_ZERO for byte in row)
        assert (low, high) == ((0, 0) if zero else (least, most))
    assert DOMAIN.as_interval(None, 8) is TABLE.top(8)
    assert DOMAIN.as_map(None, 4) is MAPS.nothing(4)
    assert DOMAIN.as_map(value, 4) is value
    assert DOMAIN.as_map(value, 2) is MAPS.nothing(2)


# ---- floating-point arithmetic -------------------------------------------------------------------

ORDINARY = (1.5, -2.0, 0.0, -0.0)
UNUSUAL = (math.inf, -math.inf, math.nan)


def allowed(code: int, sign: int, zero: int, factor: Factor = Factor.ANY) -> tuple[float, ...]:
    """Numbers that a world's facts and what is known of the range leave."""
    if code & zero:
        return (0.0,)
    if code & sign:
        return (0.0, -0.0)
    return UNUSUAL if factor is Factor.UNUSUAL else (
        ORDINARY if factor is Factor.FINITE else (*ORDINARY, *UNUSUAL)
    )  # fmt: skip


def claims(results: Iterable[float]) -> tuple[bool, bool]:
    """Whether all are zeros, and whether all are +0.0."""
    every = list(results)
    return (all(each == 0 for each in every),
            all(each == 0 and math.copysign(1, each) > 0 for each in every))  # fmt: skip


def said(code: int, sign: int, zero: int) -> tuple[bool, bool]:
    return bool(code & sign), bool(code & zero)


def array(code: int) -> floats.ByteArray:
    return np.array([code], np.uint8)


def multiplied(a: float, b: float, free: bool) -> float:
    """a * b; in the free world what is not known to be Inf or NaN is neither."""
    if free and 0 in (a, b):
        return math.copysign(0.0, math.copysign(1, a) * math.copysign(1, b))
    return a * b


@pytest.mark.parametrize("first", Factor)
@pytest.mark.parametrize("second", Factor)
def test_products(first: Factor, second: Factor) -> None:
    for one, other in itertools.product(FACTS, FACTS):
        found = int(floats.product(array(one), array(other), first, second)[0])
        for free, (sign, zero) in zip((True, False), WORLDS, strict=True):
            trusted = free and Factor.UNUSUAL not in (first, second)
            with np.errstate(all="ignore"):
                results = [
                    multiplied(a, b, trusted)
                    for a in allowed(one, sign, zero, first)
                    for b in allowed(other, sign, zero, second)
                ]
            # The sign of a zero product is not followed.
            assert said(found, sign, zero)[1] is False
            unusual = one & sign * (first is Factor.UNUSUAL)
            if unusual or other & sign * (second is Factor.UNUSUAL):
                continue  # No number is both.
            assert said(found, sign, zero)[0] == claims(results)[0], (one, other, free)


def test_products_of_factors_of_which_nothing_is_known() -> None:
    for one, other in itertools.product(FACTS, FACTS):
        plain = floats.product(array(one), array(other))
        assert plain == floats.product(array(one), array(other), Factor.ANY, Factor.ANY)


def test_multiply_add() -> None:
    for one, other, addend in itertools.product(FACTS, FACTS, FACTS):
        found = int(floats.multiply_add(array(one), array(other), array(addend))[0])
        for free, (sign, zero) in zip((True, False), WORLDS, strict=True):
            products = {
                (str(value := multiplied(a, b, free)), value)
                for a in allowed(one, sign, zero)
                for b in allowed(other, sign, zero)
            }
            if not said(int(floats.product(array(one), array(other))[0]), sign, zero)[0]:
                assert said(found, sign, zero) == (False, False)
                continue
            assert {value for _, value in products} == {0.0}
            results = [p + c for p in (0.0, -0.0) for c in allowed(addend, sign, zero)]
            assert said(found, sign, zero) == claims(results)


_UNARY: dict[str, Callable[[float], float]] = {
    "arith.negf": lambda one: -one,
    "math.absf": abs,
    "arith.extf": lambda one: one,
    "arith.truncf": lambda one: one,
    "math.sqrt": lambda one: float(np.sqrt(one)),
    "math.sin": lambda one: float(np.sin(one)),
    "math.tanh": math.tanh,
    "math.floor": lambda one: float(np.floor(one)),
    "math.ceil": lambda one: float(np.ceil(one)),
}


@pytest.mark.parametrize("name", floats.UNARY)
def test_functions_of_zeros(name: str) -> None:
    for code in FACTS:
        found = int(floats.UNARY[name](array(code))[0])
        for sign, zero in WORLDS:
            with np.errstate(all="ignore"):
                expected = claims(_UNARY[name](each) for each in allowed(code, sign, zero))
            claimed = said(found, sign, zero)
            assert claimed[0] == expected[0]
            assert not claimed[1] or expected[1]
            if name in ("math.absf", "arith.extf", "arith.truncf"):
                assert claimed == expected


_BINARY: dict[str, Callable[[float, float], float]] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.maximumf": max,
    "arith.minimumf": min,
    "arith.maxnumf": max,
    "arith.minnumf": min,
}


@pytest.mark.parametrize("name", floats.BINARY)
def test_sums_and_maxima_of_zeros(name: str) -> None:
    function = _BINARY[name]
    for one, other in itertools.product(FACTS, FACTS):
        found = int(floats.BINARY[name](array(one), array(other))[0])
        for sign, zero in WORLDS:
            first, second = allowed(one, sign, zero), allowed(other, sign, zero)
            expected = claims(function(a, b) for a in first for b in second)
            claimed = said(found, sign, zero)
            assert not claimed[0] or expected[0]
            assert not claimed[1] or expected[1]
            assert claimed[0] == bool(one & other & sign)
            if one & other & zero:
                assert claimed[1]


# ---- values of any type --------------------------------------------------------------------------

I32, F16 = Scalar("i32", 32, floating=False), Scalar("f16", 16, floating=True)
BUFFER, OTHER = Region("shared", "a"), Region("shared", "b")
REGISTERS = Region("private", 3)


def pointer(region: Region, low: int, high: int | None = None) -> Pointer:
    return Pointer(region, TABLE.between(low, low if high is None else high))


def test_pointers_are_joined() -> None:
    both = DOMAIN.join(pointer(BUFFER, 4), pointer(BUFFER, 8))
    assert both == pointer(BUFFER, 4, 8)
    for region, other, expected in (
        (BUFFER, OTHER, ANY_SHARED),
        (BUFFER, ANY_SHARED, ANY_SHARED),
        (ANY_SHARED, OTHER, ANY_SHARED),
        (BUFFER, REGISTERS, ANYWHERE),
        (REGISTERS, BUFFER, ANYWHERE),
        (BUFFER, OUTSIDE, ANYWHERE),
        (OUTSIDE, BUFFER, ANYWHERE),
        (OUTSIDE, ANYWHERE, ANYWHERE),
        (REGISTERS, Region("private", 4), ANYWHERE),
    ):
        joined = DOMAIN.join(pointer(region, 4), pointer(other, 4))
        assert joined == Pointer(expected, TABLE.top(64))


def test_structs_and_vectors_are_joined_member_by_member() -> None:
    one, other = TABLE.constant(1), TABLE.constant(5)
    pair = Struct((one, pointer(BUFFER, 0)))
    assert DOMAIN.join(pair, Struct((other, pointer(BUFFER, 2)))) == Struct(
        (TABLE.between(1, 5), pointer(BUFFER, 0, 2))
    )
    assert DOMAIN.join(pair, pair) is pair
    assert DOMAIN.join((one, other), (other, other)) == (TABLE.between(1, 5), other)
    assert DOMAIN.join(pair, one) is UNKNOWN
    assert DOMAIN.join(UNKNOWN, one) is UNKNOWN


@given(flags(), maps(4))
def test_number_and_bytes_are_joined_and_picked(condition: Interval, value: ZeroBytes) -> None:
    for integer in (TABLE.constant(0), TABLE.constant(3)):
        bytes_ = MAPS.from_interval(integer, 4)
        for one, other in ((integer, value), (value, integer)):
            first, second = (bytes_, value) if one is integer else (value, bytes_)
            joined = MAPS.join(first, second)
            assert DOMAIN.join(one, other) is joined is DOMAIN.join_numbers(one, other)
            expected = picked(condition, rows_of(first), rows_of(second))
            for result in (
                DOMAIN.pick(condition, one, other), DOMAIN.pick_numbers(condition, one, other),
            ):  # fmt: skip
                assert rows_of(DOMAIN.as_map(result, 4)) == expected


@given(flags())
def test_values_are_picked(condition: Interval) -> None:
    one, other = TABLE.constant(1), TABLE.constant(5)
    expected = TABLE.pick(condition, one, other, 64)
    assert DOMAIN.pick(condition, one, other) is expected
    assert DOMAIN.pick_numbers(condition, one, other) is expected
    assert DOMAIN.pick_numbers(condition, one, one) is one
    assert DOMAIN.pick(condition, (one, one), (other, one)) == (
        (expected, one) if condition.least != 1 and condition.most != 0 else
        DOMAIN.pick(condition, (one, one), (other, one))
    )  # fmt: skip
    near = Pointer(BUFFER, one), Pointer(BUFFER, other)
    assert DOMAIN.pick(condition, *near) == Pointer(BUFFER, expected)
    far = Pointer(BUFFER, one), Pointer(OTHER, other)
    decided = {(1, 1): far[0], (0, 0): far[1]}.get((condition.least, condition.most))
    either = Pointer(ANY_SHARED, TABLE.top(64))
    assert DOMAIN.pick(condition, *far) == (decided or either)


def test_addresses_and_offsets_are_picked() -> None:
    address, number = TABLE.exact(np.array([4], np.int64), "s@16"), TABLE.constant(5)
    for one, other in ((address, number), (number, address)):
        for at, expected in ((0, other), (1, one)):
            assert TABLE.pick(TABLE.constant(at), one, other, 64) is expected
            assert DOMAIN.pick_numbers(TABLE.constant(at), one, other) is expected
        assert DOMAIN.pick_numbers(TABLE.between(0, 1), one, other) is TABLE.top(64)
        either = DOMAIN.pick(TABLE.between(0, 1), Pointer(BUFFER, one), Pointer(BUFFER, other))
        assert either == Pointer(BUFFER, TABLE.top(64))
    assert TABLE.pick(TABLE.between(0, 1), address, address, 64) is address


def test_bounds_that_all_threads_share() -> None:
    for most in (np.array([9], np.int64), np.full(THREADS, 9)):
        assert TABLE.of(np.zeros(THREADS, np.int64), most) is TABLE.between(0, 9)


def test_values_of_different_kinds_are_picked() -> None:
    either, one = TABLE.between(0, 1), TABLE.constant(1)
    some: list[Value] = [one, pointer(BUFFER, 4), Struct((one,)), (one,), UNKNOWN]
    for first, second in itertools.permutations(some, 2):
        assert DOMAIN.pick(either, first, second) is UNKNOWN
    assert DOMAIN.pick(either, MAPS.zero(4), pointer(BUFFER, 4)) is UNKNOWN
    assert DOMAIN.pick(either, pointer(BUFFER, 4), pointer(REGISTERS, 4)) == Pointer(
        ANYWHERE, TABLE.top(64)
    )
    pair = Struct((one, pointer(BUFFER, 0)))
    assert DOMAIN.pick(either, pair, Struct((TABLE.constant(3), pointer(BUFFER, 2)))) == Struct(
        (TABLE.between(1, 3), pointer(BUFFER, 0, 2))
    )


@given(flags(), st.integers(1, THREADS))
def test_threads_that_take_a_side(condition: Interval, count: int) -> None:
    active = np.arange(THREADS) < count
    mask = DOMAIN.mask(active)
    assert mask is DOMAIN.mask(active.copy())
    assert (mask.any, mask.full) == (True, count == THREADS)
    assert mask.warps.tolist() == [thread < 32 or count > 32 for thread in range(THREADS)]
    sides = DOMAIN.split(condition, mask)
    low, high = DOMAIN.spread(condition.low), DOMAIN.spread(condition.high)
    for side, at in zip(sides, (1, 0), strict=True):
        assert side.active.tolist() == (active & (low <= at) & (at <= high)).tolist()
    nobody = DOMAIN.mask(np.zeros(THREADS, bool))
    assert (nobody.any, nobody.full) == (False, False)


def test_any_value_of_a_type() -> None:
    assert DOMAIN.top(I32) is TABLE.top(32)
    assert DOMAIN.top(F16) is MAPS.nothing(2)
    assert DOMAIN.top(Vector(F16, (2, 2))) == (MAPS.nothing(2),) * 4
    assert DOMAIN.top(Opaque("token")) is UNKNOWN
    for space, region, given_region in (
        (None, ANYWHERE, OUTSIDE),
        (1, OUTSIDE, OUTSIDE),
        (4, OUTSIDE, OUTSIDE),
        (6, OUTSIDE, OUTSIDE),
        (3, ANY_SHARED, ANY_SHARED),
        (7, ANY_SHARED, ANY_SHARED),
        (5, ANYWHERE, ANYWHERE),
    ):
        kind = Address(space)
        anywhere = Pointer(region, TABLE.top(64))
        assert DOMAIN.top(kind) == anywhere
        argument = Pointer(given_region, TABLE.top(64))
        assert DOMAIN.argument(kind) == argument
        fields = Fields((kind, I32))
        assert DOMAIN.top(fields) == Struct((anywhere, TABLE.top(32)))
        assert DOMAIN.argument(fields) == Struct((argument, TABLE.top(32)))
    assert DOMAIN.argument(I32) is TABLE.top(32)


def test_names_of_shared_objects_end_with_their_alignment() -> None:
    assert shared_base(SharedObject("smem", bytes=64, alignment=128)) == "smem@128"


def test_lanes_of_a_block() -> None:
    assert DOMAIN.lane.tolist() == [*range(32)] * 2
    assert DOMAIN.warp_start.tolist() == [0] * 32 + [32] * 32
    assert DOMAIN.thread.tolist() == [*range(64)]
    assert DOMAIN.held_bytes == TABLE.held_bytes + MAPS.held_bytes


# ---- registers that a kernel addresses -----------------------------------------------------------

BYTES = 16
Step = tuple[int, int, int, list[bool]]


@st.composite
def offsets(draw: st.DrawFn, size: int) -> Interval:
    """Where a value of some bytes may be: often one place, for each thread, or a few."""
    start = st.integers(0, BYTES - size)
    aligned = start.map(lambda at: at // size * size)
    first, second = draw(st.one_of(aligned, aligned, start)), draw(st.one_of(aligned, start))
    kind = draw(st.sampled_from(("one", "one", "by thread", "any")))
    if kind == "any":
        return TABLE.between(min(first, second), max(first, second))
    places = np.array([first, first if kind == "one" else second] * 32, np.int64)
    return TABLE.exact(places)


def numbers(size: int) -> st.SearchStrategy[ZeroBytes | Interval]:
    """Bytes, or an integer of which nothing but whether it is zero matters."""
    known = st.sampled_from((TABLE.constant(0), TABLE.constant(7), TABLE.between(0, 3)))
    return maps(size) | known


def bytes_held(value: ZeroBytes | Interval, size: int) -> Rows:
    return rows_of(DOMAIN.as_map(value, size))


@given(st.data())
@settings(max_examples=80)
def test_registers_hold_what_was_stored_last(data: st.DataObject) -> None:
    """For each thread and byte: what all stores that may be the last agree on."""
    cell = data.draw(st.sampled_from((1, 2, 4)))
    shape = PrivateObject(0, cell, BYTES // cell)
    assert shape.size == BYTES
    cells: list[Number] = [MAPS.zero(cell)] * shape.count
    held = [[ALL] * BYTES for _ in range(THREADS)]
    for _ in range(data.draw(st.integers(1, 4))):
        size, count = data.draw(st.sampled_from(((1, 1), (2, 1), (4, 1), (1, 4), (2, 2), (4, 2))))
        element = Scalar(f"i{8 * size}", 8 * size, floating=False)
        kind = element if count == 1 else Vector(element, (count,))
        stored = tuple(data.draw(numbers(size)) for _ in range(count))
        offset = data.draw(offsets(size * count))
        before = list(cells)
        cells = private.store(
            DOMAIN, shape, cells, offset, stored[0] if count == 1 else stored, kind
        )
        assert len(cells) == len(before)
        rows = side_by_side([bytes_held(each, size) for each in stored])
        _store(held, offset, rows)
    size = data.draw(st.sampled_from((1, 2, 4)))
    offset = data.draw(offsets(size))
    floating = data.draw(st.booleans()) and size > 1
    kind = Scalar("f" if floating else "i", 8 * size, floating=floating)
    loaded = private.load(DOMAIN, shape, cells, offset, kind)
    assert isinstance(loaded, Interval | ZeroBytes)
    assert not (floating and isinstance(loaded, Interval))
    _require_held(bytes_held(loaded, size), held, offset, size)
    for place in range(BYTES):
        offset = TABLE.constant(place)
        loaded = private.load(DOMAIN, shape, cells, offset, Scalar("i8", 8, floating=False))
        assert isinstance(loaded, Interval | ZeroBytes)
        _require_held(bytes_held(loaded, 1), held, offset, 1)


def _spans(offset: Interval) -> list[range]:
    low, high = DOMAIN.spread(offset.low), DOMAIN.spread(offset.high)
    return [range(int(a), int(b) + 1) for a, b in zip(low, high, strict=True)]


def _store(held: Rows, offset: Interval, rows: Rows) -> None:
    for thread, starts in enumerate(_spans(offset)):
        old, size = held[thread], len(rows[thread])
        new = [ALL] * BYTES
        for start in starts:
            after = [*old[:start], *rows[thread], *old[start + size :]]
            new = [a & b for a, b in zip(new, after, strict=True)]
        held[thread] = new


def _require_held(found: Rows, held: Rows, offset: Interval, size: int) -> None:
    for thread, starts in enumerate(_spans(offset)):
        for start in starts:
            for claimed, known in zip(found[thread], held[thread][start : start + size],
                                      strict=True):  # fmt: skip
                assert claimed & ~known == 0, (thread, start)


@given(st.data())
def test_known_places_of_registers_are_followed_exactly(data: st.DataObject) -> None:
    cell = data.draw(st.sampled_from((1, 2, 4)))
    shape = PrivateObject(0, cell, BYTES // cell)
    cells = private.everything_lost(DOMAIN, shape)
    stored = [data.draw(maps(4)) for _ in range(4)]
    i32 = Scalar("i32", 32, floating=False)
    for place, value in enumerate(stored):
        cells = private.store(DOMAIN, shape, cells, TABLE.constant(4 * place), value, i32)
    start, size = data.draw(st.sampled_from([(0, 4), (4, 4), (8, 2), (10, 2), (5, 1), (15, 1)]))
    kind = Scalar("i", 8 * size, floating=False)
    found = private.load(DOMAIN, shape, cells, TABLE.constant(start), kind)
    whole = MAPS.together(stored)
    assert found is MAPS.part(whole, start, size)
    pair = private.load(DOMAIN, shape, cells, TABLE.constant(8), Vector(i32, (2,)))
    assert pair == (stored[2], stored[3])
    one_of = private.load(DOMAIN, shape, cells, TABLE.between(4, 4), i32)
    assert one_of is stored[1]


@given(st.data())
def test_places_by_thread_are_followed_exactly(data: st.DataObject) -> None:
    """Of cells that are stored whole, by each thread at its own place or not at all."""
    shape = PrivateObject(0, 4, BYTES // 4)
    cells: list[Number] = [data.draw(maps(4)) for _ in range(shape.count)]
    held = side_by_side([rows_of(DOMAIN.as_map(each, 4)) for each in cells])
    value = data.draw(maps(4))
    offset = TABLE.exact(np.array([4 * data.draw(st.integers(0, 3)), 4] * 32, np.int64))
    cells = private.store(DOMAIN, shape, cells, offset, value, I32)
    _store(held, offset, rows_of(value))
    for place in range(shape.count):
        found = private.load(DOMAIN, shape, cells, TABLE.constant(4 * place), I32)
        assert isinstance(found, ZeroBytes)
        assert rows_of(found) == [row[4 * place : 4 * place + 4] for row in held]
    # A vector at an unknown place is not followed.
    anywhere = TABLE.between(0, 4)
    pair = Vector(I32, (2,))
    assert private.load(DOMAIN, shape, cells, anywhere, pair) == DOMAIN.top(pair)


def test_cells_between_places_by_thread_stay_what_they_are() -> None:
    shape, seven = PrivateObject(0, 4, BYTES // 4), TABLE.constant(7)
    cells: list[Number] = [seven] * shape.count
    offset = TABLE.exact(np.array([0, 8] * 32, np.int64))
    after = private.store(DOMAIN, shape, cells, offset, TABLE.constant(3), I32)
    assert [each is seven for each in after] == [False, True, False, True]
    one, other = Registers({0: [seven]}), Registers({0: [TABLE.constant(9)]})
    assert private.join(DOMAIN, one, other).cells == {0: [TABLE.between(7, 9)]}


def test_tiles_in_registers_of_two_ways() -> None:
    everyone = DOMAIN.mask(np.ones(THREADS, bool))
    low, high = (DOMAIN.mask(np.arange(THREADS) // 32 == half) for half in (0, 1))
    tag = (7, 16)
    one = Registers(owners={0: [((tag, everyone),), ()]})
    condition = TABLE.exact((np.arange(THREADS) < 32).astype(np.int64))
    for first, second, kept in ((one, Registers(), low), (Registers(), one, high)):
        assert private.join(DOMAIN, first, second).owners == one.owners
        assert private.pick(DOMAIN, condition, first, second).owners == {0: [((tag, kept),), ()]}
        assert private.same(first, second) is False


def test_integers_in_registers_stay_integers() -> None:
    shape = PrivateObject(0, 4, 4)
    cells = private.everything_lost(DOMAIN, shape)
    three, nine = TABLE.constant(3), TABLE.constant(9)
    cells = private.store(DOMAIN, shape, cells, TABLE.constant(4), (three, nine), Vector(I32, (2,)))
    assert cells[1:3] == [three, nine]
    assert private.load(DOMAIN, shape, cells, TABLE.constant(8), I32) is nine
    either = private.load(DOMAIN, shape, cells, TABLE.between(4, 8), I32)
    assert either is TABLE.between(3, 9)
    as_vector = private.load(DOMAIN, shape, cells, TABLE.between(4, 8), Vector(I32, (1,)))
    assert as_vector == (TABLE.between(3, 9),)
    real = Scalar("f32", 32, floating=True)
    assert private.load(DOMAIN, shape, cells, TABLE.constant(8), real) is MAPS.nothing(4)


def _wide(bits: int) -> Scalar:
    return Scalar(f"i{bits}", bits, floating=False)


def test_value_that_reaches_into_the_next_cell() -> None:
    shape = PrivateObject(0, 4, 4)
    cells: list[Number] = [map_of([[level] * 4] * THREADS) for level in (ALL, 1, 3, 0)]
    for start, size in ((2, 4), (3, 2), (1, 2), (2, 8), (6, 4), (5, 8)):
        loaded = private.load(DOMAIN, shape, cells, TABLE.constant(start), _wide(8 * size))
        held = [level for level in (ALL, 1, 3, 0) for _ in range(4)][start : start + size]
        assert rows_of(DOMAIN.as_map(loaded, size))[0] == held


@pytest.mark.parametrize(("low", "high"), [(0, 4), (4, 8), (2, 4), (4, 6), (3, 5), (4, 4)])
def test_store_in_registers_that_may_be_elsewhere_takes_no_doubt_away(low: int, high: int) -> None:
    shape = PrivateObject(0, 4, 4)
    lost = private.everything_lost(DOMAIN, shape)
    kept = private.store(DOMAIN, shape, lost, TABLE.between(low, high), MAPS.zero(4), I32)
    assert kept == ([*lost[:1], MAPS.zero(4), *lost[2:]] if low == high else lost)


@pytest.mark.parametrize("start", [-1, 13, 16])
def test_places_outside_of_registers_are_not_followed(start: int) -> None:
    shape = PrivateObject(0, 4, 4)
    zeros: list[Number] = [MAPS.zero(4)] * 4
    outside = TABLE.constant(start)
    assert private.load(DOMAIN, shape, zeros, outside, I32) is TABLE.top(32)
    lost = private.everything_lost(DOMAIN, shape)
    assert private.store(DOMAIN, shape, zeros, outside, MAPS.zero(4), I32) == lost
    token = Opaque("token")
    assert private.store(DOMAIN, shape, zeros, TABLE.constant(0), UNKNOWN, token) == lost
    assert private.load(DOMAIN, shape, zeros, TABLE.constant(0), token) is UNKNOWN
    assert private.store(DOMAIN, shape, zeros, TABLE.constant(0), UNKNOWN, I32)[0] is lost[0]
    whole = TABLE.constant(12)
    assert private.load(DOMAIN, shape, zeros, whole, I32) is MAPS.zero(4)


def test_values_with_another_count_of_elements_are_lost() -> None:
    shape = PrivateObject(0, 4, 4)
    pair = (MAPS.zero(4), MAPS.zero(4))
    lost = private.everything_lost(DOMAIN, shape)
    assert private.store(DOMAIN, shape, lost, TABLE.constant(0), pair, I32) == lost


@given(st.data())
def test_registers_of_two_ways_are_joined(data: st.DataObject) -> None:
    some: list[list[Number]] = [[data.draw(numbers(4)) for _ in range(2)] for _ in range(2)]
    own: list[Number] = [MAPS.zero(4)]
    one, other = Registers({0: some[0], 1: own}), Registers({0: some[1], 2: own})
    for widen in (False, True):
        merged = private.join(DOMAIN, one, other, widen)
        assert merged.cells.keys() == {0, 1, 2}
        for first, second, both in zip(*some, merged.cells[0], strict=True):
            joined = DOMAIN.join_numbers(first, second)
            moved = isinstance(first, Interval) and isinstance(joined, Interval)
            gone = widen and moved and joined is not first
            assert both is (TABLE.top(64) if gone else joined)
    condition = data.draw(flags())
    chosen = private.pick(DOMAIN, condition, one, other)
    expected = [DOMAIN.pick_numbers(condition, *pair) for pair in zip(*some, strict=True)]
    assert chosen.cells == {0: expected, 1: own, 2: own}
    assert private.same(one, one.copy())
    assert private.same(one, other) is False
    assert private.same(Registers({0: some[0]}), Registers({0: list(some[0])}))
    assert private.same(Registers({0: some[0]}), Registers({0: some[1]})) == (some[0] == some[1])
    copy = one.copy()
    copy.cells[5] = own
    assert 5 not in one.cells
    one.become(copy)
    assert 5 in one.cells


# ---- shared memory -------------------------------------------------------------------------------


def memory(size: int | None = BYTES, capacity: int = 1 << 16) -> SharedMemory:
    return SharedMemory(DOMAIN, SharedObject("smem", bytes=size, alignment=16), capacity)


@given(st.data())
def test_shared_memory_holds_what_any_store_may_leave(data: st.DataObject) -> None:
    """Of every byte: what all stores agree on, by threads that may run them."""
    shared, held, covered = memory(), [ALL] * BYTES, [False] * BYTES
    for number in range(data.draw(st.integers(1, 4))):
        size = data.draw(st.sampled_from((1, 2, 4)))
        value, offset = data.draw(maps(size)), data.draw(offsets(size))
        count = data.draw(st.sampled_from((1, 33, 64)))
        mask = DOMAIN.mask(np.arange(THREADS) < count)
        before = (shared.facts.tolist(), shared.version)
        shared.store(offset, value, mask, number)
        for (thread, starts), row in zip(enumerate(_spans(offset)), rows_of(value), strict=True):
            if thread >= count:
                continue
            known = len(starts) == 1
            for start, (at, fact) in itertools.product(starts, enumerate(row)):
                held[start + at] &= fact if known or all(f == ALL for f in row) else 0
                covered[start + at] |= known
        changed = shared.facts.tolist() != before[0]
        assert changed == (shared.version != before[1])
        # Between the ends of what is not known too; the same store again changes nothing.
        facts = shared.facts.tolist()
        assert all(fact & ~most == 0 for fact, most in zip(facts, held, strict=True))
        held = facts
        again = shared.version
        shared.store(offset, value, mask, number)
        assert (held, again) == (shared.facts.tolist(), shared.version)
        assert all(is_ or not was for was, is_ in zip(covered, shared.covered, strict=True))
    size = data.draw(st.sampled_from((1, 2, 4)))
    offset = data.draw(offsets(size))
    loaded = rows_of(shared.load(offset, size))
    for starts, row in zip(_spans(offset), loaded, strict=True):
        expected = held[starts[0] : starts[0] + size] if len(starts) == 1 else [0] * size
        assert row == expected


def test_store_of_bytes_by_several_threads_counts_each() -> None:
    shared = memory()
    rows = [[ALL] if thread else [0] for thread in range(THREADS)]
    shared.store(TABLE.constant(3), map_of(rows), DOMAIN.mask(np.ones(THREADS, bool)), 5)
    assert shared.facts.tolist() == [ALL] * 3 + [0] + [ALL] * 12
    assert (shared.spoiled_by[3], shared.first_zero[3], shared.last_zero[3]) == (5, 5, 5)
    shared.store(TABLE.constant(2), MAPS.zero(1), DOMAIN.mask(np.ones(THREADS, bool)), 6)
    shared.store(TABLE.constant(2), MAPS.zero(1), DOMAIN.mask(np.ones(THREADS, bool)), 7)
    assert (shared.first_zero[2], shared.last_zero[2], shared.spoiled_by[2]) == (6, 7, NOBODY)


def test_store_at_an_unknown_place_of_shared_memory() -> None:
    everyone = DOMAIN.mask(np.ones(THREADS, bool))
    shared = memory()
    shared.store(TABLE.between(4, 6), MAPS.nothing(2), everyone, 1)
    assert shared.facts.tolist() == [ALL] * 4 + [0] * 4 + [ALL] * 8
    shared.store(TABLE.between(0, 14), MAPS.zero(2), everyone, 2)
    assert shared.facts.tolist() == [ALL] * 4 + [0] * 4 + [ALL] * 8
    assert not shared.covered[:4].any()
    shared.store(TABLE.between(-50, 80), MAPS.nothing(2), everyone, 3)
    assert not shared.facts.any()
    assert shared.spoiled_by.tolist() == [3] * 4 + [1] * 4 + [3] * 8
    for start in (-1, 15):
        shared = memory()
        shared.store(TABLE.constant(start), MAPS.nothing(2), everyone, 1)
        inside = max(start, 0)
        assert [place for place in range(BYTES) if not shared.facts[place]] == [inside]


def test_store_at_the_end_of_shared_memory_is_followed() -> None:
    everyone = DOMAIN.mask(np.ones(THREADS, bool))
    for start in (0, 11, 12):
        shared = memory()
        shared.store(TABLE.constant(start), map_of([[3] * 4] * THREADS), everyone, 1)
        assert shared.facts.tolist() == [ALL] * start + [3] * 4 + [ALL] * (12 - start)
        assert rows_of(shared.load(TABLE.constant(start), 4))[0] == [3] * 4


def test_spoiling_tells_whether_it_changed_anything() -> None:
    shared = memory()
    shared.spoil(20, 30, 1)
    shared.spoil(-9, 0, 1)
    assert (shared.version, shared.covered.any()) == (0, False)
    shared.spoil(3, 5, 1)
    assert shared.version == 1
    assert [place for place in range(BYTES) if shared.covered[place]] == [3, 4]
    shared.spoil(3, 5, 2)
    assert (shared.version, shared.spoiled_by[3]) == (1, 1)
    shared.spoil_all(4)
    assert not shared.facts.any()
    assert shared.covered.all()


def test_bytes_that_nobody_stores_are_not_zero_in_the_end() -> None:
    everyone = DOMAIN.mask(np.ones(THREADS, bool))
    shared = memory()
    shared.store(TABLE.constant(0), MAPS.zero(4), everyone, 1)
    assert not shared.forget_uncovered()
    shared.load(TABLE.constant(2), 4)
    version = shared.version
    assert shared.forget_uncovered()
    assert shared.version == version + 1
    assert shared.facts.tolist() == [ALL] * 4 + [0] * 2 + [ALL] * 10
    assert shared.spoiled_by.tolist() == [NOBODY] * 4 + [UNCOVERED] * 2 + [NOBODY] * 10
    assert not shared.forget_uncovered()
    assert rows_of(shared.load(TABLE.constant(2), 4))[0] == [ALL, ALL, 0, 0]
    # A run starts anew: who covers a byte must be seen again.
    shared.start_run()
    assert not shared.covered.any()
    assert shared.forget_uncovered()
    assert shared.facts.tolist() == [ALL] * 2 + [0] * 4 + [ALL] * 10


def test_who_took_a_fact_and_who_stored_a_zero() -> None:
    everyone = DOMAIN.mask(np.ones(THREADS, bool))
    assert min(NOBODY, 0) > UNCOVERED
    assert NOBODY < 0
    shared = memory()
    shared.store(TABLE.constant(2), MAPS.nothing(1), everyone, 4)
    assert (shared.first_zero[2], shared.last_zero[2], shared.spoiled_by[2]) == (NOBODY, NOBODY, 4)
    shared.store(TABLE.constant(3), map_of([[3]] * THREADS), everyone, 5)
    shared.spoil(2, 5, 6)
    assert shared.spoiled_by[2:5].tolist() == [4, 5, 6]


def test_store_at_places_that_are_not_known_by_thread() -> None:
    shared, half = memory(), np.arange(THREADS) < 32
    places = TABLE.of(np.where(half, 4, 5), np.where(half, 6, 10))
    shared.store(places, MAPS.nothing(2), DOMAIN.mask(np.ones(THREADS, bool)), 1)
    assert shared.facts.tolist() == [ALL] * 4 + [0] * 8 + [ALL] * 4


@pytest.mark.parametrize("start", [-1, 13])
def test_load_from_outside_of_shared_memory_knows_nothing(start: int) -> None:
    assert rows_of(memory().load(TABLE.constant(start), 4))[0] == [0] * 4
    assert rows_of(memory().load(TABLE.constant(12), 4))[0] == [ALL] * 4
    assert rows_of(memory().load(TABLE.constant(start), BYTES))[0] == [0] * BYTES


def test_shared_memory_of_unknown_size_is_as_large_as_the_limit() -> None:
    assert (memory(None, 40).size, memory(64, 40).size, memory(16, 40).size) == (40, 40, 16)
