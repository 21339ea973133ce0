"""Kernels that may return before their tile loops: the bits of the plain kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ws_core_support import Compiled, check_protocol, check_values, compile_source
from tests.ws_early_kernels import leaving_source
from tilepass.ir import engine
from tilepass.sim.equivalence import assert_equivalent
from tilepass.sim.inputs import Shapes
from tilepass.sim.protocol.check import find
from tilepass.sim.protocol.compiler import ProtocolProgram
from tilepass.sim.protocol.problems import Problem

ROOT = Path(__file__).parents[1]
STEPS = (0, 1, 4)


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes from earlier compilations."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")


@pytest.mark.parametrize("scheme", ["cooperative", "ping-pong", "split-consumer"])
@pytest.mark.parametrize("way", ["empty", "twice"])
def test_early_returns(way: str, scheme: str) -> None:
    check(compile_source(leaving_source(way), f"scheme={scheme},stages=3"))


@pytest.mark.parametrize("scheme", ["cooperative", "ping-pong", "split-consumer"])
def test_tensors_from_in_front_of_the_branches(scheme: str) -> None:
    check(compile_source(leaving_source("twice", masked=True), f"scheme={scheme},stages=3"))


@pytest.mark.parametrize("scheme", ["ping-pong", "split-consumer"])
def test_tensors_from_there_on_other_numbers_of_warps(scheme: str) -> None:
    """8 warps become two groups of 4."""
    source = leaving_source("empty", masked=True, block=128)
    check(compile_source(source, f"scheme={scheme},stages=2", num_warps=8, block=128))


def check(compiled: Compiled) -> None:
    """Values and protocol, also of programs that return early; the workers' way out."""
    assert "ttg.warp_specialize" in engine.operation_names(compiled.after)
    check_values(compiled, STEPS)
    check_protocol(compiled, STEPS, 2)
    for sizes in ({"M": 0, "N": 64, "K": 64}, {"M": 64, "N": 0, "K": 64}):
        leaving = Shapes(128, sizes)
        assert_equivalent(compiled.before, compiled.after, shapes=[leaving], seeds=1, grid=(2,))
        assert find(ProtocolProgram(compiled.after), Problem(leaving), range(2)) is None
    check_exits(compiled.kernel)


def check_exits(kernel: Any) -> None:
    """In what Triton makes of the kernel, every way to a return tells the other warps to exit.

    They wait for numbers in shared memory, one a warp, of what to run next; the last is the exit.
    """
    blocks = _blocks(kernel.asm["llir"])
    (switch,) = [name for name, text in blocks.items() if " switch i8 " in text]
    states = [int(each) for each in re.findall(r"i8 (\d+), label", blocks[switch])]
    assert len(states) >= 2
    tells, starts = (
        {name for name, text in blocks.items() if _says(state, text)} for state in (max(states), 0)
    )
    assert _returns(blocks, {switch})
    assert _returns(blocks, {switch, *starts}), "there is no early return"
    assert not _returns(blocks, {switch, *tells}), "a return leaves warps behind"


def _blocks(llir: str) -> dict[str, str]:
    """The blocks of the kernel in a module of LLVM, by label; the first is the entry."""
    (body,) = re.findall(r"^define .*?\{\n(.*?)^\}", llir, re.MULTILINE | re.DOTALL)
    parts = re.split(r"^([\w.]+):.*\n", body, flags=re.MULTILINE)
    return dict(zip(["entry", *parts[1::2]], parts[::2], strict=True))


def _says(state: int, block: str) -> bool:
    """Whether a block writes this number and then comes to the barrier that the others wait at."""
    _, wrote, behind = block.rpartition(f"store i8 {state}, ptr addrspace(3)")
    return bool(wrote) and "@llvm.nvvm.barrier.cta.sync.all(i32 1)" in behind


def _returns(blocks: dict[str, str], closed: set[str]) -> bool:
    """Whether a return can be reached around these blocks."""
    waiting, seen = ["entry"], set(closed)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if "ret void" in blocks[name]:
            return True
        waiting.extend(re.findall(r"label %([\w.]+)", blocks[name]))
    return False


@pytest.mark.gpu
def test_launches() -> None:
    """Every scheme, in its own process: a warp that waits for ever would hang it."""
    command = (sys.executable, "-m", "tests.gpu_early_returns_program")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("stores", "does not lead to a return alone; do nothing else where the kernel returns"),
        ("under", "the tile loop stands in scf.if; return early instead"),
        ("behind", "the kernel branches behind the tile loop"),
    ],
)
def test_what_is_more_than_an_early_return(way: str, reason: str) -> None:
    compiled = compile_source(leaving_source(way), "")
    assert engine.print_generic(compiled.before) == engine.print_generic(compiled.after)
    (remark,) = compiled.remarks
    assert reason in remark.message
