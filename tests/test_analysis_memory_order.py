"""Where pointers come from, and which accesses of a nest may not change places."""

from __future__ import annotations

import pytest

from tests.protocol_support import module_of
from tilepass.analysis.memory_order import effect_obstacle, memory_obstacle, root_of, roots_of
from tilepass.ir.engine import Module, ir, operations, parse
from tilepass.ir.loops import LoopNest, nest_of, outermost_loops

_POINTERS = """
tt.func @kernel(%a: !tt.ptr<i32>, %b: !tt.ptr<i32>, %n: i32, %flag: i1,
                %table: !tt.ptr<i64>, %number: i64) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  LINES
  %value = tt.load %POINTER : TYPE
  tt.return
}
"""
_PTR, _PTRS, _PLANE = "!tt.ptr<i32>", "tensor<16x!tt.ptr<i32>>", "tensor<1x16x!tt.ptr<i32>>"
_SPLAT = f"%s = tt.splat %a : {_PTR} -> {_PTRS}"


_IN_BLOCK = f"    %v = tt.load %b : {_PTR}\n    tt.store %b, %v : {_PTR}\n"


def carried(first: str, second: str, yields: str, name: str = "%r#0") -> str:
    """A loop that carries two pointers; `x` is one of its results."""
    return f"""
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = {first}, %q = {second}) -> ({_PTR}, {_PTR}) : i32 {{
    %next = tt.addptr %p, %c1 : {_PTR}, i32
    scf.yield {yields} : {_PTR}, {_PTR}
  }}
  %x = tt.addptr {name}, %c1 : {_PTR}, i32"""  # noqa: E501


def chosen(first: str, second: str, number: int) -> str:
    return f"""
  %r:2 = scf.if %flag -> ({_PTR}, {_PTR}) {{
    scf.yield %a, {first} : {_PTR}, {_PTR}
  }} else {{
    scf.yield %a, {second} : {_PTR}, {_PTR}
  }}
  %x = tt.addptr %r#{number}, %c1 : {_PTR}, i32"""


@pytest.mark.parametrize(
    ("lines", "kind", "roots"),
    [
        (f"%x = tt.addptr %a, %c1 : {_PTR}, i32", _PTR, {0}),
        (f"%x = tt.addptr %b, %n : {_PTR}, i32", _PTR, {1}),
        (f"%y = tt.addptr %b, %n : {_PTR}, i32\n  %x = tt.addptr %y, %n : {_PTR}, i32", _PTR, {1}),
        (f"{_SPLAT}\n  %x = tt.expand_dims %s {{axis = 0 : i32}} : {_PTRS} -> {_PLANE}", _PLANE,
         {0}),
        (f"%x = arith.select %flag, %a, %b : {_PTR}", _PTR, {0, 1}),
        (f"%x = arith.select %flag, %b, %b : {_PTR}", _PTR, {1}),
        (f"%z = tt.load %table : !tt.ptr<i64>\n  %y = tt.int_to_ptr %z : i64 -> {_PTR}\n"
         f"  %x = tt.addptr %y, %c1 : {_PTR}, i32", _PTR, None),
        (f"%x = tt.int_to_ptr %number : i64 -> {_PTR}", _PTR, None),
        (f"%y = tt.int_to_ptr %number : i64 -> {_PTR}\n"
         f"  %x = arith.select %flag, %a, %y : {_PTR}", _PTR, None),
        (chosen("%a", "%b", 0), _PTR, {0}),
        (chosen("%a", "%b", 1), _PTR, {0, 1}),
        (chosen("%b", "%b", 1), _PTR, {1}),
        (chosen("%a", "%b", 1).replace("    scf.yield", f"{_IN_BLOCK}    scf.yield"), _PTR, {0, 1}),
        (carried("%a", "%b", "%next, %q"), _PTR, {0}),
        (carried("%a", "%b", "%next, %q", "%r#1"), _PTR, {1}),
        # What a loop carries may be what it yields in any trip.
        (carried("%a", "%b", "%q, %p"), _PTR, {0, 1}),
        (carried("%a", "%b", "%q, %q"), _PTR, {0, 1}),
        (carried("%a", "%b", "%next, %next", "%r#1"), _PTR, {0, 1}),
        (carried("%b", "%b", "%next, %q"), _PTR, {1}),
    ],
)  # fmt: skip
def test_roots_of_pointers(lines: str, kind: str, roots: set[int] | None) -> None:
    pointer, _module = loaded(lines, kind)
    assert roots_of(pointer) == roots
    assert root_of(pointer) == (min(roots) if roots and len(roots) == 1 else None)


def loaded(lines: str, kind: str) -> tuple[ir.Value, Module]:
    """What the last load takes."""
    text = _POINTERS.replace("LINES", lines).replace("%POINTER", "%x").replace("TYPE", kind)
    module = module_of(text, "kernel.ttir")
    *_, load = (each for each in operations(module) if each.name == "tt.load")
    return load.operands[0], module


def test_root_of_what_a_loop_carries_is_asked_inside_too() -> None:
    lines = carried("%a", "%b", "%q, %p").replace(
        "    %next", f"    %v = tt.load %p : {_PTR}\n    %next"
    )
    _, module = loaded(lines, _PTR)
    first = next(each for each in operations(module) if each.name == "tt.load")
    assert roots_of(first.operands[0]) == {0, 1}
    _, module = loaded(
        f"""
  %x = scf.while (%p = %a) : ({_PTR}) -> {_PTR} {{
    scf.condition(%flag) %p : {_PTR}
  }} do {{
  ^bb0(%q: {_PTR}):
    %v = tt.load %q : {_PTR}
    scf.yield %q : {_PTR}
  }}""",
        _PTR,
    )
    inside, behind = (each for each in operations(module) if each.name == "tt.load")
    assert roots_of(inside.operands[0]) is None
    assert roots_of(behind.operands[0]) is None


def test_root_of_each_that_a_loop_carries_inside() -> None:
    for name, root in (("%p", 0), ("%q", 1)):
        lines = carried("%a", "%b", "%next, %q").replace(
            "    %next", f"    %v = tt.load {name} : {_PTR}\n    %next"
        )
        _, module = loaded(lines, _PTR)
        first = next(each for each in operations(module) if each.name == "tt.load")
        assert roots_of(first.operands[0]) == {root}


@pytest.mark.parametrize("place", [0, 1])
def test_root_of_what_a_while_loop_carries_is_not_followed(place: int) -> None:
    one, other = (("%p", "%q"), ("%q", "%p"))[place]
    _, module = loaded(
        f"""
  %r:2 = scf.while ({one} = %a, {other} = %b) : ({_PTR}, {_PTR}) -> ({_PTR}, {_PTR}) {{
    scf.condition(%flag) {one}, {other} : {_PTR}, {_PTR}
  }} do {{
  ^bb0({one}1: {_PTR}, {other}1: {_PTR}):
    %v = tt.load %p1 : {_PTR}
    scf.yield {one}1, {other}1 : {_PTR}, {_PTR}
  }}
  %x = tt.addptr %r#{place}, %c1 : {_PTR}, i32""",
        _PTR,
    )
    inside, behind = (each for each in operations(module) if each.name == "tt.load")
    assert roots_of(inside.operands[0]) is None
    assert roots_of(behind.operands[0]) is None


# ---- nests ---------------------------------------------------------------------------------------

_NEST = """
tt.func @kernel(%a: !tt.ptr<i32>, %b: !tt.ptr<i32>, %n: i32, %flag: i1, %number: i64) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %u = tt.int_to_ptr %number : i64 -> !tt.ptr<i32>
  scf.for %tile = %c0 to %n step %c1 : i32 {
    BEFORE
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %c0) -> (i32) : i32 {
      INNER
      scf.yield %acc : i32
    }
    AFTER
  }
  tt.return
}
"""
_LOAD_A = "%l = tt.load %a : !tt.ptr<i32>"
_LOAD_U = "%l = tt.load %u : !tt.ptr<i32>"
_LOAD_MASKED = "%l = tt.load %a, %flag, %c1 : !tt.ptr<i32>"
_STORE_B = "tt.store %b, %c1 : !tt.ptr<i32>"
_STORE_A = "tt.store %a, %c1 : !tt.ptr<i32>"
_STORE_U = "tt.store %u, %c1 : !tt.ptr<i32>"
_ATOMIC = "%o = tt.atomic_rmw add, relaxed, gpu, %b, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32"
_ATOMIC_A = _ATOMIC.replace("%b", "%a")
_ATOMIC_USED = _ATOMIC + "\n    tt.store %b, %o : !tt.ptr<i32>"
_PRINT = 'tt.print "x" {hex = false, isSigned = array<i32: 1>} : %c1 : i32'
_MAY = "may read what the tile loop stores"
_ORDERS = "orders memory accesses or has unknown effects"
_BETWEEN = "between the two loops has side effects"
_NOTHING = "the inner loop accesses no memory"


_COMPUTED = "%f = arith.cmpi slt, %n, %c1 : i32\n    "


def under(line: str) -> str:
    return f"scf.if %flag {{\n      {line}\n    }}"


def both(one: str, other: str) -> str:
    return f"scf.if %flag {{\n      {one}\n    }} else {{\n      {other}\n    }}"


def nest(before: str, inner: str, after: str) -> tuple[Module, LoopNest]:
    text = _NEST.replace("BEFORE", before).replace("INNER", inner).replace("AFTER", after)
    module = module_of(text, "kernel.ttir")
    found = nest_of(outermost_loops(module)[0])
    assert found is not None
    return module, found


@pytest.mark.parametrize(
    ("before", "inner", "after", "effects", "memory"),
    [
        ("", _LOAD_A, _STORE_B, None, None),
        ("", "", _STORE_B, _NOTHING, None),
        (_LOAD_A, _LOAD_A.replace("%l", "%m"), _STORE_B, None, None),
        (_LOAD_A, "", _STORE_B, _NOTHING, None),
        (under(_LOAD_A), _LOAD_A, _STORE_B, None, None),
        (_STORE_B, _LOAD_A, "", _BETWEEN, None),
        (under(_STORE_B), _LOAD_A, "", _BETWEEN, None),
        (_PRINT, _LOAD_A, _STORE_B, _BETWEEN, None),
        (_ATOMIC, _LOAD_A, "", _BETWEEN, None),
        ("", _LOAD_A, _PRINT, _ORDERS, None),
        ("", _LOAD_A + "\n" + _PRINT, _STORE_B, _ORDERS, None),
        ("", _LOAD_A, under(_PRINT), _ORDERS, None),
        # An atomic of which nobody uses the result is a store.
        ("", _LOAD_A, _ATOMIC, None, None),
        ("", _LOAD_A, under(_ATOMIC), None, None),
        ("", _LOAD_A, _ATOMIC_USED, _ORDERS, None),
        ("", _LOAD_A, _ATOMIC_A, None, _MAY),
        ("", _LOAD_A, _STORE_A, None, _MAY),
        ("", _LOAD_A, under(_STORE_A), None, _MAY),
        ("", under(_LOAD_A), _STORE_A, None, _MAY),
        # A condition that is computed is not a pointer.
        ("", _LOAD_A, _COMPUTED + under(_STORE_B).replace("%flag", "%f"), None, None),
        ("", _COMPUTED + under(_LOAD_A).replace("%flag", "%f"), _STORE_B, None, None),
        (_LOAD_A, _LOAD_A.replace("%l", "%m").replace("%a", "%b"), _STORE_A, None, _MAY),
        # What is loaded behind the inner loop comes where it came.
        ("", _LOAD_A, _LOAD_A + "\n    " + _STORE_B, None, None),
        ("", _LOAD_A, _LOAD_A.replace("%a", "%b") + "\n    " + _STORE_B, None, None),
        ("", _LOAD_MASKED, _STORE_B, None, None),
        ("", _LOAD_MASKED.replace("%a,", "%b,"), _STORE_B, None, _MAY),
        ("", under(_LOAD_MASKED), _STORE_B, None, None),
        ("", both(_LOAD_A, _LOAD_A.replace("%l", "%m")), _STORE_B, None, None),
        ("", both(_LOAD_A, _LOAD_A.replace("%a", "%b")), _STORE_B, None, _MAY),
        # Anything may be where an unknown pointer points.
        ("", _LOAD_U, _STORE_B, None, _MAY),
        ("", _LOAD_A, _STORE_U, None, _MAY),
        ("", _LOAD_A, _STORE_B + "\n    " + _STORE_U, None, _MAY),
        ("", _LOAD_U, "", None, None),
        ("", _LOAD_A + "\n      " + _STORE_B, "", None, None),
        ("", _LOAD_A + "\n      " + _STORE_A, "", None, _MAY),
    ],
)
def test_accesses_that_may_not_change_places(
    before: str, inner: str, after: str, effects: str | None, memory: str | None
) -> None:
    _module, found = nest(before, inner, after)
    for obstacle, expected in (
        (effect_obstacle(found), effects), (memory_obstacle(found), memory),
    ):  # fmt: skip
        assert (obstacle is None) == (expected is None), obstacle
        assert obstacle is None or (expected or "") in obstacle.reason


_CHIP = """
func.func @kernel(%p: !tt.ptr<i32>, %n: index, %one: index, %m: !ttg.memdesc<1>) {
  scf.for %tile = %one to %n step %one {
    scf.for %k = %one to %n step %one {
      %l = "tt.load"(%p) : (!tt.ptr<i32>) -> i32
      LINE
    }
  }
  return
}
"""


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ('%x = "ttg.local_alloc"(%l) : (i32) -> !ttg.memdesc<1>', False),
        ('%x = "ttg.local_alloc"() : () -> !ttg.memdesc<1>', True),
        ('%x = "ttg.local_load"(%m) : (!ttg.memdesc<1>) -> i32', False),
        ('"ttg.local_store"(%l, %m) : (i32, !ttg.memdesc<1>) -> ()', False),
        ('"ttg.async_wait"() : () -> ()', True),
        ('"test.do"() : () -> ()', True),
        ('"test.do"() ({\n"test.end"() : () -> ()\n}) : () -> ()', True),
        ('"test.do"() ({\n%z = arith.constant 1 : i32\n}) : () -> ()', True),
    ],
)
def test_buffers_on_the_chip(line: str, refused: bool) -> None:
    """One that is filled when it is made is a value; one that is filled later is memory."""
    module = parse(_CHIP.replace("LINE", line))
    found = nest_of(outermost_loops(module)[0])
    assert found is not None
    obstacle = effect_obstacle(found)
    assert (obstacle is not None) == refused
    assert obstacle is None or _ORDERS in obstacle.reason
