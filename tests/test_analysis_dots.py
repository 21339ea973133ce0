"""Asynchronous dots: which reads of their results no wait covers, what is unfinished where, and
which registers are written too early, on kernels of a few lines."""

from __future__ import annotations

import pytest

from tilepass.analysis.dot_registers import (
    find_not_followed,
    find_overwrites,
    find_unfinished,
    is_waiting_assembly,
)
from tilepass.analysis.dot_waits import DotWaits, Pending, find_uncovered_reads
from tilepass.ir.engine import Module, Operation, ir, operations, parse

_T, _M, _BYTES = "tensor<4x4xf32>", "!ttg.memdesc<4x4xf32, 1>", "tensor<4x4xi8>"
_KERNEL = """
func.func @kernel(%zero: TILE, %ra: TILE, %m: MEMORY, %flag: i1, %other: i1, %n: i32, %by: i32,
                  %at: index) {
  LINES
  "tt.return"() : () -> ()
}
"""


def dot(name: str, start: str = "%zero", a: str = "%m", b: str = "%m", how: str = "isAsync = true",
        a_kind: str = "") -> str:  # fmt: skip
    kinds = [a_kind or (_T if a.startswith(("%r", "%w")) else _M), _M, _T]
    return op(name, "ttng.warp_group_dot", (a, b, start), kinds, how, _T)


def wait(name: str, pendings: int, *values: str) -> str:
    result = f"%{name}:{len(values)} = " if len(values) > 1 else f"%{name} = " if values else ""
    kinds = ", ".join([_T] * len(values))
    results = f"({kinds})" if len(values) != 1 else kinds
    attributes = f'pendings = {pendings} : i32, tag = "{name}"'
    operation = f'"ttng.warp_group_dot_wait"({", ".join(values)}) {{{attributes}}}'
    return f"{result}{operation} : ({kinds}) -> {results}"


def use(name: str, *values: str, returned: str = "") -> str:
    return op(name, "test.use", values, [_T] * len(values), "", returned)


def op(name: str, operation: str, values: tuple[str, ...], kinds: list[str], attributes: str = "",
       returned: str = "") -> str:  # fmt: skip
    more = f"{attributes}, " if attributes else ""
    result = f"%{name} = " if returned else ""
    return (f'{result}"{operation}"({", ".join(values)}) {{{more}tag = "{name}"}} : '
            f"({', '.join(kinds)}) -> {returned or '()'}")  # fmt: skip


def select(name: str, one: str, other: str, flag: str = "%flag") -> str:
    return f'%{name} = arith.select {flag}, {one}, {other} {{tag = "{name}"}} : {_T}'


def branch(then: str, otherwise: str = "", flag: str = "%flag") -> str:
    rest = f" else {{\n{otherwise}\n}}" if otherwise else ""
    return f"scf.if {flag} {{\n{then}\n}}{rest}"


def loop(lines: str, yields: str, start: str = "%zero", name: str = "r", argument: str = "acc",
         ) -> str:  # fmt: skip
    starts = f"iter_args(%{argument} = {start}) -> ({_T})"
    return (f"%{name} = scf.for %k{name} = %by to %n step %by {starts} : i32 {{\n{lines}\n"
            f"scf.yield {yields} : {_T}\n}}")  # fmt: skip


def kernel(*lines: str) -> tuple[Module, Operation]:
    text = _KERNEL.replace("LINES", "\n  ".join(lines))
    module = parse(text.replace("TILE", _T).replace("MEMORY", _M))
    return module, next(each for each in operations(module) if each.name == "func.func")


def tag(operation: Operation) -> str:
    named = operation.attributes.get("tag")
    return named.value if isinstance(named, ir.StringAttr) else operation.name


def pending(found: Pending) -> tuple[int, list[str]]:
    return found.age, [tag(each) for each in found.dots]


def result_of(*lines: str) -> DotWaits:
    _module, function = kernel(*lines)
    return find_uncovered_reads(function)


Read = tuple[str, int, int, list[str]]


def reads(*lines: str) -> list[Read]:
    """(who, which operand, the age, the dots) of each."""
    _module, function = kernel(*lines)
    return [
        (tag(each.operation), each.position, *pending(each.pending))
        for each in find_uncovered_reads(function).reads
    ]


# ---- reads ---------------------------------------------------------------------------------------

_THREE = (dot("x"), dot("y"), dot("z"))


@pytest.mark.parametrize("pendings", range(4))
def test_wait_covers_dots_that_are_old_enough(pendings: int) -> None:
    lines = (*_THREE, wait("w", pendings), use("u", "%x", "%y", "%z"))
    ages = {"x": 2, "y": 1, "z": 0}
    assert reads(*lines) == [
        ("u", position, age, [name])
        for position, (name, age) in enumerate(ages.items())
        if age < pendings
    ]


def test_reads_that_no_wait_covers() -> None:
    assert reads(*_THREE, use("u", "%zero", "%y")) == [("u", 1, 1, ["y"])]
    assert reads(*_THREE, use("u", "%x"), use("v", "%x")) == [
        ("u", 0, 2, ["x"]),
        ("v", 0, 2, ["x"]),
    ]
    assert reads(use("u", "%zero")) == []


def test_return_reads() -> None:
    text = _KERNEL.replace("LINES", dot("x")).replace(
        '"tt.return"() : () -> ()', f'"tt.return"(%n, %x) : (i32, {_T}) -> ()'
    )
    module = parse(text.replace("TILE", _T).replace("MEMORY", _M))
    (function,) = (each for each in operations(module) if each.name == "func.func")
    (read,) = find_uncovered_reads(function).reads
    assert (read.operation.name, read.position, pending(read.pending)) == (
        "tt.return", 1, (0, ["x"]),
    )  # fmt: skip
    assert not read.is_reset
    assert read.value == read.operation.operands[1]
    # Another terminator hands a value on, and reads nothing.
    module = parse(text.replace("TILE", _T).replace("MEMORY", _M).replace("tt.return", "test.end"))
    (function,) = (each for each in operations(module) if each.name == "func.func")
    assert find_uncovered_reads(function).reads == []


@pytest.mark.parametrize("how", ["", "isAsync = false"])
def test_dot_that_is_not_asynchronous_waits_for_all(how: str) -> None:
    assert reads(*_THREE, dot("s", how=how), use("u", "%x", "%z", "%s")) == []
    assert reads(dot("s", how=how), dot("x"), use("u", "%s", "%x")) == [("u", 1, 0, ["x"])]


def test_accumulator_of_the_next_dot_is_not_read() -> None:
    assert reads(dot("x"), dot("y", "%x"), use("u", "%y", "%x")) == [
        ("u", 0, 0, ["y"]), ("u", 1, 1, ["x"]),
    ]  # fmt: skip
    # As another operand it is; by the wait it is not.
    assert reads(dot("x"), dot("y", a="%x", a_kind=_T)) == [("y", 0, 0, ["x"])]
    assert reads(dot("x"), wait("w", 1, "%x")) == []


def test_wait_hands_on_what_is_not_finished() -> None:
    found = result_of(*_THREE, wait("w", 1, "%x", "%z"), use("u", "%w#0", "%w#1"))
    assert [(each.position, pending(each.pending)) for each in found.reads] == [(1, (0, ["z"]))]
    assert {(tag(each), position): age for (each, position), age in found.ages.items()} == {
        ("w", 0): 2, ("w", 1): 0,
    }  # fmt: skip
    assert found.left_over == {}


def test_ages_end_somewhere() -> None:
    lines = [dot("x"), *(dot(f"d{index}") for index in range(70))]
    assert reads(*lines, use("u", "%x", "%d5", "%d6", "%d9"))[:4] == [
        ("u", 0, 64, ["x"]), ("u", 1, 64, ["d5"]), ("u", 2, 63, ["d6"]), ("u", 3, 60, ["d9"]),
    ]  # fmt: skip


# ---- control flow --------------------------------------------------------------------------------


def test_loop_that_carries_what_a_dot_writes() -> None:
    # Its own accumulator: after the loop, and in the next trip.
    lines = loop(f"{use('u', '%acc')}\n{dot('x', '%acc')}", "%x")
    assert reads(lines, use("v", "%r")) == [("u", 0, 0, ["x"]), ("v", 0, 0, ["x"])]
    waited = loop(f"{dot('x', '%acc')}\n{wait('w', 0, '%x')}", "%w")
    assert reads(waited, use("v", "%r")) == []
    one_left = loop(f"{dot('x', '%acc')}\n{wait('w', 1, '%x')}\n{use('u', '%acc')}", "%w")
    assert reads(one_left, use("v", "%r")) == [("u", 0, 1, ["x"]), ("v", 0, 0, ["x"])][1:]
    # What comes in, where there may be no trip.
    idle = loop(use("u", "%acc"), "%zero", "%y")
    assert reads(dot("y"), idle, use("v", "%r")) == [("u", 0, 0, ["y"]), ("v", 0, 0, ["y"])]
    both = loop(f"{use('u', '%acc')}\n{dot('x', '%acc')}", "%x", "%y")
    assert reads(dot("y"), both, use("v", "%r")) == [
        ("u", 0, 0, ["y", "x"]), ("v", 0, 0, ["y", "x"]),
    ]  # fmt: skip


def test_what_was_issued_before_a_loop_ages_by_none_of_its_trips() -> None:
    lines = loop(dot("x", "%acc"), "%x")
    assert reads(dot("y"), lines, use("v", "%y")) == [("v", 0, 0, ["y"])]
    assert reads(dot("y"), loop(f"{dot('x', '%acc')}\n{use('u', '%y')}", "%x")) == [
        ("u", 0, 1, ["y"]),
    ]  # fmt: skip
    # A wait in a loop that may not run covers nothing behind it.
    assert reads(dot("y"), loop(wait("w", 0), "%acc"), use("v", "%y")) == [("v", 0, 0, ["y"])]
    assert reads(dot("y"), loop(f"{wait('w', 0)}\n{use('u', '%y')}", "%acc")) == []


def test_results_of_conditions() -> None:
    text = (f"%i:2 = scf.if %flag -> ({_T}, {_T}) {{\n{dot('x')}\nscf.yield %x, %y : {_T}, {_T}\n}}"
            f" else {{\nscf.yield %y, %zero : {_T}, {_T}\n}}")  # fmt: skip
    assert reads(dot("y"), text, use("u", "%i#0", "%i#1", "%y")) == [
        ("u", 0, 0, ["x", "y"]), ("u", 1, 1, ["y"]), ("u", 2, 0, ["y"]),
    ]  # fmt: skip
    # Both ways wait, or one.
    assert reads(dot("y"), branch(wait("w", 0), wait("v", 0)), use("u", "%y")) == []
    for text in (branch(wait("w", 0)), branch(use("t", "%zero"), wait("v", 0))):
        assert reads(dot("y"), text, use("u", "%y")) == [("u", 0, 0, ["y"])]
    inside = branch(f"{wait('w', 0)}\n{use('t', '%y')}", use("u", "%y"))
    assert reads(dot("y"), inside) == [("u", 0, 0, ["y"])]
    switch = (f"%i = scf.index_switch %at -> {_T}\ncase 2 {{\n{dot('x')}\nscf.yield %x : {_T}\n}}\n"
              f"default {{\n{wait('w', 0)}\nscf.yield %zero : {_T}\n}}")  # fmt: skip
    assert reads(dot("y"), switch, use("u", "%i", "%y")) == [
        ("u", 0, 0, ["x"]), ("u", 1, 1, ["y"]),
    ]  # fmt: skip


def test_while_loops() -> None:
    def repeat(before: str, after: str, checked: str = "%p", yielded: str = "%q") -> str:
        return (f"%r = scf.while (%p = %y) : ({_T}) -> {_T} {{\n{before}\n"
                f"scf.condition(%flag) {checked} : {_T}\n}} do {{\n^bb0(%q: {_T}):\n{after}\n"
                f"scf.yield {yielded} : {_T}\n}}")  # fmt: skip

    first = dot("y")
    assert reads(first, repeat(use("t", "%p"), use("u", "%q")), use("v", "%r", "%y")) == [
        ("t", 0, 0, ["y"]), ("u", 0, 0, ["y"]), ("v", 0, 0, ["y"]), ("v", 1, 0, ["y"]),
    ]  # fmt: skip
    # The condition is always asked: a wait in it covers what is behind.
    covered = repeat(wait("w", 0), use("u", "%q"))
    assert reads(first, covered, use("v", "%r", "%y")) == []
    late = repeat(use("t", "%p"), f"{wait('w', 0)}\n{use('u', '%q')}")
    assert reads(first, late, use("v", "%r", "%y")) == [
        ("t", 0, 0, ["y"]), ("v", 0, 0, ["y"]), ("v", 1, 0, ["y"]),
    ]  # fmt: skip
    again = repeat(use("t", "%p"), f"{wait('w', 0)}\n{dot('x')}", yielded="%x")
    assert reads(first, again, use("v", "%r")) == [
        ("t", 0, 0, ["y", "x"]), ("v", 0, 0, ["y", "x"]),
    ]  # fmt: skip
    handed = repeat(wait("w", 0) + "\n" + dot("x"), use("u", "%q"), checked="%x", yielded="%zero")
    assert reads(first, handed, use("v", "%r", "%y")) == [("u", 0, 0, ["x"]), ("v", 0, 0, ["x"])]


@pytest.mark.parametrize(
    ("text", "left_over"),
    [
        (f'"test.do"() ({{\n{dot("x")}\n"test.end"(%x) : ({_T}) -> ()\n}}) : () -> ()',
         {"x": "test.do"}),
        (f'"test.do"() ({{\n{dot("x")}\n"test.end"() : () -> ()\n}}) : () -> ()', {}),
        (f'"test.do"() ({{\n{dot("x")}\n"test.go"()[^bb1] : () -> ()\n^bb1:\n'
         f'{dot("z")}\n"test.end"() : () -> ()\n}}) : () -> ()', {"x": "test.do", "z": "test.do"}),
    ],
)  # fmt: skip
def test_operations_that_are_not_known(text: str, left_over: dict[str, str]) -> None:
    found = result_of(dot("y"), text, use("u", "%y"))
    assert {tag(each): behind for each, behind in found.left_over.items()} == left_over
    assert [pending(each.pending)[1] for each in found.reads] == [["y"]]


def test_regions_of_what_is_not_known_may_run_or_not() -> None:
    text = f'"test.do"() ({{\n{wait("w", 0)}\n"test.end"() : () -> ()\n}}) : () -> ()'
    assert reads(dot("y"), text, use("u", "%y")) == [("u", 0, 0, ["y"])]
    inside = f'"test.do"() ({{\n{use("t", "%y")}\n"test.end"() : () -> ()\n}}) : () -> ()'
    assert reads(dot("y"), inside) == [("t", 0, 0, ["y"])]
    reading = f'"test.do"(%y) {{tag = "o"}} : ({_T}) -> ()'
    assert reads(dot("y"), reading) == [("o", 0, 0, ["y"])]


def test_early_return() -> None:
    lines = (dot("y"), "cf.cond_br %flag, ^bb1, ^bb2\n^bb1:", dot("x"),
             '"tt.return"() : () -> ()\n^bb2:', use("u", "%zero"))  # fmt: skip
    found = result_of(*lines)
    assert {tag(each): behind for each, behind in found.left_over.items()} == {
        "y": "an early return", "x": "an early return",
    }  # fmt: skip
    assert result_of(dot("y")).left_over == {}
    found = result_of(dot("y"), "cf.br ^bb1\n^bb1:", use("u", "%zero"))
    assert {tag(each): behind for each, behind in found.left_over.items()} == {
        "y": "an early return",
    }  # fmt: skip


# ---- selects -------------------------------------------------------------------------------------

_RESET = select("s", "%zero", "%x")


@pytest.mark.parametrize(
    ("lines", "covered"),
    [
        ((_RESET, branch(wait("w", 0, "%x"))), True),
        ((branch(wait("w", 0, "%x")), _RESET), True),
        ((_RESET, branch(wait("w", 0, "%zero", "%x"))), True),
        ((_RESET, branch(f"{use('t', '%zero')}\n{wait('w', 0, '%x')}")), True),
        ((_RESET,), False),
        # A wait that leaves it unfinished, of another value, under another condition, elsewhere.
        ((_RESET, branch(wait("w", 1, "%x"))), False),
        ((dot("y"), _RESET, branch(wait("w", 1, "%x"))), True),
        ((dot("y"), _RESET, branch(wait("w", 2, "%x"))), False),
        ((_RESET, branch(wait("w", 0, "%zero"))), False),
        ((_RESET, branch(wait("w", 0, "%x"), flag="%other")), False),
        ((_RESET, branch(use("t", "%zero"), wait("w", 0, "%x"))), False),
        ((_RESET, branch(use("t", "%x"))), False),
        ((_RESET, branch(branch(wait("w", 0, "%x")), flag="%other")), False),
        ((select("s", "%x", "%zero"), branch(wait("w", 0, "%x"))), False),
        ((_RESET, wait("w", 0, "%x")), False),
        # No select: what the branch does not take, it reads all the same.
        ((op("s", "test.use", ("%flag", "%zero", "%x"), ["i1", _T, _T]),
          branch(wait("w", 0, "%x"))), False),
    ],
)  # fmt: skip
def test_reset_that_a_branch_covers(lines: tuple[str, ...], covered: bool) -> None:
    found = reads(dot("x"), *lines)
    assert [name for name, *_ in found if name == "s"] == ["s"] * (not covered)


def test_select_hands_on_either() -> None:
    lines = (dot("x"), dot("y"), select("s", "%zero", "%x"), select("t", "%x", "%y"))
    assert reads(*lines, use("u", "%s", "%t"))[-2:] == [
        ("u", 0, 1, ["x"]), ("u", 1, 0, ["x", "y"]),
    ]  # fmt: skip
    found = result_of(*lines).reads
    assert [(tag(each.operation), each.position, each.is_reset) for each in found] == [
        ("s", 2, True), ("t", 1, True), ("t", 2, True),
    ]  # fmt: skip


# ---- what is unfinished --------------------------------------------------------------------------

_WAIT_ALL = "wgmma.wait_group.sync.aligned 0;"


def assembly(name: str, text: str) -> str:
    return op(name, "tt.elementwise_inline_asm", ("%zero",), [_T], f"asm_string = {text}", _T)


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        (f'"{_WAIT_ALL}"', True),
        (f'"mov; {_WAIT_ALL} mov"', True),
        ('"wgmma.wait_group.sync.aligned  0 ;"', True),
        ('"wgmma.wait_group.sync.aligned 1;"', False),
        ('"wgmma.wait_group.sync.aligned 10;"', False),
        ('"wgmma_wait_group.sync.aligned 0;"', False),
        ("3 : i32", False),
    ],
)
def test_assembly_that_waits(text: str, waits: bool) -> None:
    _module, function = kernel(dot("x"), assembly("i", text), use("u", "%zero"))
    unfinished = {tag(each): found for each, found in find_unfinished(function).items()}
    assert set(unfinished) == {"i"} | (set() if waits else {"u", "tt.return"})
    every = {tag(each): each for each in operations(function)}
    assert [name for name, each in every.items() if is_waiting_assembly(each)] == ["i"] * waits
    other = op("o", "test.asm", (), [], f'asm_string = "{_WAIT_ALL}"')
    _module, function = kernel(dot("x"), other, use("u", "%zero"))
    assert len(find_unfinished(function)) == 3


def test_what_is_unfinished_before_each_operation() -> None:
    _module, function = kernel(
        use("s", "%zero"), dot("x"), dot("y", "%x"), use("t", "%zero"), wait("w", 1, "%y"),
        use("u", "%zero"), loop(f"{use('v', '%acc')}\n{dot('z', '%acc')}", "%z"), wait("e", 0),
    )  # fmt: skip
    every = {tag(each): each for each in operations(function)}
    found = find_unfinished(function)
    dots = {tag(each): {tag(one) for one in known.dots} for each, known in found.items()}
    assert dots == {
        "y": {"x"}, "t": {"x", "y"}, "w": {"x", "y"}, "u": {"y"}, "scf.for": {"y"},
        "v": {"y", "z"}, "z": {"y", "z"}, "scf.yield": {"y", "z"}, "e": {"y", "z"},
    }  # fmt: skip
    unfinished = found[every["t"]]
    assert unfinished.writes(every["x"].results[0])
    assert unfinished.writes(every["y"].results[0])
    assert not unfinished.writes(every["w"].results[0])
    assert found[every["u"]].writes(every["w"].results[0])


def test_dot_of_a_region_that_is_not_known_is_unfinished_behind_it() -> None:
    text = f'"test.do"() ({{\n{dot("x")}\n"test.end"() : () -> ()\n}}) : () -> ()'
    _module, function = kernel(text, use("u", "%zero"))
    assert {tag(each) for each in find_unfinished(function)} == {"test.end", "u", "tt.return"}


def test_dot_whose_result_nobody_carries_is_unfinished_in_the_next_trip() -> None:
    _module, function = kernel(loop(f"{use('v', '%acc')}\n{dot('z')}", "%acc"), use("u", "%r"))
    found = find_unfinished(function)
    assert {tag(each) for each in found} == {"v", "z", "scf.yield", "u", "tt.return"}
    text = (f"%r = scf.while (%p = %zero) : ({_T}) -> {_T} {{\n{use('t', '%p')}\n"
            f"scf.condition(%flag) %p : {_T}\n}} do {{\n^bb0(%q: {_T}):\n{use('u', '%q')}\n"
            f"{dot('z')}\nscf.yield %q : {_T}\n}}")  # fmt: skip
    _module, function = kernel(text)
    assert {tag(each) for each in find_unfinished(function)} == {
        "t", "scf.condition", "u", "z", "scf.yield", "tt.return",
    }  # fmt: skip


# ---- registers -----------------------------------------------------------------------------------


def load(name: str, kind: str = _T, how: str = "ttg.local_load") -> str:
    return op(name, how, ("%m",), [_M], "", kind)


def step(name: str, value: str, how: str = "test.compute", kind: str = _T) -> str:
    return op(name, how, (value,), [kind], "", _T)


Found = tuple[str, str, int, list[str]]


def overwrites(*lines: str) -> list[Found]:
    """(writer, place, number of accumulators, sources) of each."""
    _module, function = kernel(*lines)

    def name(value: ir.Value) -> str:
        return "argument" if isinstance(value.owner, ir.Block) else tag(value.owner.operation)

    return [
        (tag(each.writer), tag(each.place), len(each.accumulators), [*map(name, each.sources)])
        for each in find_overwrites(function)
    ]


_BODY = f"{load('l')}\n{step('c', '%l')}"
_ADD = dot("d", "%acc", a="%c", a_kind=_T)
_READ = dot("d", "%acc", a="%l", a_kind=_T)


_NOTHING: list[Found] = []
_NO_SOURCE: list[str] = []
_PLACES = "tensor<4x4xindex>"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        # Computed anew while the last step's dot still reads it.
        (loop(f"{_BODY}\n{_ADD}", "%d"), [("c", "c", 1, ["l"])]),
        (loop(f"{_BODY}\n{_ADD}\n{wait('w', 0, '%d')}", "%w"), _NOTHING),
        (loop(f"{_BODY}\n{_ADD}\n{wait('w', 1, '%d')}", "%w"), [("c", "c", 1, ["l"])]),
        (loop(f"{load('l')}\n{wait('w', 0)}\n{step('c', '%l')}\n{_ADD}", "%d"), _NOTHING),
        (loop(f"{load('l')}\n{assembly('i', chr(34) + _WAIT_ALL + chr(34))}\n{step('c', '%l')}\n"
              f"{_ADD}", "%d"), _NOTHING),
        # Loaded anew, or moved from what is.
        (loop(f"{load('l')}\n{_READ}", "%d"), [("l", "l", 1, _NO_SOURCE)]),
        *((loop(f"{load('l', how=name)}\n{_READ}", "%d"), [("l", "l", 1, _NO_SOURCE)])
          for name in ("tt.load", "tt.descriptor_load")),
        *((loop(f"{load('l')}\n{step('c', '%l', name)}\n{_ADD}", "%d"), [("l", "l", 1, _NO_SOURCE)])
          for name in ("tt.trans", "tt.reshape", "ttg.convert_layout", "tt.bitcast")),
        (loop(f"{load('l')}\n{step('e', '%l')}\n{step('c', '%e', 'tt.trans')}\n{_ADD}", "%d"),
         [("e", "e", 1, ["l"])]),
        (loop(f"{load('l')}\n{step('e', '%l', 'tt.trans')}\n{step('c', '%e')}\n{_ADD}", "%d"),
         [("c", "c", 1, ["e"])]),
        (loop(f"{load('l')}\n{step('e', '%l')}\n{step('c', '%e')}\n{_ADD}", "%d"),
         [("e", "e", 1, ["l"])]),
        # A wait cannot hand on bytes: it stands before the load.
        (loop(f"{load('l', _BYTES)}\n{step('c', '%l', kind=_BYTES)}\n{_ADD}", "%d"),
         [("l", "l", 1, _NO_SOURCE)]),
        *((loop(f"{load('l', kind)}\n{step('c', '%l', kind=kind)}\n{_ADD}", "%d"),
           [("c", "c", 1, ["l"])])
          for kind in ("tensor<4x4xf16>", "tensor<4x4xi64>", "tensor<4x4xbf16>")),
        (loop(f"{load('l', _PLACES)}\n{step('c', '%l', kind=_PLACES)}\n{_ADD}", "%d"),
         [("l", "l", 1, _NO_SOURCE)]),
        # Made of nothing; read by a dot that has finished while another has not.
        (loop(f"{op('c', 'test.make', (), [], '', _T)}\n{_ADD}", "%d"),
         [("c", "c", 1, _NO_SOURCE)]),
        (loop(f"{_BODY}\n{_ADD}\n{wait('w', 0, '%d')}\n{dot('x')}", "%w"), _NOTHING),
        # What stands before the loop is written once; shared memory is another matter.
        (loop(dot("d", "%acc", a="%ra"), "%d"), _NOTHING),
        (f"{load('l')}\n{step('c', '%l')}\n{loop(_ADD, '%d')}", _NOTHING),
        # Only the last of several steps is taken in the loop.
        (f"{load('l')}\n{step('e', '%l')}\n{loop(step('c', '%e') + chr(10) + _ADD, '%d')}",
         [("c", "c", 1, _NO_SOURCE)]),
        (f"{load('l')}\n{step('f', '%l')}\n{step('e', '%f')}\n"
         f"{loop(step('c', '%e') + chr(10) + _ADD, '%d')}", [("c", "c", 1, _NO_SOURCE)]),
        (loop(f"{_BODY}\n{dot('d', '%acc')}", "%d"), _NOTHING),
        (loop(f"{_BODY}\n{dot('d', '%acc', a='%c', a_kind=_T, how='')}", "%d"), _NOTHING),
        (f"{_BODY}\n{_ADD.replace('%acc', '%zero')}", _NOTHING),
    ],
)  # fmt: skip
def test_registers_that_are_written_too_early(lines: str, found: list[Found]) -> None:
    assert overwrites(lines) == found


_CARRY = f"""%r:2 = scf.for %k = %by to %n step %by iter_args(%acc = %zero, %a = %ra) -> ({_T}, {_T}) : i32 {{
{dot("d", "%acc", a="%a", a_kind=_T)}
LINES
scf.yield %d, NEXT : {_T}, {_T}
}}"""  # noqa: E501


def test_operand_that_a_loop_carries() -> None:
    """The next step's registers are written where this one ends, and by what computes them."""
    kept = _CARRY.replace("LINES", "").replace("NEXT", "%a")
    assert overwrites(kept) == [("scf.yield", "scf.yield", 2, [])]
    loaded = _CARRY.replace("LINES", load("l")).replace("NEXT", "%l")
    assert overwrites(loaded) == [("l", "l", 2, [])]
    computed = _CARRY.replace("LINES", _BODY).replace("NEXT", "%c")
    assert overwrites(computed) == [("c", "c", 2, ["l"])]


def test_place_of_a_writer_is_what_holds_it_where_the_dot_is_unfinished() -> None:
    then, otherwise = f"{step('e', '%l')}\nscf.yield %e : {_T}", f"scf.yield %l : {_T}"
    chosen = f"%c = scf.if %flag -> ({_T}) {{\n{then}\n}} else {{\n{otherwise}\n}}"
    lines = loop(f"{load('l')}\n{chosen}\n{_ADD}", "%d")
    assert overwrites(lines) == [("scf.if", "scf.if", 1, ["l"])]


def test_writer_in_a_region_of_the_body() -> None:
    """It waits before what holds it, unless the dot is issued only in there."""
    inside = f"{_BODY}\n{_ADD}"
    assert overwrites(loop(branch(inside), "%acc")) == [("c", "scf.if", 0, _NO_SOURCE)]
    assert overwrites(loop(f"{branch(inside)}\n{wait('w', 0)}", "%acc")) == _NOTHING
    head = f"%q = scf.while (%p = %zero) : ({_T}) -> {_T} {{\nscf.condition(%flag) %p : {_T}\n}}"
    repeat = f"{head} do {{\n^bb0(%b: {_T}):\n{inside}\nscf.yield %b : {_T}\n}}"
    assert overwrites(loop(repeat, "%acc")) == [("c", "scf.while", 0, _NO_SOURCE)]
    for lines in (wait("w", 0), f"{wait('w', 0)}\n{dot('x')}"):
        assert overwrites(loop(f"{repeat}\n{lines}", "%acc")) == [("c", "c", 0, _NO_SOURCE)]


def test_what_the_operations_inside_of_a_writer_read() -> None:
    """Tensors from outside: neither other values nor what is computed in there."""
    lines = f'{load("e")}\n"test.at"(%kr) : (i32) -> ()\n{step("f", "%e")}\n{step("g", "%l")}'
    chosen = (f"%c = scf.if %flag -> ({_T}) {{\n{lines}\nscf.yield %f : {_T}\n}}"
              f" else {{\nscf.yield %l : {_T}\n}}")  # fmt: skip
    assert overwrites(loop(f"{load('l')}\n{chosen}\n{_ADD}", "%d")) == [
        ("scf.if", "scf.if", 1, ["l"])
    ]
    lines = f"{load('e')}\n{step('f', '%e')}\nscf.yield %f : {_T}"
    chosen = f"%i = scf.if %flag -> ({_T}) {{\n{lines}\n}} else {{\nscf.yield %zero : {_T}\n}}"
    used = op("c", "test.compute", ("%i", "%kr"), [_T, "i32"], "", _T)
    assert overwrites(loop(f"{chosen}\n{used}\n{_ADD}", "%d")) == [("c", "c", 1, ["scf.if"])]


def test_writer_in_an_inner_loop() -> None:
    inner = loop(f"{_BODY}\n{_ADD}", "%d", "%out", "q")
    assert overwrites(loop(inner, "%q", argument="out")) == [("c", "c", 1, ["l"])]


def test_dots_of_while_loops_are_not_followed() -> None:
    def names(line: str) -> list[str]:
        head = f"%r = scf.while (%p = %zero) : ({_T}) -> {_T} {{\nscf.condition(%flag) %p : {_T}\n"
        body = f"{_BODY}\n{line}\nscf.yield %d : {_T}"
        text = f"{head}}} do {{\n^bb0(%acc: {_T}):\n{body}\n}}"
        _module, function = kernel(text)
        return [tag(each) for each in find_not_followed(function)]

    assert names(_ADD) == ["d"]
    assert names(dot("d", "%acc")) == []
    assert names(_ADD.replace("%d =", "%e =") + f"\n{wait('d', 0, '%e')}") == []
    _module, function = kernel(loop(f"{_BODY}\n{_ADD}", "%d"))
    assert find_not_followed(function) == []
    # Another dot, with both operands in shared memory, is no matter.
    assert names(f"{dot('z')}\n{_ADD}") == ["d"]
