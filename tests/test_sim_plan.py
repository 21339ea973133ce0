"""Sizes that follow from a kernel: what they reach, and what is found with them."""

from __future__ import annotations

from functools import cache

import pytest

from tests.matmul_mutants import FAULTS, PROGRAMS, compiled, with_ring_reset
from tests.protocol_support import load
from tilepass.ir.engine import Module
from tilepass.sim.compiler import Program
from tilepass.sim.coverage import NO_TRIP, THREE_TRIPS, WRAPS, Goal
from tilepass.sim.equivalence import (
    NotEquivalentError,
    assert_equivalent,
    cases,
    execute,
    missed,
)
from tilepass.sim.plan import make_plan
from tilepass.sim.protocol.compiler import ProtocolProgram
from tilepass.sim.protocol_check import ProtocolError, check_protocol, default_problems
from tilepass.testing import program_of

BLOCK = (16, 32, 16)

# Each program takes every seventh tile of 16 numbers, and adds up n rows of them.
TILES = """
tt.func public @tiles(%x_ptr: !tt.ptr<f32>, %y_ptr: !tt.ptr<f32>, %size: i32, %n: i32,
                      %stride: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %c15 = arith.constant 15 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  %pid = tt.get_program_id x : i32
  %up = arith.addi %size, %c15 : i32
  %tiles = arith.divsi %up, %c16 : i32
  %lanes = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %sizes = tt.splat %size : i32 -> tensor<16xi32>
  %xs = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %ys = tt.splat %y_ptr : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  scf.for %tile = FIRST to %tiles step STEP : i32 {
    %at = arith.muli %tile, %c16 : i32
    %ats = tt.splat %at : i32 -> tensor<16xi32>
    %where = arith.addi %ats, %lanes : tensor<16xi32>
    %mask = arith.cmpi slt, %where, %sizes : tensor<16xi32>
    %sum = scf.for %row = %c0 to LAST step %c1 iter_args(%s = %zero) -> (tensor<16xf32>) : i32 {
      %far = arith.muli %row, %stride : i32
      %fars = tt.splat %far : i32 -> tensor<16xi32>
      %index = arith.addi %where, %fars : tensor<16xi32>
      %p = tt.addptr %xs, %index : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
      %v = tt.load %p, %mask, %zero : tensor<16x!tt.ptr<f32>>
      %t = arith.addf %s, %v : tensor<16xf32>
      scf.yield %t : tensor<16xf32>
    }
    %q = tt.addptr %ys, %where : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    tt.store %q, %sum, %mask : tensor<16x!tt.ptr<f32>>
  }
  tt.return
}
"""
SIX_LESS = "%six = arith.constant 6 : i32\n  %first = arith.subi %six, %pid : i32\n  scf.for %tile"
FEW = "%c2 = arith.constant 2 : i32\n  %few = arith.minsi %n, %c2 : i32\n  scf.for %tile"


def tiles(first: str = "%pid", step: str = "%c7", last: str = "%n", more: str = "") -> Program:
    text = TILES.replace("scf.for %tile", more or "scf.for %tile")
    return program_of(text.replace("FIRST", first).replace("STEP", step).replace("LAST", last))


def reached(program: Program) -> set[Goal]:
    found = set[Goal]()
    for case in cases([program], (), 1, None):
        execute(program, case, reached=found)
    return found


def test_loops_make_their_trips_in_programs_that_differ() -> None:
    program = tiles()
    plan = make_plan([program.module])
    assert {case.grid for case in plan.cases} == {(7, 1, 1)}
    assert all(1 < len(case.programs) < 7 for case in plan.cases)
    whats = {what for _, what in reached(program)}
    assert {THREE_TRIPS, NO_TRIP, "one trip", "a tail in dimension 0"} - whats == {
        "a tail in dimension 0"
    }
    for spot in program.spots:
        assert {(spot, THREE_TRIPS), (spot, NO_TRIP)} <= reached(program)


def test_sizes_and_strides_all_differ() -> None:
    largest = make_plan([tiles().module]).cases[-1]
    named = largest.shapes.named
    numbers = [named[name] for name in ("size", "n", "stride")]
    assert len(set(numbers)) == 3
    assert isinstance(named["size"], int)
    assert named["size"] % 16
    # Three tiles for some program, and an uneven number for others.
    assert 14 * 16 < named["size"] < 21 * 16
    assert largest.said == f"64,size={named['size']},n={named['n']}"


def test_the_second_step_of_a_program_is_taken() -> None:
    """With a constant as large as the number of a GPU's processors."""
    double = tiles(step="%c14", more="%c14 = arith.constant 14 : i32\n  scf.for %tile")
    with pytest.raises(NotEquivalentError, match=r"programs [\d,]+$"):
        assert_equivalent(tiles(), double)


def test_programs_may_share_the_work_in_another_way() -> None:
    assert_equivalent(tiles(), tiles("%first", more=SIX_LESS))


def test_what_cannot_be_reached_is_said() -> None:
    program = tiles(last="%few", more=FEW)
    planned = cases([program], (), 1, None)
    found = set[Goal]()
    for case in planned:
        execute(program, case, reached=found)
    (line,) = missed([program], planned, found)
    assert line.startswith("3 trips of scf.for")
    assert line.endswith(" not reached")


def test_sizes_that_would_reach_it_are_named() -> None:
    program = tiles()
    given = cases([program], ["64,n=2"], 1, None)
    found = set[Goal]()
    for case in given:
        execute(program, case, reached=found)
    lines = missed([program], given, found)
    assert len(lines) == 3
    assert all(" not reached (try --shapes 64,size=" in line for line in lines)


def test_the_constant_of_a_fused_loop_is_a_grid() -> None:
    module = compiled(None, (64, 64, 32), "ttgir")
    assert {case.grid for case in make_plan([module]).cases} == {(PROGRAMS, 1, 1)}


def test_the_right_matmul_is_the_same_fused() -> None:
    block = (64, 64, 32)
    one, other = (compiled(None, block, last, 7) for last in ("ttir", "ttgir"))
    assert_equivalent(one, other, seeds=1)


@cache
def right() -> Module:
    return compiled(None, BLOCK, "ttir", 7)


@pytest.mark.parametrize("fault", FAULTS)
def test_gross_mistakes_are_found(fault: str) -> None:
    with pytest.raises(NotEquivalentError):
        assert_equivalent(right(), compiled(fault, BLOCK, "ttir", 7), seeds=1)


def test_a_ring_that_is_reset_at_every_tile_is_found() -> None:
    with pytest.raises(ProtocolError):
        check_protocol(with_ring_reset(load("A")), seeds=1)


def test_rings_turn_twice() -> None:
    module = load("A")
    program = Program(module)
    rings = [spot for spot in program.spots if spot.size]
    assert rings
    assert {(ring, WRAPS) for ring in rings} <= reached(program)
    named = {problem.said for problem in default_problems(ProtocolProgram(module))}
    assert any("K=0" in said for said in named)
