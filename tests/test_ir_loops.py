"""Loop views and effects on small generic modules."""

from __future__ import annotations

import pytest

from tilepass.ir import engine
from tilepass.ir.effects import Effect, effects_of, is_pure
from tilepass.ir.loops import (
    backward_slice,
    constant_int,
    defining_operation,
    loops_in,
    nest_of,
    outermost_loops,
)

NEST = """
"builtin.module"() ({
  "tt.func"() <{function_type = (i32, !tt.ptr<f32>) -> (), sym_name = "f"}> ({
  ^bb0(%n: i32, %p: !tt.ptr<f32>):
    %c0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %c2 = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %c7 = "arith.constant"() <{value = 7 : i32}> : () -> i32
    %r = "scf.for"(%c0, %n, %c2, %n) ({
    ^bb0(%i: i32, %x: i32):
      %bound = "tt.load"(%p) {isVolatile = false} : (!tt.ptr<f32>) -> i32
      %twice = "arith.addi"(%bound, %bound) : (i32, i32) -> i32
      %s = "scf.for"(%c0, %twice, %c2, %x) ({
      ^bb0(%j: i32, %y: i32):
        %z = "arith.addi"(%y, %j) : (i32, i32) -> i32
        "scf.yield"(%z) : (i32) -> ()
      }) : (i32, i32, i32, i32) -> i32
      "test.between"() : () -> ()
      "scf.for"(%c0, %c7, %c2) ({
      ^bb0(%k: i32):
        "scf.yield"() : () -> ()
      }) : (i32, i32, i32) -> ()
      "tt.store"(%p, %s) : (!tt.ptr<f32>, i32) -> ()
      "scf.yield"(%s) : (i32) -> ()
    }) {tt.flatten} : (i32, i32, i32, i32) -> i32
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


@pytest.fixture
def module() -> engine.Module:
    return engine.parse(NEST)


def test_bounds_and_carried_values(module: engine.Module) -> None:
    outer = outermost_loops(module)[0]
    assert constant_int(outer.lower_bound) == 0
    assert constant_int(outer.upper_bound) is None
    assert constant_int(outer.step) == 2
    assert outer.trip_count is None
    assert outer.attribute("tt.flatten") is not None
    assert outer.attribute("tt.absent") is None
    (carried,) = outer.carried
    assert carried.initial == outer.upper_bound
    assert carried.argument == outer.body.arguments[1]
    assert carried.yielded == outer.inner[0].carried[0].result
    assert carried.result == outer.operation.results[0]
    assert carried.argument != outer.induction_variable


def test_nesting(module: engine.Module) -> None:
    outer, first, second = loops_in(module)
    assert [loop.depth for loop in (outer, first, second)] == [0, 1, 1]
    assert outer.inner == (first, second)
    assert first.parent == outer
    assert first.inner == ()
    assert len({outer, first, second, first.parent}) == 3


def test_sections_of_a_nest(module: engine.Module) -> None:
    nest = nest_of(loops_in(module)[0])
    assert nest is not None
    names = [[operation.name for operation in section] for section in nest.sections]
    assert names == [["tt.load", "arith.addi"], ["test.between"], ["tt.store"]]
    assert [operation.name for operation in nest.before] == names[0]
    assert [operation.name for operation in nest.between] == names[1]
    assert [operation.name for operation in nest.after] == names[2]
    assert nest_of(nest.inner[0]) is None


@pytest.mark.parametrize(
    ("lower", "upper", "step", "trips"),
    [(0, 7, 2, 4), (0, 8, 2, 4), (3, 3, 1, 0), (5, 2, 1, 0), (-4, 3, 7, 1), (0, 7, 0, None)],
)
def test_trip_count(lower: int, upper: int, step: int, trips: int | None) -> None:
    constants = [
        f'%c{index} = "arith.constant"() <{{value = {value} : i32}}> : () -> i32'
        for index, value in enumerate((lower, upper, step))
    ]
    module = engine.parse(
        '"builtin.module"() ({\n'
        + "\n".join(constants)
        + '\n"scf.for"(%c0, %c1, %c2) ({\n^bb0(%i: i32):\n"scf.yield"() : () -> ()\n'
        "}) : (i32, i32, i32) -> ()\n}) : () -> ()"
    )
    assert loops_in(module)[0].trip_count == trips


def test_where_values_are_defined(module: engine.Module) -> None:
    outer, first, _ = loops_in(module)
    assert outer.defines(first.upper_bound)
    assert outer.defines(outer.induction_variable)
    assert not outer.defines(outer.upper_bound)
    assert not first.defines(first.upper_bound)
    load, add = (defining_operation(value) for value in _bound_chain(first.upper_bound))
    assert load is not None
    assert add is not None
    assert (load.name, add.name) == ("tt.load", "arith.addi")


def _bound_chain(bound: engine.ir.Value) -> tuple[engine.ir.Value, engine.ir.Value]:
    add = defining_operation(bound)
    assert add is not None
    return add.operands[0], bound


def test_slice_stays_within(module: engine.Module) -> None:
    outer, first, _ = loops_in(module)
    names = [op.name for op in backward_slice([first.upper_bound], outer.operation)]
    assert names == ["arith.addi", "tt.load"]
    assert backward_slice([first.upper_bound], first.operation) == []
    # A loop in the slice stands for its body, whose operands are followed as well.
    carried = outer.carried[0].yielded
    assert "tt.load" in [op.name for op in backward_slice([carried], outer.operation)]


def test_effects(module: engine.Module) -> None:
    outer, first, second = loops_in(module)
    assert is_pure(first.operation)
    assert is_pure(second.operation)
    assert effects_of(outer.operation) == Effect.READ | Effect.WRITE | Effect.OTHER


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ('"tt.load"() {isVolatile = false} : () -> i32', Effect.READ),
        ('"tt.load"() <{isVolatile = true}> : () -> i32', Effect.READ | Effect.OTHER),
        ('"tt.store"() : () -> ()', Effect.WRITE),
        ('"tt.atomic_rmw"() : () -> i32', Effect.READ | Effect.WRITE | Effect.SYNC),
        ('"ttng.warp_group_dot_wait"() : () -> ()', Effect.SYNC),
        ('"tt.print"() : () -> ()', Effect.OTHER),
        ('"tt.call"() : () -> ()', Effect.OTHER),
        ('"who.knows"() : () -> ()', Effect.OTHER),
        ('"tt.elementwise_inline_asm"() <{pure = true}> : () -> i32', Effect.NONE),
        ('"tt.elementwise_inline_asm"() <{pure = false}> : () -> i32', Effect.OTHER),
        ('"tt.dot"() : () -> i32', Effect.NONE),
        ('"math.exp2"() : () -> f32', Effect.NONE),
    ],
)
def test_effect_of_one(text: str, effect: Effect) -> None:
    if text.startswith('"math'):
        text = (
            '%c = "arith.constant"() <{value = 1.0 : f32}> : () -> f32\n'
            '%r = "math.exp2"(%c) : (f32) -> f32'
        )
    module = engine.parse(f'"builtin.module"() ({{\n{text}\n}}) : () -> ()')
    assert effects_of(module.operation) == effect
