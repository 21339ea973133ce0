"""Each reason for which fusing would go wrong, by versions of Triton, on nests made by hand."""

from __future__ import annotations

import pytest

from tilepass.analysis.loop_fusion import (
    clamp_upper_bound,
    fusion_obstacle,
    tile_count_obstacle,
    trip_count_obstacle,
)
from tilepass.core.pass_base import CompilerVersion
from tilepass.core.refusal import Refusal
from tilepass.ir.engine import Module, ir, parse
from tilepass.ir.loops import LoopNest, defining_operation, nest_of, outermost_loops

_TEXT = """
"tt.func"() ({
^bb0(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %m: TYPE, %n: TYPE, %l: TYPE, %by: TYPE, %flag: i1):
  %c0 = arith.constant 0 : TYPE
  %c1 = arith.constant 1 : TYPE
  %c2 = arith.constant 2 : TYPE
  %c16 = arith.constant 16 : TYPE
  %cm1 = arith.constant -1 : TYPE
  %zero = arith.constant 0 : i32
  ASSUME
  %pid = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  OUTER_RESULTS scf.for %t = START to TILES step TILE_STEP OUTER_CARRIES : TYPE {
    BEFORE
    %sum = scf.for %k = LOWER to UPPER step STEP iter_args(%acc = INITIAL) -> (KIND) : INNER_KIND {
      %x = "tt.load"(%p) : (!tt.ptr<i32>) -> KIND
      INSIDE
      %next = arith.addi %acc, %x : KIND
      scf.yield %next : KIND
    } INNER_SAID
    AFTER
    YIELDS
  } OUTER_SAID
  "tt.return"() : () -> ()
}) : () -> ()
"""
_STORE = '"tt.store"(%q, %sum) : (!tt.ptr<i32>, i32) -> ()'
_DEFAULT = {
    "ASSUME": "", "OUTER_RESULTS": "", "OUTER_CARRIES": "", "START": "%pid", "TILES": "%m",
    "TILE_STEP": "%c16", "BEFORE": "", "LOWER": "%c0", "UPPER": "%n", "STEP": "%c1", "YIELDS": "",
    "INITIAL": "%zero", "INSIDE": "", "AFTER": _STORE, "INNER_SAID": "", "OUTER_SAID": "",
    "TYPE": "i32", "INNER_KIND": "TYPE", "KIND": "i32",
}  # fmt: skip
OLD, NEW = CompilerVersion("triton", (3, 8, 1)), CompilerVersion("triton", (3, 9))


def nest(**parts: str) -> tuple[Module, LoopNest]:
    text = _TEXT
    order = [
        "INNER_KIND",
        "OUTER_RESULTS",
        "OUTER_CARRIES",
        "OUTER_SAID",
        "INNER_SAID",
        "TILE_STEP",
    ]
    chosen = _DEFAULT | parts
    for name in (*order, *(each for each in chosen if each not in order)):
        text = text.replace(name, chosen[name])
    module = parse(text)
    found = nest_of(outermost_loops(module)[0])
    assert found is not None
    return module, found


def reason(version: CompilerVersion = NEW, /, **parts: str) -> str | None:
    """Why fusing is refused; where it is, at the tile loop."""
    _module, found = nest(**parts)
    refusal = fusion_obstacle(found, version)
    assert refusal is None or refusal.operation == found.outer.operation
    return None if refusal is None else refusal.reason


def assumed(predicate: str, one: str, other: str, kind: str = "i32", number: int = 0) -> str:
    name = f"%h{number}"
    return (f"{name} = arith.cmpi {predicate}, {one}, {other} : {kind}\n"
            f"  llvm.intr.assume {name} : i1\n  ")  # fmt: skip


def test_plain_nest_is_fused() -> None:
    for version in (OLD, NEW):
        assert reason(version) is None


# ---- how many trips ------------------------------------------------------------------------------

_ABOVE, _NOT_BELOW = assumed("sgt", "%n", "%l"), assumed("sge", "%n", "%l")
_EMPTY = ("the inner loop's trip count is not provably positive, and triton 3.8.1 runs it once "
          "where its upper bound is below its lower one (#11656)")  # fmt: skip
_ELSEWHERE = ("triton 3.8.1 takes an assumption of another branch for granted and runs an empty "
              "inner loop once (#11519)")  # fmt: skip


@pytest.mark.parametrize(
    ("assume", "before", "expected"),
    [
        ("", "", _EMPTY),
        (_ABOVE, "", None),
        (_NOT_BELOW, "", None),
        (f"scf.if %flag {{\n{_ABOVE}}}", "", _ELSEWHERE),
        (f"scf.if %flag {{\n{_NOT_BELOW}}}", "", _EMPTY),
        (f"scf.if %flag {{\n{_ABOVE}}}\n{assumed('sge', '%n', '%l', number=1)}", "", _ELSEWHERE),
        (f"scf.if %flag {{\n{_NOT_BELOW}}}\n{assumed('sgt', '%n', '%l', number=1)}", "", None),
    ],
)
def test_empty_inner_loops_before_the_repair(
    assume: str, before: str, expected: str | None
) -> None:
    _module, found = nest(ASSUME=assume, BEFORE=before, LOWER="%l")
    obstacle = trip_count_obstacle(found, OLD)
    assert (obstacle and obstacle.reason) == expected
    assert obstacle is None or obstacle.operation == found.outer.operation
    assert trip_count_obstacle(found, NEW) is None
    assert trip_count_obstacle(found, CompilerVersion("triton", (3, 10, 0))) is None


@pytest.mark.parametrize(
    ("assume", "parts", "fine"),
    [
        ("", {}, False),
        (assumed("sge", "%m", "%c0"), {}, False),
        (assumed("sge", "%m", "%l"), {"START": "%l"}, True),
        (assumed("sge", "%l", "%m"), {"START": "%l"}, False),
    ],
)
def test_number_of_tiles_may_be_below_zero(assume: str, parts: dict[str, str], fine: bool) -> None:
    _module, found = nest(ASSUME=assume, **parts)
    obstacle = tile_count_obstacle(found)
    assert (obstacle is None) == fine
    if obstacle is not None:
        assert obstacle.reason.startswith("the number of tiles is not provably zero or more")
        assert obstacle.operation == found.outer.operation


@pytest.mark.parametrize(("said", "name"), [("", "arith.maxsi"), ("{unsignedCmp}", "arith.maxui")])
@pytest.mark.parametrize("upper", ["%n", "%u"])
def test_clamp(said: str, name: str, upper: str) -> None:
    module, found = nest(INNER_SAID=said, LOWER="%l", UPPER=upper,
                         BEFORE="%u = arith.addi %n, %c1 : i32")  # fmt: skip
    inner = found.inner[0]
    old = inner.upper_bound
    clamp_upper_bound(inner)
    maximum = defining_operation(inner.upper_bound)
    assert maximum is not None
    assert (maximum.name, list(maximum.operands)) == (name, [old, inner.lower_bound])
    source = defining_operation(old)
    expected = inner.operation if source is None else source
    assert str(maximum.location) == str(expected.location)
    body = [view.operation for view in found.outer.body]
    assert body.index(maximum) + 1 == body.index(inner.operation)
    assert module is not None


# ---- bounds --------------------------------------------------------------------------------------

_READ = ("the inner loop's bound is read from memory in the tile loop; fusing would read it even "
         "where no tile runs (#11601)")  # fmt: skip
_DIVIDED = ("the inner loop's bound is divided by a variable in the tile loop; fusing would divide "
            "even where no tile runs")  # fmt: skip
_FRONT = "compute the bound before the tile loop"
_DIVISIONS = ("ceildivsi", "ceildivui", "divsi", "divui", "floordivsi", "remsi", "remui")


@pytest.mark.parametrize(
    ("line", "expected", "advice"),
    [
        ("%b = arith.addi %n, %c1 : i32", None, ""),
        ('%b = "tt.load"(%p) : (!tt.ptr<i32>) -> i32', _READ, _FRONT),
        *((f"%b = arith.{name} %n, %c16 : i32", None, "") for name in _DIVISIONS),
        *((f"%b = arith.{name} %n, %m : i32", _DIVIDED, _FRONT) for name in _DIVISIONS),
        ("%b = arith.divsi %n, %c0 : i32", _DIVIDED, _FRONT),
        ('%b = "test.do"(%n) : (i32) -> i32',
         "the inner loop's bound comes from test.do, which cannot leave the tile loop", _FRONT),
        ('%b = "tt.get_num_programs"() {axis = 0 : i32} : () -> i32',
         "the inner loop's bound comes from tt.get_num_programs, which cannot leave the tile loop",
         _FRONT),
        ('%b = "tt.atomic_rmw"(%p, %n) : (!tt.ptr<i32>, i32) -> i32',
         "the inner loop's bound comes from tt.atomic_rmw, which cannot leave the tile loop",
         _FRONT),
        ("%b = arith.addi %t, %c1 : i32", "the inner loop's bounds change from tile to tile",
         "loop over the largest range and mask what is too much"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("which", ["LOWER", "UPPER", "STEP"])
def test_bounds_that_are_computed_in_the_tile_loop(
    line: str, expected: str | None, advice: str, which: str
) -> None:
    positive = assumed("sge", "%b", "%c0", number=7)
    _module, found = nest(BEFORE=f"{line}\n{positive}", **{which: "%b"})
    refusal = fusion_obstacle(found, NEW)
    if expected is None:
        # An assumption in the tile loop says nothing of the step where no tile is.
        said = refusal and refusal.reason.partition(";")[0]
        assert said == ("the inner loop's step may be zero" if which == "STEP" else None)
        return
    assert refusal is not None
    assert (refusal.reason, refusal.advice) == (expected, advice)
    assert refusal.harmless == ("change from tile" in expected)


def test_bounds_that_are_the_tile_or_what_it_carries() -> None:
    changing = "the inner loop's bounds change from tile to tile"
    assert reason(UPPER="%t") == changing
    carried = {"OUTER_RESULTS": "%r =", "OUTER_CARRIES": "iter_args(%v = %n) -> (i32)",
               "YIELDS": "scf.yield %v : i32"}  # fmt: skip
    assert reason(UPPER="%v", **carried) == changing
    assert reason(UPPER="%m") is None


_UNSIGNED = "loop compares unsigned numbers, and fusing counts its trips signed"
_DISTANCE = "loop's bounds may not fit their type"
_LATER = {"LOWER": "%l", "UPPER": "%n"}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"INNER_SAID": "{unsignedCmp}"}, f"the inner {_UNSIGNED}"),
        ({"OUTER_SAID": "{unsignedCmp}"}, f"the tile {_UNSIGNED}"),
        ({"INNER_SAID": "{unsignedCmp}", "ASSUME": assumed("sge", "%n", "%c0")}, None),
        ({"INNER_SAID": "{unsignedCmp}", "ASSUME": assumed("sge", "%n", "%cm1")},
         f"the inner {_UNSIGNED}"),
        ({"INNER_SAID": "{unsignedCmp}", "LOWER": "%l", "ASSUME": assumed("sge", "%n", "%c0")},
         f"the inner {_UNSIGNED}"),
        # A distance of 2^31 - 1 fits, one more does not.
        ({"START": "%l"}, f"the distance between the tile {_DISTANCE}"),
        (_LATER, f"the distance between the inner {_DISTANCE}"),
        (_LATER | {"ASSUME": assumed("sge", "%l", "%c0")}, None),
        (_LATER | {"ASSUME": assumed("sge", "%l", "%cm1")},
         f"the distance between the inner {_DISTANCE}"),
        # Steps.
        ({"STEP": "%by"}, "the inner loop's step may be zero; fusing would divide by it even where "
                          "no tile runs"),
        ({"STEP": "%by", "ASSUME": assumed("sge", "%by", "%c0")},
         "the inner loop's step may be zero; fusing would divide by it even where no tile runs"),
        ({"STEP": "%by", "ASSUME": assumed("sge", "%by", "%c1")}, None),
        ({"STEP": "%c2"}, None),
    ],
)  # fmt: skip
def test_numbers_of_trips_that_fit(parts: dict[str, str], expected: str | None) -> None:
    assert reason(**parts) == expected


_PRODUCT = "the number of tiles times that of inner trips may not fit their type"


def sized(kind: str, tiles: tuple[int, int], trips: tuple[int, int]) -> str | None:
    """Of a nest of so many tiles and inner trips, of which the first are sure."""
    lines = ""
    for number, (name, ends) in enumerate((("%m", tiles), ("%n", trips))):
        for place, (end, predicate) in enumerate(zip(ends, ("sge", "sle"), strict=True)):
            key = 2 * number + place
            lines += f"%e{key} = arith.constant {end} : {kind}\n  "
            lines += assumed(predicate, name, f"%e{key}", kind, key)
    return reason(TYPE=kind, START="%c0", TILE_STEP="%c1", ASSUME=lines)


@pytest.mark.parametrize(
    ("kind", "tiles", "trips", "fits"),
    [
        # Narrower than i32: the most that there may be.
        ("i16", (0, 32767), (0, 1), True),
        ("i16", (0, 32767), (0, 2), False),
        ("i16", (0, 151), (0, 217), True),
        ("i16", (0, 152), (0, 217), False),
        ("i16", (0, 32767), (0, 0), True),
        # Otherwise what there is at least.
        ("i32", (0, 1 << 20), (0, 1 << 20), True),
        ("i32", (1 << 16, 1 << 20), (32767, 1 << 20), True),
        ("i32", (1 << 16, 1 << 20), (32768, 1 << 20), False),
        ("i32", ((1 << 31) - 1, (1 << 31) - 1), (1, 1), True),
        ("i32", ((1 << 31) - 1, (1 << 31) - 1), (0, 1), True),
        ("i32", ((1 << 31) - 1, (1 << 31) - 1), (2, 2), False),
        # There is no tile loop for less than two.
        ("i32", (0, 1), ((1 << 30) - 1, 1 << 30), True),
        ("i32", (0, 1), (1 << 30, 1 << 30), False),
        ("i64", (1 << 40, 1 << 40), (1 << 22, 1 << 22), True),
        ("i64", (1 << 40, 1 << 40), (1 << 23, 1 << 23), False),
    ],
)
def test_products_that_fit(
    kind: str, tiles: tuple[int, int], trips: tuple[int, int], fits: bool
) -> None:
    assert sized(kind, tiles, trips) == (None if fits else _PRODUCT)


def test_wider_type_of_the_two_loops_counts() -> None:
    lines = "%few = arith.constant 10 : i16\n  %z = arith.constant 0 : i16\n  "
    lines += "%w = arith.constant 1 : i16\n  %e = arith.constant 40000 : i32\n  "
    parts = {"LOWER": "%z", "UPPER": "%few", "STEP": "%w", "INNER_KIND": "i16"}
    most = assumed("sle", "%m", "%e")
    assert reason(ASSUME=lines + most, START="%c0", TILE_STEP="%c1", **parts) is None


# ---- carried values ------------------------------------------------------------------------------


def carrying(yielded: str, **parts: str) -> dict[str, str]:
    """The tile loop carries one value, or two."""
    count = yielded.count(",") + 1
    starts = ", ".join(f"%v{index} = %c1" for index in range(count))
    kinds = ", ".join(["i32"] * count)
    return {
        "OUTER_RESULTS": f"%r:{count} =", "OUTER_CARRIES": f"iter_args({starts}) -> ({kinds})",
        "YIELDS": f"scf.yield {yielded} : {kinds}",
    } | parts  # fmt: skip


_LATE = ("a value that the tile loop carries is read after its next value is known; fusing would "
         "read the next one")  # fmt: skip
_TWICE = ("two carried values get one result of the epilogue, which triton 3.8.1 turns into "
          "invalid IR (#11620)")  # fmt: skip
_READS = "%e = arith.addi %v0, %c1 : i32"
_MAKES = "%made = arith.addi %sum, %c1 : i32"


@pytest.mark.parametrize(
    ("parts", "old", "new"),
    [
        (carrying("%v0"), None, None),
        (carrying("%v0", AFTER=_READS), None, None),
        (carrying("%sum", AFTER=_READS), _LATE, _LATE),
        (carrying("%sum", INSIDE=_READS), _LATE, _LATE),
        (carrying("%sum", INITIAL="%v0"), None, None),
        # Read by the prologue, which stays where it is needed there, and moves otherwise.
        (carrying("%sum", BEFORE=_READS, INITIAL="%e"), None, None),
        (carrying("%sum", BEFORE=_READS), _LATE, _LATE),
        (carrying("%t", AFTER=_READS), _LATE, _LATE),
        (carrying("%c2", AFTER=_READS), _LATE, _LATE),
        # Made by the epilogue of this tile's values: known only at its end.
        (carrying("%made", AFTER=f"{_READS}\n{_MAKES}"), None, None),
        (carrying("%made", AFTER=f"{_READS}\n%made = arith.addi %t, %c1 : i32"), None, None),
        (carrying("%made", AFTER=f"{_READS}\n%made = arith.addi %v0, %c1 : i32"), None, None),
        (carrying("%made", AFTER=f"{_READS}\n%made = arith.addi %n, %c1 : i32"), _LATE, _LATE),
        (carrying("%made", AFTER=f'{_READS}\n%made = "tt.load"(%p) : (!tt.ptr<i32>) -> i32'),
         None, None),
        # Twice.
        (carrying("%made, %made", AFTER=_MAKES), _TWICE, None),
        (carrying("%made, %c2", AFTER=_MAKES), None, None),
        (carrying("%sum, %sum"), None, None),
        (carrying("%e, %e", BEFORE="%e = arith.addi %t, %c1 : i32"), _TWICE, None),
        (carrying("%e, %e", BEFORE="%e = arith.addi %t, %c1 : i32", INITIAL="%e"), None, None),
    ],
)  # fmt: skip
def test_carried_values(parts: dict[str, str], old: str | None, new: str | None) -> None:
    parts = {**parts, "AFTER": "\n".join([parts.get("AFTER", ""), _STORE])}
    assert (reason(OLD, **parts), reason(NEW, **parts)) == (old, new)


def test_first_of_several_carried_values_is_no_excuse_for_the_next() -> None:
    parts = carrying("%v0, %sum", AFTER=f"%e = arith.addi %v1, %c1 : i32\n{_STORE}")
    assert reason(NEW, **parts) == _LATE


# ---- forms ---------------------------------------------------------------------------------------

_LAST = "the tile ends with scf.if, which triton 3.8.1 turns into invalid IR"


def ending(value: str) -> str:
    return f'scf.if %flag {{\n"tt.store"(%q, {value}) : (!tt.ptr<i32>, i32) -> ()\n}}'


@pytest.mark.parametrize(
    ("parts", "old"),
    [
        ({"AFTER": ""}, None),
        ({"AFTER": ending("%sum")}, None),
        ({"AFTER": f"{_MAKES}\n{ending('%made')}"}, _LAST),
        ({"AFTER": f"{_MAKES}\n{ending('%made')}\n{_STORE}"}, None),
        ({"AFTER": ending("%e"), "BEFORE": "%e = arith.addi %t, %c1 : i32"}, _LAST),
        ({"AFTER": ending("%n")}, None),
        ({"AFTER": f"{_MAKES}\nscf.if %flag {{\n{ending('%made')}\n}}"}, _LAST),
    ],
)
def test_tiles_that_end_with_a_condition(parts: dict[str, str], old: str | None) -> None:
    assert reason(OLD, **parts) == old
    assert reason(NEW, **parts) is None


def test_inner_loop_that_starts_from_the_tile_index() -> None:
    expected = ("the inner loop carries a value that starts as the tile index, which fusing turns "
                "into invalid IR")  # fmt: skip
    for version in (OLD, NEW):
        assert reason(version, INITIAL="%t") == expected
        started = {"INITIAL": "%e", "BEFORE": "%e = arith.addi %t, %c1 : i32"}
        assert reason(version, **started) is None


def test_refusals_are_told_to_the_author() -> None:
    _module, found = nest(**carrying("%sum", AFTER=f"{_READS}\n{_STORE}"))
    refusal = fusion_obstacle(found, NEW)
    assert isinstance(refusal, Refusal)
    assert refusal.advice == "compute the next value behind the inner loop"
    assert not refusal.harmless
    assert isinstance(refusal.operation, ir.Operation)
