"""The simulator's scalar arithmetic, control flow and memory against MLIR's rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilepass.sim.arguments import Uninitialized
from tilepass.sim.faults import (
    ArgumentError,
    AssertionFailed,
    MemoryMisuse,
    OutOfBounds,
    StepLimit,
    UndefinedBehaviour,
    UninitializedRead,
    UnsupportedOperationsError,
)
from tilepass.sim.values import run
from tilepass.testing import program_of

BINARY = """
tt.func @kernel(%out: !tt.ptr<{kind}>, %a: {kind}, %b: {kind}) {{
  %r = arith.{operation} %a, %b {flags} : {kind}
  tt.store %out, %r : !tt.ptr<{kind}>
  tt.return
}}
"""
TENSOR_BINARY = """
tt.func @kernel(%out: !tt.ptr<{kind}>, %a: {kind}, %b: {kind}) {{
  %x = tt.splat %a : {kind} -> tensor<4x{kind}>
  %y = tt.splat %b : {kind} -> tensor<4x{kind}>
  %r = arith.{operation} %x, %y {flags} : tensor<4x{kind}>
  %p = tt.splat %out : !tt.ptr<{kind}> -> tensor<4x!tt.ptr<{kind}>>
  tt.store %p, %r : tensor<4x!tt.ptr<{kind}>>
  tt.return
}}
"""
MIN32, MAX32 = -(2**31), 2**31 - 1


def execute(text: str, *arguments: Any, grid: tuple[int, ...] = (1,), limit: int = 10_000) -> None:
    run(program_of(text), arguments, grid, step_limit=limit)


def binary(operation: str, a: int, b: int, kind: str = "i32", flags: str = "") -> set[int]:
    """What a scalar and a tensor operation give."""
    found: set[int] = set()
    for template in (BINARY, TENSOR_BINARY):
        out = np.zeros(1, {"i32": np.int32, "i8": np.int8}[kind])
        execute(template.format(operation=operation, kind=kind, flags=flags), out, a, b)
        found.add(int(out[0]))
    return found


@pytest.mark.parametrize(
    ("operation", "a", "b", "result"),
    [
        ("addi", MAX32, 1, MIN32),
        ("subi", MIN32, 1, MAX32),
        ("muli", 65536, 65536, 0),
        ("divsi", -7, 2, -3),
        ("divui", -1, 2, MAX32),
        ("remsi", -7, 2, -1),
        ("remui", -1, 16, 15),
        ("ceildivsi", -7, 2, -3),
        ("ceildivsi", 7, 2, 4),
        ("ceildivui", -1, 2, MIN32),
        ("floordivsi", -7, 2, -4),
        ("maxsi", -1, 1, 1),
        ("maxui", -1, 1, -1),
        ("minsi", -1, 1, -1),
        ("minui", -1, 1, 1),
        ("shli", 1, 31, MIN32),
        ("shrsi", -8, 1, -4),
        ("shrui", -8, 1, 0x7FFFFFFC),
        ("andi", -8, 12, 8),
        ("ori", 8, 1, 9),
        ("xori", -1, 1, -2),
    ],
)
def test_integers_wrap_and_have_a_sign(operation: str, a: int, b: int, result: int) -> None:
    assert binary(operation, a, b) == {result}


def test_every_byte_sum_and_product_wraps() -> None:
    for a, b in [(127, 1), (-128, -1), (100, 100), (-128, -128)]:
        assert binary("addi", a, b, "i8") == {(a + b + 128) % 256 - 128}
        assert binary("muli", a, b, "i8") == {(a * b + 128) % 256 - 128}


@pytest.mark.parametrize(
    ("operation", "a", "b", "flags", "cause"),
    [
        ("divsi", 1, 0, "", "division by zero"),
        ("remui", 1, 0, "", "division by zero"),
        ("divsi", MIN32, -1, "", "does not fit|division"),
        ("shli", 1, 32, "", "shift by the width"),
        ("shrsi", 1, -1, "", "shift by the width"),
        ("addi", MAX32, 1, "overflow<nsw>", "overflow"),
        ("muli", -1, 2, "overflow<nuw>", "overflow"),
    ],
)
def test_poison_is_reported_where_it_is_stored(
    operation: str, a: int, b: int, flags: str, cause: str
) -> None:
    for template in (BINARY, TENSOR_BINARY):
        text = template.format(operation=operation, kind="i32", flags=flags)
        with pytest.raises(UndefinedBehaviour, match=f"stored value is poison.*({cause})"):
            execute(text, np.zeros(1, np.int32), a, b)


def test_poison_that_decides_nothing_is_no_error() -> None:
    out = np.zeros(1, np.int32)
    execute(
        """
        tt.func @kernel(%out: !tt.ptr<i32>, %n: i32) {
          %c0 = arith.constant 0 : i32
          %q = arith.divsi %n, %c0 : i32
          %more = arith.addi %q, %n : i32
          %false = arith.constant false
          %r = arith.select %false, %more, %n : i32
          tt.store %out, %r : !tt.ptr<i32>
          tt.return
        }
        """,
        out,
        7,
    )
    assert out[0] == 7


def test_branch_on_poison_is_reported_with_its_line() -> None:
    text = """tt.func @kernel(%out: !tt.ptr<i32>, %n: i32) {
      %c0 = arith.constant 0 : i32
      %q = arith.remsi %n, %c0 : i32
      %c = arith.cmpi slt, %q, %n : i32
      scf.if %c {
        tt.store %out, %n : !tt.ptr<i32>
      }
      tt.return
    }"""
    with pytest.raises(UndefinedBehaviour, match=r"<text>:5:7: error: scf.if: a poison value"):
        execute(text, np.zeros(1, np.int32), 1)


NEST = """
tt.func @kernel(%out: !tt.ptr<i32>, %lower: i32, %upper: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %sum:2 = scf.for %i = %lower to %upper step %step iter_args(%s = %c0, %n = %c0) -> (i32, i32)
      : i32 {
    %t = arith.addi %s, %i : i32
    %m = arith.addi %n, %c1 : i32
    scf.yield %t, %m : i32, i32
  }
  tt.store %out, %sum#0 : !tt.ptr<i32>
  %next = tt.addptr %out, %c1 : !tt.ptr<i32>, i32
  tt.store %next, %sum#1 : !tt.ptr<i32>
  tt.return
}
"""


@pytest.mark.parametrize("bounds", [(0, 5, 1), (3, 3, 1), (5, 0, 1), (-4, 4, 3), (2, 3, 9)])
def test_for_loops(bounds: tuple[int, int, int]) -> None:
    out = np.zeros(2, np.int32)
    execute(NEST, out, *bounds)
    assert out.tolist() == [sum(range(*bounds)), len(range(*bounds))]


def test_a_step_of_zero_is_an_error() -> None:
    with pytest.raises(MemoryMisuse, match="a loop with step 0"):
        execute(NEST, np.zeros(2, np.int32), 0, 5, 0)


def test_step_limit_names_the_loop() -> None:
    text = """tt.func @kernel(%n: i32) {
      scf.while : () -> () {
        %c = arith.cmpi eq, %n, %n : i32
        scf.condition(%c)
      } do {
        scf.yield
      }
      tt.return
    }"""
    with pytest.raises(StepLimit, match=r"<text>:2:7: error: scf.while: the step limit"):
        execute(text, 1)


def test_calls_and_early_returns() -> None:
    text = """
    tt.func public @kernel(%out: !tt.ptr<i32>, %n: i32) {
      %c10 = arith.constant 10 : i32
      %small = arith.cmpi slt, %n, %c10 : i32
      cf.cond_br %small, ^yes, ^no(%n : i32)
    ^yes:
      tt.return
    ^no(%v: i32):
      %r = tt.call @square(%v) : (i32) -> i32
      tt.store %out, %r : !tt.ptr<i32>
      tt.return
    }
    tt.func private @square(%x: i32) -> i32 attributes {noinline = true} {
      %r = arith.muli %x, %x : i32
      tt.return %r : i32
    }
    """
    out = np.zeros(1, np.int32)
    execute(text, out, 9)
    assert out[0] == 0
    execute(text, out, 11)
    assert out[0] == 121


def test_programs_of_a_grid_run_in_order() -> None:
    text = """
    tt.func @kernel(%out: !tt.ptr<i32>) {
      %x = tt.get_program_id x : i32
      %y = tt.get_program_id y : i32
      %n = tt.get_num_programs x : i32
      %row = arith.muli %y, %n : i32
      %at = arith.addi %row, %x : i32
      %p = tt.addptr %out, %at : !tt.ptr<i32>, i32
      tt.store %p, %at : !tt.ptr<i32>
      tt.return
    }
    """
    out = np.zeros(6, np.int32)
    execute(text, out, grid=(3, 2))
    assert out.tolist() == list(range(6))


COPY = """tt.func @kernel(%in: !tt.ptr<f32> loc("in"), %out: !tt.ptr<f32> loc("out"), %n: i32) {
  %p = tt.addptr %in, %n : !tt.ptr<f32>, i32
  %x = tt.load %p : !tt.ptr<f32>
  tt.store %out, %x : !tt.ptr<f32>
  tt.return
}"""


def test_reads_out_of_bounds_and_of_nothing_are_located() -> None:
    source, out = np.arange(4, dtype=np.float32), np.zeros(1, np.float32)
    execute(COPY, source, out, 3)
    assert out[0] == 3
    for index in (4, -1, 2**31 - 1):
        with pytest.raises(OutOfBounds, match=rf"<text>:3:8: .*reads element {index} of in"):
            execute(COPY, source, out, index)
    with pytest.raises(UninitializedRead, match="element 2 of in, never written"):
        execute(COPY, Uninitialized(source), out, 2)
    with pytest.raises(UninitializedRead):
        execute(COPY, np.zeros((4, 4), np.float32)[:, :2], out, 3)


def test_a_written_element_may_be_read() -> None:
    text = COPY.replace("%x = tt.load", "tt.store %p, %one : !tt.ptr<f32>\n  %x = tt.load")
    text = text.replace("{\n", "{\n  %one = arith.constant 1.0 : f32\n", 1)
    out = np.zeros(1, np.float32)
    execute(text, Uninitialized(np.zeros(4, np.float32)), out, 2)
    assert out[0] == 1


def test_assertions_and_assumptions() -> None:
    text = """tt.func @kernel(%n: i32) {{
      %c0 = arith.constant 0 : i32
      %c = arith.cmpi sgt, %n, %c0 : i32
      {check}
      tt.return
    }}"""
    for check in ("llvm.intr.assume %c : i1",):
        execute(text.format(check=check), 1)
        with pytest.raises(AssertionFailed, match="<text>:4"):
            execute(text.format(check=check), 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(1, np.float32),), "1 arguments for the 2 parameters"),
        ((np.zeros(1, np.int32), 16), "parameter p: elements are f32, the array's int32"),
        ((3, 16), "parameter p is an array, not int"),
        ((np.zeros(1, np.float32), 1.5), "parameter n is an integer of type i32, not float"),
        ((np.zeros(1, np.float32), 2**40), "does not fit i32"),
        ((np.zeros(1, np.float32), 8), "compiled for multiples of 16, not for 8"),
        (({"p": 1}), "no argument for parameter n"),
        (({"p": 1, "m": 1}), "no parameter 'm'"),
    ],
)
def test_wrong_arguments_are_named(arguments: Any, message: str) -> None:
    program = program_of(
        'tt.func @kernel(%p: !tt.ptr<f32> loc("p"), %n: i32 {tt.divisibility = 16 : i32} loc("n"))'
        " { tt.return }"
    )
    with pytest.raises(ArgumentError, match=message):
        run(program, arguments)


def test_unknown_operations_are_all_listed() -> None:
    text = """tt.func @kernel(%x: tensor<4xf32>) {
      %0 = tt.elementwise_inline_asm "ex2.approx.f32 $0, $1;" {constraints = "=f,f",
          packed_element = 1 : i32, pure = true} %x : tensor<4xf32> -> tensor<4xf32>
      %1 = tt.extern_elementwise %0 {libname = "", libpath = "", pure = true,
          symbol = "__nv_j0f"} : (tensor<4xf32>) -> tensor<4xf32>
      tt.return
    }"""
    with pytest.raises(UnsupportedOperationsError) as caught:
        program_of(text)
    first, second = str(caught.value).splitlines()
    assert "<text>:2:12: error: tt.elementwise_inline_asm" in first
    assert "instruction 'ex2.approx.f32'" in first
    assert "<text>:4:12: error: tt.extern_elementwise" in second
    assert "'__nv_j0f'" in second
