"""What is said of a loop's trip count holds for all values that its assumptions leave."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from tilepass.analysis.bounds import Bounds
from tilepass.analysis.trip_count import (
    assumptions,
    count_bounds,
    counts_unsigned,
    never_below,
    proven_order,
)
from tilepass.ir.engine import Module, operations, parse
from tilepass.ir.loops import Loop, loops_in
from tilepass.ir.walks import ancestor_in, dominates, function_of, is_used, nested, users

_MASK = (1 << 32) - 1
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1
NUMBERS = (_LEAST, _LEAST + 1, -2, -1, 0, 1, 2, 3, 4, _MOST - 1, _MOST)
# Lower bounds, and upper ones: the argument %n, a constant, or the maximum of %n and the lower
# bound or a constant, either way round.
LOWER = ("%m", "%c0", "%c2", "%cm1")
UPPER = ("%n", "%c3", "%c0", "%cm1", "max %n lower", "max lower %n", "max %n %c3", "max %c2 %n",
         "max %n %cm1")  # fmt: skip
CONSTANTS = {"%c0": 0, "%c2": 2, "%c3": 3, "%cm1": -1}
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")

_TEXT = """
func.func @kernel(%m: i32, %n: i32, %flag: i1) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %cm1 = arith.constant -1 : i32
  {maximum}
  {assume}
  scf.for %i = {lower} to {upper} step %c1 : i32 {{
    "test.body"() : () -> ()
  }} {attribute}
  {late}
  return
}}
"""
_ASSUME = """%holds = arith.cmpi {predicate}, {first}, {second} : i32
  llvm.intr.assume %holds : i1"""


def loop_of(lower: str, upper: str, unsigned: bool, assumed: str = "", late: str = "",
            ) -> tuple[Module, Loop]:  # fmt: skip
    name, maximum = upper, ""
    if upper.startswith("max"):
        first, second = (lower if each == "lower" else each for each in upper.split()[1:])
        name = "%upper"
        maximum = f"%upper = arith.max{'u' if unsigned else 's'}i {first}, {second} : i32"
    text = _TEXT.format(
        maximum=maximum, assume=assumed, lower=lower, upper=name, late=late,
        attribute="{unsignedCmp}" if unsigned else "",
    )  # fmt: skip
    module = parse(text)
    return module, loops_in(module)[0]


def compared(predicate: str, a: int, b: int) -> bool:
    if predicate[0] == "u":
        a, b, predicate = a & _MASK, b & _MASK, "s" + predicate[1:]
    return {"eq": a == b, "ne": a != b, "slt": a < b, "sle": a <= b, "sgt": a > b,
            "sge": a >= b}[predicate]  # fmt: skip


def value_of(name: str, lower: str, unsigned: bool, m: int, n: int) -> int:
    """What a bound is, of these arguments."""
    if name.startswith("max"):
        sides = [lower if each == "lower" else each for each in name.split()[1:]]
        values = [value_of(each, lower, unsigned, m, n) for each in sides]
        return max(values, key=lambda value: value & _MASK if unsigned else value)
    return {"%m": m, "%n": n}.get(name, CONSTANTS.get(name, 0))


def best_order(orders: set[int]) -> str:
    """What can be said of an upper bound that is below (-1), at (0) or above (1) the lower one."""
    return "above" if orders <= {1} else "not-below" if orders <= {0, 1} else "unknown"


def possible(
    lower: str, upper: str, unsigned: bool, assumed: tuple[str, str, str] | None = None
) -> set[int]:
    """How the bounds may compare, as the loop compares them."""
    found = set[int]()
    for m, n in itertools.product(NUMBERS, NUMBERS):
        low, high = (value_of(each, lower, unsigned, m, n) for each in (lower, upper))
        if assumed:
            names = {"lower": low, "upper": high}
            a, b = (names.get(each, CONSTANTS.get(each, 0)) for each in assumed[1:])
            if not compared(assumed[0], a, b):
                continue
        less = "ult" if unsigned else "slt"
        found.add(compared(less, low, high) - compared(less, high, low))
    return found


STRENGTH = {"unknown": 0, "not-below": 1, "above": 2}


@pytest.mark.parametrize("unsigned", [False, True])
def test_order_of_bounds_that_are_constants_and_maxima(unsigned: bool) -> None:
    for lower, upper in itertools.product(LOWER, UPPER):
        _module, loop = loop_of(lower, upper, unsigned)
        assert counts_unsigned(loop) is unsigned
        said = proven_order(loop)
        best = best_order(possible(lower, upper, unsigned))
        assert STRENGTH[said] <= STRENGTH[best], (lower, upper, said)
        # Of numbers below zero nothing is said; constants are another matter.
        negative = "%cm1" in (lower, *upper.split()) or unsigned
        if "max" in upper and not negative:
            assert said == best, (lower, upper)
        if lower in CONSTANTS and upper in CONSTANTS and best == "above" and not negative:
            assert said == best, (lower, upper)


@pytest.mark.parametrize("unsigned", [False, True])
def test_order_of_bounds_that_are_assumed(unsigned: bool) -> None:
    said_of = Counter[str]()
    others = ("lower", "%c0", "%c2", "%c3", "%cm1")
    for lower, predicate, other, swapped in itertools.product(
        LOWER, PREDICATES, others, (False, True)
    ):
        pair: tuple[str, str] = (other, "upper") if swapped else ("upper", other)
        names = {"lower": lower, "upper": "%n"}
        first, second = (names.get(each, each) for each in pair)
        text = _ASSUME.format(predicate=predicate, first=first, second=second)
        _module, loop = loop_of(lower, "%n", unsigned, text)
        said = proven_order(loop)
        orders = possible(lower, "%n", unsigned, (predicate, pair[0], pair[1]))
        best = best_order(orders)
        assert STRENGTH[said] <= STRENGTH[best], (lower, predicate, pair, said)
        said_of[said] += 1
        # A comparison of the loop's own kind with its lower bound is understood, and one with a
        # constant where nothing is negative.
        own = predicate[:2] == ("u" if unsigned else "s") + ("l" if swapped else "g")
        known = lower in CONSTANTS and other != "%cm1" and lower != "%cm1"
        if own and orders and (other == "lower" or known):
            assert said == best, (lower, predicate, pair)
        assert [order for order, _ in assumptions(loop)] == [said] * (said != "unknown")
    assert said_of["above"] >= 20
    assert said_of["not-below"] >= 10


@pytest.mark.parametrize("predicate", ["sgt", "sge"])
def test_assumption_counts_where_it_is_in_force(predicate: str) -> None:
    order = {"sgt": "above", "sge": "not-below"}[predicate]
    claim = _ASSUME.format(predicate=predicate, first="%n", second="%m")
    inside = f"scf.if %flag {{\n  {claim}\n  }}"
    for assumed, late, expected in (
        (claim, "", order), (inside, "", "unknown"), ("", claim, "unknown"),
        ("", inside, "unknown"),
    ):  # fmt: skip
        _module, loop = loop_of("%m", "%n", False, assumed, late)
        assert proven_order(loop) == expected
        assert [found for found, _ in assumptions(loop)] == [order]
    both = (
        claim
        + "\n"
        + _ASSUME.replace("%holds", "%more").format(predicate="sgt", first="%n", second="%m")
    )
    _module, loop = loop_of("%m", "%n", False, both)
    assert proven_order(loop) == "above"


def test_a_comparison_that_is_not_assumed_claims_nothing() -> None:
    claim = _ASSUME.format(predicate="sgt", first="%n", second="%m")
    used = claim.replace("llvm.intr.assume %holds : i1", '"test.use"(%holds) : (i1) -> ()')
    _module, loop = loop_of("%m", "%n", False, used)
    assert assumptions(loop) == []
    assert proven_order(loop) == "unknown"


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize(
    ("strict", "constant", "order"),
    [(True, 0, "unknown"), (True, 1, "not-below"), (True, 2, "above"),
     (False, 1, "unknown"), (False, 2, "not-below"), (False, 3, "above")],
)  # fmt: skip
def test_assumption_of_a_constant_next_to_the_lower_bound(
    unsigned: bool, strict: bool, constant: int, order: str
) -> None:
    predicate = f"{'u' if unsigned else 's'}{'gt' if strict else 'ge'}"
    claim = _ASSUME.format(predicate=predicate, first="%n", second=f"%c{constant}")
    _module, loop = loop_of("%c2", "%n", unsigned, claim)
    assert [found for found, _ in assumptions(loop)] == [order] * (order != "unknown")


@pytest.mark.parametrize("name", ["addi", "minsi", "minui", "maxui", "maxsi"])
@pytest.mark.parametrize("unsigned", [False, True])
def test_upper_bound_is_the_maximum_that_the_loop_counts_by(name: str, unsigned: bool) -> None:
    made = f"%upper = arith.{name} %m, %n : i32"
    text = _TEXT.format(
        maximum=made, assume="", lower="%m", upper="%upper", late="",
        attribute="{unsignedCmp}" if unsigned else "",
    )  # fmt: skip
    module = parse(text)
    by = "maxui" if unsigned else "maxsi"
    assert proven_order(loops_in(module)[0]) == ("not-below" if name == by else "unknown")


@pytest.mark.parametrize("unsigned", [False, True])
def test_trip_counts_of_constants(unsigned: bool) -> None:
    for lower, upper, step in itertools.product(CONSTANTS, CONSTANTS, (1, 2, 3)):
        text = _TEXT.format(
            maximum="", assume="", late="", lower=lower, upper=upper,
            attribute="{unsignedCmp}" if unsigned else "",
        ).replace("step %c1", f"step %c{step}")  # fmt: skip
        module = parse(text)
        low, high = CONSTANTS[lower], CONSTANTS[upper]
        expected = len(range(low, high, step))
        if unsigned and min(low, high) < 0:
            expected = None
        assert loops_in(module)[0].trip_count == expected, (lower, upper)


# ---- how many, and whether below -----------------------------------------------------------------

_RANGED = """
func.func @kernel(%m: i32, %n: i32, %by: i32, %flag: i1) {{
  {lines}
  scf.for %i = {lower} to {upper} step {step} : i32 {{
    "test.body"() : () -> ()
  }}
  return
}}
"""
_PID = '%pid = "tt.get_program_id"() {axis = 0 : i32} : () -> i32'
_COUNT = '%all = "tt.get_num_programs"() {axis = 0 : i32} : () -> i32'


def ranged(ranges: dict[str, tuple[int, int]], lower: str = "%m", upper: str = "%n",
           step: str = "%by", lines: str = "") -> tuple[Module, Loop]:  # fmt: skip
    """A loop between arguments of which it is assumed between which numbers they are."""
    assumed = list[str]()
    for name, ends in ranges.items():
        for predicate, end in zip(("sge", "sle"), ends, strict=True):
            key = f"{name}_{predicate}"
            assumed += [f"{key}_c = arith.constant {end} : i32",
                        f"{key} = arith.cmpi {predicate}, {name}, {key}_c : i32",
                        f"llvm.intr.assume {key} : i1"]  # fmt: skip
    text = "\n  ".join([lines, *assumed])
    module = parse(_RANGED.format(lines=text, lower=lower, upper=upper, step=step))
    return module, loops_in(module)[0]


def test_counts_are_between_those_of_the_extremes() -> None:
    for lower, upper, step in itertools.product(
        ((0, 0), (2, 5), (-3, -1), (0, 9)),
        ((0, 0), (10, 17), (4, 30), (-2, 3), (5, 6)),
        ((1, 1), (2, 4), (3, 3)),
    ):
        _module, loop = ranged({"%m": lower, "%n": upper, "%by": step})
        counts = [
            len(range(low, high, by))
            for low, high, by in itertools.product(lower, upper, range(step[0], step[1] + 1))
        ]
        assert count_bounds(loop) == Bounds(min(counts), max(counts)), (lower, upper, step)
    # A step that may be zero counts as one.
    _module, loop = ranged({"%m": (0, 0), "%n": (10, 12), "%by": (-2, 5)})
    assert count_bounds(loop) == Bounds(2, 12)
    _module, loop = ranged({"%m": (0, 0), "%n": (10, 12), "%by": (-2, 0)})
    assert count_bounds(loop) == Bounds(10, 12)


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ({"%m": (0, 4), "%n": (4, 9)}, True),
        ({"%m": (0, 4), "%n": (3, 9)}, False),
        ({"%m": (1, 4), "%n": (0, 9)}, False),
        ({}, False),
    ],
)
def test_bounds_that_are_never_below(ranges: dict[str, tuple[int, int]], expected: bool) -> None:
    _module, loop = ranged(ranges)
    assert never_below(loop) is expected


def test_bounds_that_are_proven_are_never_below() -> None:
    claim = _ASSUME.format(predicate="sge", first="%n", second="%m")
    _module, loop = ranged({}, lines=claim)
    assert never_below(loop) is True


@pytest.mark.parametrize(
    ("first", "second", "lower", "step", "least", "expected"),
    [
        (_PID, _COUNT, "%pid", "%all", 0, True),
        (_PID, _COUNT, "%pid", "%all", -1, False),
        # Not all of it: another axis, another start, another step, the two exchanged.
        (_PID, _COUNT.replace("= 0", "= 1"), "%pid", "%all", 0, False),
        (_PID.replace("= 0", "= 2"), _COUNT.replace("= 0", "= 2"), "%pid", "%all", 0, True),
        (_PID, _COUNT, "%m", "%all", 0, False),
        (_PID, _COUNT, "%pid", "%by", 0, False),
        (_PID, _COUNT, "%all", "%pid", 0, False),
        (_PID, _PID.replace("%pid", "%all"), "%pid", "%all", 0, False),
        (_COUNT.replace("%all", "%pid"), _COUNT, "%pid", "%all", 0, False),
    ],
)
def test_loop_over_the_tiles_of_the_grid_is_never_below(
    first: str, second: str, lower: str, step: str, least: int, expected: bool
) -> None:
    """A program's id is below the number of programs, whatever the number of tiles."""
    _module, loop = ranged({"%n": (least, 40)}, lower, "%n", step, f"{first}\n  {second}")
    assert never_below(loop) is expected


def test_whether_an_operation_is_used() -> None:
    module = parse(
        """
        %a:2 = "test.two"() : () -> (i32, i32)
        %b:2 = "test.two"() : () -> (i32, i32)
        %c = "test.last"(%a#1) : (i32) -> i32
        "test.none"() : () -> ()"""
    )
    made = operations(module)[1:]
    assert [is_used(each) for each in made] == [True, False, False, False]


# ---- places --------------------------------------------------------------------------------------

_PLACES = """
func.func @kernel(%n: i32, %flag: i1) {
  %a = arith.constant 1 : i32
  %x = arith.addi %a, %a : i32
  scf.if %flag {
    %b = arith.addi %a, %x : i32
    scf.if %flag {
      %c = arith.muli %a, %b : i32
    }
    %d = arith.subi %a, %b : i32
  } else {
    %e = arith.divsi %a, %x : i32
  }
  %f = arith.remsi %a, %x : i32
  return
}
"""


def test_what_runs_before_what() -> None:
    module = parse(_PLACES)
    every = {each.name: each for each in operations(module) if each.name.startswith("arith.")}
    add = [each for each in operations(module) if each.name == "arith.addi"]
    order = [every["arith.constant"], *add, *(every[f"arith.{name}"] for name in (
        "muli", "subi", "divsi", "remsi"))]  # fmt: skip
    constant, x, b, c, d, e, f = order
    before = {
        (constant, each) for each in order[1:]
    } | {(x, each) for each in order[2:]} | {(b, c), (b, d)}  # fmt: skip
    for first, second in itertools.product(order, order):
        assert dominates(first, second) == ((first, second) in before), (first, second)
    outer = d.parent
    assert outer is not None
    block = f.block
    assert ancestor_in(block, f) == f
    assert ancestor_in(block, c) == outer.operation
    assert ancestor_in(c.block, b) is None
    assert ancestor_in(c.block, c) == c
    assert nested(outer.operation).count(c) == 1
    assert outer.operation not in nested(outer.operation)
    assert [each.name for each in users(b.results[0])].count("arith.muli") == 1
    assert len(users(constant.results[0])) == 7
    assert nested(e) == []


def test_function_around_an_operation() -> None:
    module, loop = loop_of("%m", "%n", unsigned=False)
    # Where there is none of Triton's it is the module.
    for each in nested(module.operation):
        assert function_of(each) == module.operation
    assert function_of(loop.operation).name == "builtin.module"


def test_comparison_with_what_is_no_constant_says_nothing() -> None:
    for lower, other in (("%c0", "%m"), ("%m", "%c0")):
        assumed = _ASSUME.format(predicate="sgt", first="%n", second=other)
        _module, loop = loop_of(lower, "%n", unsigned=False, assumed=assumed)
        assert proven_order(loop) == "unknown"
