"""flatten-loops' conditions against Triton's own tritongpu-fuse-nested-loops, executed on the CPU.

Random nests: where the conditions allow flattening, the fused nest must leave the same values in
memory as the nest, for trip counts below zero, zero, one and more.
"""

from __future__ import annotations

import itertools
import random
import re
from typing import Any

import pytest
from triton._C import libtriton

from tilepass.analysis.loop_fusion import (
    clamp_upper_bound,
    fusion_obstacle,
    trip_count_obstacle,
)
from tilepass.analysis.nest_facts import match_nest
from tilepass.core.refusal import Refusal
from tilepass.core.versions import triton_version
from tilepass.frontends.triton import bridge
from tilepass.ir import engine
from tilepass.ir.loops import outermost_loops
from tilepass.sim.compiler import Program
from tilepass.sim.equivalence import NotEquivalentError, assert_equivalent
from tilepass.sim.inputs import Shapes

COMPILER = triton_version()
LIBTRITON: Any = libtriton
NEST = """
tt.func @nest(%in: !tt.ptr<i32> loc("in"), %out: !tt.ptr<i32> loc("out"), %tiles: i32 loc("tiles"),
              %lower: i32 loc("lower"), %upper: i32 loc("upper")) {{
  %c1 = arith.constant 1 : i32
  %last = arith.constant 63 : i32
  %c3 = arith.constant 3 : i32
  %step = arith.constant {step} : i32
  %c0 = arith.constant 0 : i32
  %from_zero = arith.cmpi sge, %lower, %c0 : i32
  llvm.intr.assume %from_zero : i1
  %pid = tt.get_program_id x : i32
  {assume}
  {outer_results}scf.for %tile = %pid to %tiles step %c3 {outer_carries} : i32 {{
    {prologue}
    %sum = scf.for %k = %lower to %upper step %step iter_args(%acc = {start}) -> (i32) : i32 {{
      %at = tt.addptr %in, %k : !tt.ptr<i32>, i32
      %x = tt.load %at : !tt.ptr<i32>
      %y = arith.addi %x, {read} : i32
      %next = arith.addi %acc, %y : i32
      scf.yield %next : i32
    }}
    {epilogue}
    %to = tt.addptr %out, %tile : !tt.ptr<i32>, i32
    {condition_first}
    tt.store %to, {stored} : !tt.ptr<i32>
    {condition_last}
    {yields}
  }} {{tt.flatten}}
  {after}
  tt.return
}}
"""


CONDITION = """%flag = arith.cmpi slt, {left}, {right} : i32
    scf.if %flag {{
      tt.store %to, {left} : !tt.ptr<i32>
    }}"""


def random_nest(random_source: random.Random) -> str:
    """TTIR of a nest with up to two carried values, each part reading what it may."""
    pick = random_source.choice
    count = pick([0, 1, 1, 2])
    carried = [f"%v{index}" for index in range(count)]
    known = ["%tile", "%c1", *carried]
    prologue: list[str] = []
    for index in range(pick([0, 1, 2, 3])):
        name = f"%p{index}"
        prologue.append(f"{name} = arith.addi {pick(known)}, {pick(known)} : i32")
        known.append(name)
    if pick([True, False]):
        prologue.append(f"%pm = arith.andi {pick(known)}, %last : i32")
        prologue.append("%pa = tt.addptr %in, %pm : !tt.ptr<i32>, i32")
        prologue.append("%pl = tt.load %pa : !tt.ptr<i32>")
        known.append("%pl")
    read, start = pick(known), pick(known)
    known.append("%sum")
    epilogue: list[str] = []
    for index in range(pick([0, 1, 2])):
        name = f"%e{index}"
        epilogue.append(f"{name} = arith.addi {pick(known)}, {pick(known)} : i32")
        known.append(name)
    condition = CONDITION.format(left=pick(known), right=pick(known))
    place = pick(["none", "none", "first", "last"])
    names = ", ".join(f"{name} = %c{pick([1, 3])}" for name in carried)
    kinds = ", ".join("i32" for _ in carried)
    next_values = ", ".join(pick(known) for _ in carried)
    return NEST.format(
        step=pick([1, 2]),
        assume="",
        outer_results=f"%r:{count} = " if count else "",
        outer_carries=f"iter_args({names}) -> ({kinds})" if count else "",
        prologue="\n    ".join(prologue),
        epilogue="\n    ".join(epilogue),
        start=start,
        read=read,
        stored=pick(known),
        condition_first=condition if place == "first" else "",
        condition_last=condition if place == "last" else "",
        yields=f"scf.yield {next_values} : {kinds}" if count else "",
        after="tt.store %out, %r#0 : !tt.ptr<i32>" if count else "",
    )


def prepared(text: str) -> engine.Module | Refusal:
    """The nest as flatten-loops hands it on, or why it would not."""
    module = bridge.to_engine(bridge.load(text, "nest.mlir"))
    nest = match_nest(outermost_loops(module)[0])
    assert not isinstance(nest, Refusal)
    if obstacle := fusion_obstacle(nest, COMPILER):
        return obstacle
    if trip_count_obstacle(nest, COMPILER):
        clamp_upper_bound(nest.inner[0])
    return module


def fused(module: engine.Module) -> engine.Module:
    """What Triton's own pass makes of a module."""
    context = bridge.new_context()
    native: Any = bridge.from_engine(module, context)
    manager = LIBTRITON.ir.pass_manager(context)
    LIBTRITON.passes.ttgpuir.add_fuse_nested_loops(manager)
    with bridge.capture_diagnostics():
        manager.run(native, "fuse")
    return bridge.to_engine(native)


def differences(module: engine.Module) -> list[tuple[int, int, int]]:
    """The (tiles, lower, upper) for which a nest and its fused form store different values."""
    before, after = Program(module), Program(fused(module))
    cases = itertools.product((0, 1, 2, 8), (0, 2), (-4, 0, 1, 2, 3, 7))
    return [case for case in cases if _differ(before, after, *case)]


def _differ(before: Program, after: Program, tiles: int, lower: int, upper: int) -> bool:
    sizes = {"in": 64, "out": 8, "tiles": tiles, "lower": lower, "upper": upper}
    try:
        assert_equivalent(before, after, shapes=[Shapes(64, sizes)], seeds=1, grid=(3,))
    except NotEquivalentError:
        return True
    return False


@pytest.mark.parametrize("seed", range(60))
def test_allowed_nests_keep_their_values(seed: int) -> None:
    text = random_nest(random.Random(seed))
    module = prepared(text)
    if isinstance(module, Refusal):
        assert re.search("carr|ends with scf.if", str(module))
    else:
        assert differences(module) == [], text


def test_enough_random_nests_are_allowed() -> None:
    outcomes = [prepared(random_nest(random.Random(seed))) for seed in range(60)]
    allowed = sum(not isinstance(outcome, Refusal) for outcome in outcomes)
    assert 15 <= allowed <= 50


def simple(**parts: str) -> str:
    """A nest with one carried value and no more than is asked for."""
    defaults = {
        "step": "1",
        "assume": "",
        "outer_results": "%r = ",
        "outer_carries": "iter_args(%v0 = %c1) -> (i32)",
        "prologue": "",
        "epilogue": "",
        "start": "%c1",
        "read": "%c1",
        "stored": "%sum",
        "condition_first": "",
        "condition_last": "",
        "yields": "scf.yield %v0 : i32",
        "after": "",
    }
    return NEST.format(**(defaults | parts))


@pytest.mark.parametrize(
    "parts",
    [
        {"stored": "%v0", "yields": "scf.yield %sum : i32"},
        {"read": "%v0", "yields": "scf.yield %tile : i32"},
        {"read": "%v0", "yields": "scf.yield %c3 : i32"},
        {
            "prologue": "%p0 = arith.addi %v0, %c1 : i32",
            "stored": "%p0",
            "yields": "scf.yield %tile : i32",
        },
    ],
    ids=["read in the epilogue", "read in the body", "constant next value", "moved prologue"],
)
def test_refused_carried_values_would_go_wrong(parts: dict[str, str]) -> None:
    """The refusal is needed: Triton's pass changes what these nests compute."""
    text = simple(**parts)
    assert "carries" in str(prepared(text))
    assert differences(bridge.to_engine(bridge.load(text, "nest.mlir")))


def test_clamp_is_needed_exactly_where_it_is_added() -> None:
    plain = bridge.to_engine(bridge.load(simple(), "nest.mlir"))
    wrong = differences(plain)
    nest = match_nest(outermost_loops(plain)[0])
    assert not isinstance(nest, Refusal)
    assert bool(wrong) == (trip_count_obstacle(nest, COMPILER) is not None)
    assert all(upper < lower for _, lower, upper in wrong)


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        ("arith.divsi %upper, %c3", None),
        ("arith.divsi %c3, %upper", "divided by a variable"),
        ("arith.remsi %c3, %upper", "divided by a variable"),
        ("arith.muli %upper, %upper", None),
        ("arith.addi %upper, %tile", "bounds change from tile to tile"),
    ],
)
def test_bounds_that_fusing_would_move(bound: str, reason: str | None) -> None:
    text = simple(prologue=f"%bound = {bound} : i32").replace(
        "%lower to %upper", "%lower to %bound"
    )
    found = prepared(text)
    assert isinstance(found, Refusal) == (reason is not None)
    assert reason is None or reason in str(found)
