"""Races between programs in global memory: what counts as one, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from tilepass.sim.values import run
from tilepass.testing import program_of

_KERNEL = """
tt.func @kernel(%out: !tt.ptr<i32> loc("out"), %lock: !tt.ptr<i32> loc("lock")) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %pid = tt.get_program_id x : i32
  %at = tt.addptr %out, %pid : !tt.ptr<i32>, i32
  %next = tt.addptr %at, %c1 : !tt.ptr<i32>, i32
  {body}
  tt.return
}}
"""
_ADD = (
    "%x{n} = tt.atomic_rmw add, acq_rel, gpu, {where}, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32"
)


def races(body: str) -> list[str]:
    """What three programs race on; `out` holds 10, 11, 12 and so on."""
    arguments = {"out": np.arange(10, 18, dtype=np.int32), "lock": np.zeros(1, np.int32)}
    return run(program_of(_KERNEL.format(body=body)), arguments, (3,), watch=True).races


def _load(where: str, name: str = "%v") -> str:
    return f"{name} = tt.load {where} : !tt.ptr<i32>"


def _store(where: str, value: str) -> str:
    return f"tt.store {where}, {value} : !tt.ptr<i32>"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([_store("%out", "%pid")],
         "programs (0, 0, 0) and (1, 0, 0) write different values to element 0 of out: which "
         "stays depends on their order"),
        # The first of two changes nothing, the second does.
        ([_load("%out"), "%w = arith.addi %v, %c1 : i32", _store("%out", "%w")],
         "programs (0, 0, 0) and (1, 0, 0) write different values to element 0 of out: which "
         "stays depends on their order"),
        ([_load("%next"), _store("%at", "%pid")],
         "programs (0, 0, 0) and (1, 0, 0) read and write element 1 of out: what is read depends "
         "on their order"),
        ([_store("%next", "%pid"), _load("%at")],
         "programs (0, 0, 0) and (1, 0, 0) write and read element 1 of out: what is read depends "
         "on their order"),
        ([_ADD.format(n=0, where="%next"), _load("%at")],
         "programs (0, 0, 0) and (1, 0, 0) update and read element 1 of out, only one of them "
         "atomically"),
        ([_load("%next"), _ADD.format(n=0, where="%at")],
         "programs (0, 0, 0) and (1, 0, 0) read and update element 1 of out, only one of them "
         "atomically"),
        ([_store("%at", "%pid"), _ADD.format(n=0, where="%next")],
         "programs (0, 0, 0) and (1, 0, 0) write element 1 of out, only one of them atomically"),
    ],
)  # fmt: skip
def test_races_are_named(body: list[str], said: str) -> None:
    assert said in races("\n".join(body))


@pytest.mark.parametrize(
    "body",
    [
        [_store("%at", "%pid"), _load("%at")],
        # All write the same, or what was there.
        [_store("%out", "%c1")],
        [_load("%next"), _store("%next", "%v")],
        [_ADD.format(n=0, where="%out")],
        # A lock around it, or a counter that both have passed.
        [_ADD.format(n=0, where="%lock"), _load("%out"), "%w = arith.addi %v, %c1 : i32",
         _store("%out", "%w"), _ADD.format(n=1, where="%lock")],
        ["%v = tt.load %at {isVolatile = true} : !tt.ptr<i32>", _store("%next", "%pid"),
         "%u = tt.load %lock {isVolatile = true} : !tt.ptr<i32>"],
    ],
)  # fmt: skip
def test_what_is_no_race(body: list[str]) -> None:
    assert not races("\n".join(body))


def test_parts_of_elements_are_no_race() -> None:
    """Each program writes a half of an element of the array."""
    text = """
tt.func @kernel(%out: !tt.ptr<i32> loc("out")) {
  %pid = tt.get_program_id x : i32
  %half = arith.trunci %pid : i32 to i16
  %halves = tt.bitcast %out : !tt.ptr<i32> -> !tt.ptr<i16>
  %at = tt.addptr %halves, %pid : !tt.ptr<i16>, i32
  tt.store %at, %half : !tt.ptr<i16>
  tt.return
}
"""
    assert not run(program_of(text), {"out": np.full(2, 7, np.int32)}, (2,), watch=True).races


def test_wide_accesses_count_for_every_element() -> None:
    text = """
tt.func @kernel(%out: !tt.ptr<i32> loc("out")) {
  %pid = tt.get_program_id x : i32
  %wide = arith.extsi %pid : i32 to i64
  %both = tt.bitcast %out : !tt.ptr<i32> -> !tt.ptr<i64>
  tt.store %both, %wide : !tt.ptr<i64>
  tt.return
}
"""
    found = run(program_of(text), {"out": np.full(2, 7, np.int32)}, (2,), watch=True).races
    assert len(found) == 1
    assert "element 0 of out" in found[0]
