"""Carried scalars in terms of the induction variable: every value that a trip sees, executed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.protocol_support import module_of
from tilepass.ir.induction import counts_of, without_counts
from tilepass.ir.loops import outermost_loops
from tilepass.sim.compiler import Program
from tilepass.sim.values import run

# Each trip stores what it sees of %n.
KERNEL = """
tt.func @kernel(%out: !tt.ptr<{kind}>, %lower: {index}, %upper: {index}, %step: {index},
                %first: {kind}, %more: {kind}) {{
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  %k12 = arith.constant 12 : {kind}
  %k7 = arith.constant 7 : {kind}
  %c4 = arith.constant 4 : {index}
  {before}
  %r:2 = scf.for %i = %lower to %upper step {step} iter_args(%n = {first}, %at = %zero)
      -> ({kind}, i32) : {index} {{
    %p = tt.addptr %out, %at : !tt.ptr<{kind}>, i32
    tt.store %p, %n : !tt.ptr<{kind}>
    %twice = arith.muli %at, %zero : i32
    %one_more = arith.addi %at, %one : i32
    %after = arith.maxsi %one_more, %twice : i32
    {next}
    scf.yield %next, %after : {kind}, i32
  }} {{tt.some = 3 : i32}}
  tt.return
}}
"""
_TYPES = {"i8": np.int8, "i32": np.int32, "i64": np.int64}


def kernel(
    following: str,
    kind: str = "i32",
    index: str = "i32",
    step: str = "%step",
    first: str = "%first",
    before: str = "",
) -> str:
    return KERNEL.format(
        next=following.format(kind=kind),
        kind=kind,
        index=index,
        step=step,
        first=first,
        before=before,
    )


def seen(
    program: Program, kind: str, bounds: tuple[int, int, int], first: int, more: int
) -> list[int]:
    """What the trips stored."""
    out = np.full(16, 99, _TYPES[kind])
    run(program, (out, *bounds, first, more), (1,))
    return out.tolist()


ADD = "%next = arith.addi %n, %more : {kind}"
VALUES = ((0, 1), (100, 27), (-3, -100), (127, 127))
BOUNDS = ((0, 9, 2), (-5, 40, 9), (3, 3, 1), (7, 8, 5), (2**31 - 41, 2**31 - 10, 8))


@pytest.mark.parametrize(
    ("text", "kind", "division"),
    [
        (kernel(ADD), "i32", True),
        (kernel(ADD, "i8"), "i8", True),
        (kernel(ADD, "i64"), "i64", True),
        (kernel("%next = arith.addi %more, %n : {kind}", "i8", "i64"), "i8", True),
        (kernel("%next = arith.subi %n, %more : {kind}", "i64"), "i64", True),
        (
            kernel("%m = arith.subi %n, %k12 : {kind}\n %next = arith.addi %m, %more : {kind}"),
            "i32",
            True,
        ),
        (kernel("%next = arith.addi %n, %step : {kind}"), "i32", False),
        (kernel("%next = arith.subi %n, %step : {kind}"), "i32", False),
        (kernel("%next = arith.addi %n, %step : {kind}", first="%lower"), "i32", False),
        (kernel("%next = arith.addi %n, %k12 : {kind}", "i8", "i32", "%c4"), "i8", False),
        (kernel("%next = arith.addi %n, %k12 : {kind}", "i64", "i32", "%c4"), "i64", False),
        (kernel("%next = arith.subi %n, %k12 : {kind}", "i32", "i32", "%c4"), "i32", False),
        (kernel("%next = arith.addi %n, %k7 : {kind}", "i32", "i32", "%c4"), "i32", True),
        (kernel("%next = arith.addi %i, %more : {kind}"), "i32", False),
        (
            kernel(
                "%next = arith.addi %n, %step : {kind}",
                first="%f",
                before="%f = arith.subi %lower, %step : i32",
            ),
            "i32",
            False,
        ),
        (
            kernel(
                "%next = arith.addi %n, %step : {kind}",
                first="%f",
                before="%f = arith.addi %more, %lower : i32",
            ),
            "i32",
            False,
        ),
        (
            kernel(
                "%next = arith.addi %n, %step : {kind}",
                first="%f",
                before="%f = arith.subi %more, %lower : i32",
            ),
            "i32",
            False,
        ),
    ],
)
def test_every_trip_sees_what_it_saw(text: str, kind: str, division: bool) -> None:
    before, after = module_of(text), module_of(text)
    loop = without_counts(outermost_loops(after)[0])
    # The place in memory is no sum alone: it is carried on.
    assert [str(each.argument.type) for each in loop.carried] == ["i32"]
    assert loop.attribute("tt.some") is not None
    assert ("arith.divui" in str(after.operation)) == division
    one, other = Program(before), Program(after)
    for bounds, values in itertools.product(BOUNDS, VALUES):
        assert seen(other, kind, bounds, *values) == seen(one, kind, bounds, *values)


@pytest.mark.parametrize(
    "following",
    [
        "%next = arith.muli %n, %more : {kind}",
        "%next = arith.subi %more, %n : {kind}",
        "%next = arith.addi %n, %n : {kind}",
        "%next = arith.addi %n, %at : {kind}",
        "%m = arith.addi %n, %more : {kind}\n %next = arith.maxsi %m, %k12 : {kind}",
        "%next = tt.load %p : !tt.ptr<{kind}>",
    ],
)
def test_what_is_no_count(following: str) -> None:
    module = module_of(kernel(following))
    loop = outermost_loops(module)[0]
    before = str(module.operation)
    assert counts_of(loop) == []
    assert without_counts(loop) == loop
    assert str(module.operation) == before


def test_what_is_used_behind_the_loop_is_carried() -> None:
    text = kernel(ADD).replace("tt.return", "tt.store %out, %r#0 : !tt.ptr<i32>\n tt.return")
    module = module_of(text)
    assert counts_of(outermost_loops(module)[0]) == []
    text = kernel(ADD).replace("tt.return", "tt.store %out, %r#1 : !tt.ptr<i32>\n tt.return")
    before, after = module_of(text), module_of(text)
    without_counts(outermost_loops(after)[0])
    programs = Program(before), Program(after)
    one, other = (seen(each, "i32", (0, 9, 2), 5, 3) for each in programs)
    assert one == other
