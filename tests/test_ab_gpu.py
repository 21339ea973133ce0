"""`tilepass ab` on a real GPU: times, wrong outputs, a kernel that hangs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tilepass.cli.ab import main
from tilepass.cli.guard import run_guarded

pytestmark = pytest.mark.gpu

MODULE = """
import torch
import triton
import triton.language as tl

CLOCK = tl.constexpr("mov.u64 $0, %globaltimer;")


@triton.jit
def copy_kernel(x_ptr, out_ptr, count, seconds, BLOCK: tl.constexpr):
    begin = tl.inline_asm_elementwise(CLOCK, "=l", [], tl.int64, is_pure=False, pack=1)
    now = begin
    limit = tl.full((), 1000000000, tl.int64) * seconds  # in 32 bits 30 s overflow
    while now - begin < limit:
        now = tl.inline_asm_elementwise(CLOCK, "=l", [], tl.int64, is_pure=False, pack=1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < count), mask=at < count)


def make_inputs(shape, seed, device="cuda"):
    generator = torch.Generator(device).manual_seed(seed)
    return torch.rand(shape, generator=generator, device=device)


def reference(inputs):
    return inputs.clone()


def copy(inputs, seconds="0", leave="0", block="1024"):
    out = torch.empty_like(inputs)
    count = out.numel() - int(leave)
    grid = (triton.cdiv(out.numel(), int(block)),)
    copy_kernel[grid](inputs, out, count, int(seconds), BLOCK=int(block))
    return out
"""


def run(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    path = tmp_path / "report.json"
    status = run_guarded(main, [*arguments, "--require-gpu", "--json", str(path)])
    return status, json.loads(path.read_text())


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "copying.py"
    path.write_text(MODULE)
    return f"{path}:copy"


def test_a_kernel_of_ours_is_timed(tmp_path: Path) -> None:
    status, data = run(
        tmp_path,
        "persistent-matmul",
        *("--a", "flatten-loops{mode=off}", "--b", "flatten-loops{mode=on}"),
        *("--shape", "1024x1024x1024", "--shape", "2048x2048x2048", "--seconds", "3"),
    )
    assert status == 0
    assert data["status"] == "complete"
    assert data["environment"]["driver"]
    for point in data["points"]:
        assert point["status"] == "timed"
        assert point["clocks_mhz"]["reference"] > 300
        assert point["duplicate"]["ratio"] == pytest.approx(1.0, abs=0.01)
        assert point["arms"][1]["equal_bits"] is True
        assert point["arms"][0]["kernels"][0]["name"] == point["arms"][1]["kernels"][0]["name"]


def test_equal_binaries_are_identical(tmp_path: Path, module: str) -> None:
    status, data = run(tmp_path, module, "--shape", "1048576")
    assert status == 0
    assert data["points"][0]["status"] == "identical"


def test_a_users_kernel_is_timed(tmp_path: Path, module: str) -> None:
    status, data = run(
        tmp_path, module, "--config-b", "block=256", "--shape", "1048576", "--seconds", "3"
    )
    assert status == 0
    assert data["points"][0]["status"] == "timed"
    assert data["points"][0]["launches_per_sample"] > 1


def test_an_unwritten_element_is_found(tmp_path: Path, module: str) -> None:
    status, data = run(tmp_path, module, "--config-b", "leave=1", "--shape", "1048576")
    assert status == 1
    assert "1 of 1048576 elements are wrong (1 NaN)" in data["points"][0]["message"]


def test_a_kernel_that_hangs_is_given_up(tmp_path: Path, module: str) -> None:
    begun = time.monotonic()
    status, data = run(
        tmp_path,
        module,
        *("--config", "seconds=30", "--config-b", "block=256", "--launch-timeout", "2"),
        *("--shape", "4096"),
    )
    assert status == 1
    assert "hung" in data["points"][0]["message"]
    assert time.monotonic() - begun < 120
