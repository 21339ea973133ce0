"""What becomes of arguments, and which values they are given for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilepass.sim.compiler import Program
from tilepass.sim.inputs import Kind, Shapes, Values, make_arguments
from tilepass.sim.roles import Role
from tilepass.testing import program_of

_HEAD = """
tt.func @kernel(%p: !tt.ptr<i32> loc("p"), %q: !tt.ptr<i32> loc("q"), %x: !tt.ptr<f32> loc("x"),
    %out: !tt.ptr<i32> loc("out"), %n: i32 loc("n"), %k: i32 loc("k"), %f: f32 loc("f")) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1.0 : f32
  %v = tt.load %p : !tt.ptr<i32>
  {body}
  tt.return
}}
"""


def program(*lines: str) -> Program:
    """A kernel with `%v` loaded through `p`."""
    return program_of(_HEAD.format(body="\n  ".join(lines)))


_LOAD_AT_V = ("%at = tt.addptr %q, %v : !tt.ptr<i32>, i32", "%w = tt.load %at : !tt.ptr<i32>")


@pytest.mark.parametrize(
    ("lines", "places"),
    [
        (["tt.store %out, %v : !tt.ptr<i32>"], set[str]()),
        ([*_LOAD_AT_V], {"p"}),
        ([*_LOAD_AT_V, "%o = tt.addptr %out, %w : !tt.ptr<i32>, i32",
          "tt.store %o, %k : !tt.ptr<i32>"], {"p", "q"}),
        # Through a loop: what it carries, what it yields, and its bounds.
        (["%s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %v) -> (i32) : i32 {",
          "  %b = arith.addi %a, %k : i32", "  scf.yield %b : i32", "}",
          "%o = tt.addptr %out, %s : !tt.ptr<i32>, i32", "tt.store %o, %c0 : !tt.ptr<i32>"],
         {"p", "n", "k"}),
        # The carried sum goes nowhere but into memory.
        (["%s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %v) -> (i32) : i32 {",
          "  %b = arith.addi %a, %k : i32", "  scf.yield %b : i32", "}",
          "tt.store %out, %s : !tt.ptr<i32>"], {"n"}),
        # Masks of integers guard addresses; a comparison of floats says nothing about them.
        (["%m = arith.cmpi slt, %v, %n : i32", "tt.store %out, %c0, %m : !tt.ptr<i32>"],
         {"p", "n"}),
        (["%y = tt.load %x : !tt.ptr<f32>", "%m = arith.cmpf olt, %y, %f : f32",
          "tt.store %out, %k, %m : !tt.ptr<i32>"], set[str]()),
        # A float that is made an index.
        (["%y = tt.load %x : !tt.ptr<f32>", "%i = arith.fptosi %y : f32 to i32",
          "%o = tt.addptr %out, %i : !tt.ptr<i32>, i32", "tt.store %o, %k : !tt.ptr<i32>"], {"x"}),
        (["%m = arith.cmpi slt, %k, %c0 : i32", "scf.if %m {",
          "  tt.store %out, %v : !tt.ptr<i32>", "}"], {"k"}),
        (["%s:2 = scf.while (%a = %v, %b = %n) : (i32, i32) -> (i32, i32) {",
          "  %m = arith.cmpi slt, %a, %c1 : i32", "  scf.condition(%m) %a, %b : i32, i32",
          "} do {", "^bb0(%a: i32, %b: i32):", "  %d = arith.addi %a, %k : i32",
          "  scf.yield %d, %b : i32, i32", "}", "tt.store %out, %s#1 : !tt.ptr<i32>"],
         {"p", "k"}),
        (["%c = arith.cmpi sge, %v, %c0 : i32", "llvm.intr.assume %c : i1"], {"p"}),
    ],
)  # fmt: skip
def test_what_reaches_an_address(lines: list[str], places: set[str]) -> None:
    found = program(*lines).roles
    assert {name for name, role in found.items() if Role.PLACE in role} == places


def test_calls_and_branches_are_followed() -> None:
    text = _HEAD.format(body="%i = tt.call @same(%v) : (i32) -> i32\n"
                        "%o = tt.addptr %out, %i : !tt.ptr<i32>, i32\n"
                        "tt.store %o, %k : !tt.ptr<i32>")  # fmt: skip
    text = (
        text.replace("tt.func @kernel", "tt.func public @kernel")
        + """
tt.func private @same(%a: i32) -> i32 {
  cf.br ^bb1(%a : i32)
^bb1(%b: i32):
  tt.return %b : i32
}
"""
    )
    assert program_of(text).roles["p"] == Role.PLACE | Role.LOADED


def test_sums_are_known() -> None:
    text = """
tt.func @kernel(%x: !tt.ptr<f32> loc("x"), %y: !tt.ptr<f32> loc("y"),
    %out: !tt.ptr<f32> loc("out")) {
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %x0 = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %x1 = tt.addptr %x0, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %a = tt.load %x1 : tensor<16x!tt.ptr<f32>>
  %s = "tt.reduce"(%a) <{axis = 0 : i32}> ({
  ^bb0(%l: f32, %m: f32):
    %t = arith.addf %l, %m : f32
    tt.reduce.return %t : f32
  }) : (tensor<16xf32>) -> f32
  %b = tt.load %y : !tt.ptr<f32>
  %c = arith.addf %s, %b : f32
  tt.store %out, %c : !tt.ptr<f32>
  tt.return
}
"""
    assert program_of(text).roles == {
        "x": Role.SUMMED | Role.LOADED,
        "y": Role.LOADED,
        "out": Role.STORED,
    }


def arguments(kind: Kind, *lines: str, **moderate: Any) -> dict[str, Any]:
    """Arguments of 4096 elements at most."""
    kernel = program(*lines)
    shapes = Shapes(64, {"p": 4096, "q": 4096, "x": 4096, "out": 4096})
    return make_arguments(kernel.parameters, shapes, 1, Values(kind, kernel.roles, **moderate))


def test_special_values_hold_the_edges() -> None:
    given = arguments("special")
    assert {-(2**31), 2**31 - 1, -1, 0, 1} <= set(given["q"].tolist())
    floats = given["x"]
    finite = np.abs(floats[np.isfinite(floats)])
    assert np.isnan(floats).any()
    assert {np.inf, -np.inf} <= set(floats.tolist())
    assert finite.max() == np.finfo(np.float32).max
    assert 0 < finite[finite > 0].min() < np.finfo(np.float32).tiny
    assert (np.signbit(floats) & (floats == 0)).any()
    assert np.isfinite(given["f"])
    assert given["k"] not in range(64 + 1)


def test_indices_stay_indices() -> None:
    for kind in ("special", "wide"):
        given = arguments(kind, *_LOAD_AT_V)
        assert given["p"].min() >= 0
        assert given["p"].max() < 64
        assert given["q"].min() < 0


def test_one_kind_of_values_may_stay_moderate() -> None:
    given = arguments("special", moderate=("integer",))
    assert given["q"].min() >= 0
    assert np.isnan(given["x"]).any()
    given = arguments("special", moderate=("float",))
    assert given["q"].min() < 0
    assert np.abs(given["x"]).max() <= 1
