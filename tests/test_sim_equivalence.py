"""Comparing two forms of a kernel: differences are found, and faults blamed on the right one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilepass.core.errors import OptionError, TilepassError
from tilepass.sim.equivalence import (
    Case,
    NotEquivalentError,
    assert_equivalent,
    cases,
    compare,
    execute,
    reservations,
)
from tilepass.sim.faults import OutOfBounds, UndefinedBehaviour
from tilepass.sim.inputs import Shapes, parse_shapes
from tilepass.testing import program_of

ADD = """
tt.func public @add(%x_ptr: !tt.ptr<f32> loc("x_ptr"), %y_ptr: !tt.ptr<f32> loc("y_ptr"),
    %n: i32 loc("n")) {
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %pid = tt.get_program_id x : i32
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %base = tt.splat %first : i32 -> tensor<64xi32>
  %at = arith.addi %base, %i : tensor<64xi32>
  %limit = tt.splat %n : i32 -> tensor<64xi32>
  %mask = arith.cmpi slt, %at, %limit : tensor<64xi32>
  %xs = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %x_at = tt.addptr %xs, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %x = tt.load %x_at, %mask : tensor<64x!tt.ptr<f32>>
  %two = arith.addf %x, %x : tensor<64xf32>
  %ys = tt.splat %y_ptr : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %y_at = tt.addptr %ys, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %y_at, %two, %mask : tensor<64x!tt.ptr<f32>>
  tt.return
}
"""
DOUBLE = ADD.replace("%two = arith.addf %x, %x", "%f = arith.constant dense<2.0> : tensor<64xf32>\n"
                     "  %two = arith.mulf %x, %f")  # fmt: skip
SHIFTED = ADD.replace("arith.cmpi slt", "arith.cmpi sle")
UNMASKED = ADD.replace("tt.load %x_at, %mask", "tt.load %x_at")


def equivalent(before: str, after: str, **options: Any) -> None:
    """Compare two texts."""
    assert_equivalent(program_of(before), program_of(after), **options)


def test_equal_kernels_pass() -> None:
    equivalent(ADD, ADD)
    equivalent(ADD, DOUBLE, shapes=["64", "100", "64,n=1"])


def test_a_difference_is_named_with_its_inputs() -> None:
    message = (
        r"y_ptr\[100\] is .* in the first kernel and .* in the second; 1 of 126736 elements differ"
        r"\nnote: with shapes 100, seed 0, grid 3,1,1"
    )
    with pytest.raises(NotEquivalentError, match=message):
        equivalent(ADD, SHIFTED, shapes=["100"])


def test_sizes_decide_what_is_found() -> None:
    """With full tiles the wrong mask does not show."""
    equivalent(ADD, SHIFTED, shapes=["64,n=192"])


def test_the_kernel_that_faults_is_named() -> None:
    with pytest.raises(OutOfBounds, match="in the second kernel, with shapes 64,x_ptr=100"):
        equivalent(ADD, UNMASKED, shapes=["64,x_ptr=100,y_ptr=100,n=100"])
    with pytest.raises(OutOfBounds) as caught:
        equivalent(UNMASKED, ADD, shapes=["64,x_ptr=100,y_ptr=100,n=100"])
    assert "second" not in str(caught.value)


def test_tolerance_is_relative_to_the_largest() -> None:
    almost = ADD.replace("%two = arith.addf %x, %x", "%f = arith.constant dense<2.001> : "
                         "tensor<64xf32>\n  %two = arith.mulf %x, %f")  # fmt: skip
    equivalent(ADD, almost, tolerance=0.002)
    with pytest.raises(NotEquivalentError):
        equivalent(ADD, almost, tolerance=0.0001)


def test_shapes_are_parsed_and_printed() -> None:
    parsed = parse_shapes("32, K=100,a_ptr=128x64,scale=0.5")
    assert parsed == Shapes(32, {"K": 100, "a_ptr": (128, 64), "scale": 0.5})
    assert parse_shapes(str(parsed)) == parsed


@pytest.mark.parametrize("text", ["K=", "128x64", "0.5", "a=b", "a=1x"])
def test_wrong_shapes_are_named(text: str) -> None:
    with pytest.raises(OptionError, match=text.split("=", maxsplit=1)[0]):
        parse_shapes(text)


def test_unknown_and_unfit_parameters_are_named() -> None:
    with pytest.raises(OptionError, match=r"no parameter 'm'.*parameters: x_ptr, y_ptr, n"):
        equivalent(ADD, ADD, shapes=["64,m=3"])
    with pytest.raises(OptionError, match="parameter n is a number"):
        equivalent(ADD, ADD, shapes=["64,n=3x3"])
    with pytest.raises(OptionError, match="parameter x_ptr is an array"):
        equivalent(ADD, ADD, shapes=["64,x_ptr=0.5"])


def test_a_kernel_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "kernels.mlir"
    file.write_text(ADD + DOUBLE.replace("@add", "@double"))
    assert_equivalent(program_of(file, "add"), program_of(file, "double"))
    with pytest.raises(TilepassError, match=r"2 public functions \(add, double\): name the one"):
        program_of(file)


def test_inputs_depend_on_the_seed_alone() -> None:
    program = program_of(ADD)
    one, again, other = (
        execute(program, cases([program], ["64"], seed + 1, None)[seed]).arguments
        for seed in (0, 0, 1)
    )
    assert np.array_equal(np.asarray(one["x_ptr"]), np.asarray(again["x_ptr"]))
    assert not np.array_equal(np.asarray(one["x_ptr"]), np.asarray(other["x_ptr"]))


QUOTIENT = ADD.replace("f32", "i32").replace(
    "%two = arith.addf %x, %x", "%y0 = tt.splat %y_ptr : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>\n"
    "  %y1 = tt.addptr %y0, %at : tensor<64x!tt.ptr<i32>>, tensor<64xi32>\n"
    "  %y = tt.load %y1, %mask : tensor<64x!tt.ptr<i32>>\n  %two = arith.divsi %x, %y"
)  # fmt: skip
GUARDED = QUOTIENT.replace("%two = arith.divsi %x, %y", "%c0 = arith.constant dense<0> : "
    "tensor<64xi32>\n  %c1 = arith.constant dense<1> : tensor<64xi32>\n"
    "  %z = arith.cmpi eq, %y, %c0 : tensor<64xi32>\n"
    "  %d = arith.select %z, %c1, %y : tensor<64xi1>, tensor<64xi32>\n  %two = arith.divsi %x, %d"
)  # fmt: skip


def test_where_the_first_is_poison_the_second_may_be_anything() -> None:
    """Quotients by zero, which the second kernel defines; others have to be the same."""
    equivalent(QUOTIENT, GUARDED)
    with pytest.raises(NotEquivalentError, match=r"second; [1-9]"):
        equivalent(QUOTIENT, GUARDED.replace("divsi", "divui"))


def test_poison_where_the_first_has_none_is_a_difference() -> None:
    with pytest.raises(NotEquivalentError, match=r"poison \(division by zero\) in the second"):
        equivalent(GUARDED.replace("divsi", "divui"), QUOTIENT.replace("divsi", "divui"))


def test_poison_alone_is_a_fault() -> None:
    program = program_of(QUOTIENT)
    with pytest.raises(UndefinedBehaviour, match="a stored value is poison"):
        execute(program, next(iter(cases([program], ["64"], 1, None))))


ASSERTED = ADD.replace(
    "%two =", "%finite = arith.cmpf oeq, %x, %x : tensor<64xf32>\n"
    '  tt.assert %finite, "no NaN" : tensor<64xi1>\n  %two ='
).replace("tt.load %x_at, %mask", "tt.load %x_at, %mask, %zero").replace(
    "%x =", "%zero = arith.constant dense<0.0> : tensor<64xf32>\n  %x ="
)  # fmt: skip


def test_what_the_first_kernel_rules_out_is_left_out_and_said() -> None:
    program = program_of(ASSERTED)
    runs = [compare(program, program, case) for case in cases([program], ["64"], 3, None)]
    said = reservations(runs, program, program)
    assert said[0].startswith("special values in part only")
    assert said[0].endswith("tt.assert: assertion failed: no NaN")
    assert said[1] == "not compared: assertions that hold, arguments that overlap"


SHARED = """
tt.func @kernel(%out: !tt.ptr<i32> loc("out")) {{
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c7 = arith.constant 7 : i32
  %pid = tt.get_program_id x : i32
  %other = arith.subi %c2, %pid : i32
  %one = arith.divsi {tile}, {tile} : i32
  %first = arith.cmpi eq, {tile}, %c0 : i32
  %guarded = arith.select %first, %c7, %one : i32
  %at = tt.addptr %out, {tile} : !tt.ptr<i32>, i32
  tt.store %at, {value} : !tt.ptr<i32>
  tt.return
}}
"""


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_programs_may_share_work_in_another_way(tolerance: float) -> None:
    """Also where the first kernel leaves poison in what one of its programs writes."""
    before, after = (
        program_of(SHARED.format(tile=tile, value="%guarded" if tolerance else value))
        for tile, value in (("%pid", "%one"), ("%other", "%guarded"))
    )
    for seed in range(3):
        case = Case(Shapes(64), seed, (3, 1, 1), ((0, 0, 0),))
        compare(before, after, case, tolerance)
