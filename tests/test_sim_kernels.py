"""Every kernel of tilepass, executed after every stage of Triton: right, and the same bits."""

from __future__ import annotations

import time
from typing import Any

import pytest
from sim_kernels import simulated

PERSISTENT = "persistent_matmul_triton"
SMALL: dict[str, Any] = {"block_n": 128, "programs": 3}
CASES: list[tuple[str, tuple[int, ...], int, dict[str, Any]]] = [
    (PERSISTENT, (160, 272, 112), 90, SMALL),
    (PERSISTENT, (160, 272, 112), 100, SMALL),
    (PERSISTENT, (160, 272, 0), 90, SMALL),
    (PERSISTENT, (160, 272, 112), 90, {**SMALL, "epilogue": "bias_gelu"}),
    (PERSISTENT, (160, 272, 112), 90, {**SMALL, "flatten": False, "epilogue": "bias"}),
    (
        PERSISTENT,
        (160, 272, 112),
        90,
        {**SMALL, "descriptors": "device", "epilogue": "residual"},
    ),
    (PERSISTENT, (160, 272, 112), 90, {**SMALL, "store": "pointer"}),
    (PERSISTENT, (160, 272, 112), 90, {**SMALL, "dtype": "fp8e4m3"}),
    ("matmul_triton", (256, 272, 112), 90, {}),
    ("matmul_triton", (256, 272, 112), 90, {"dtype": "fp16"}),
    ("softmax_triton", (17, 512), 90, {}),
    ("attention_triton", (1, 2, 256, 64), 90, {}),
    ("attention_triton", (1, 2, 256, 64), 100, {}),
    ("grouped_matmul_triton", (2, 128, 128, 128), 90, {}),
    ("mxfp4_matmul_triton", (64, 256, 256), 90, {}),
]


def _name(case: tuple[str, tuple[int, ...], int, dict[str, Any]]) -> str:
    name, shape, arch, fields = case
    return "-".join([name, "x".join(map(str, shape)), str(arch), *map(str, fields.values())])


@pytest.mark.parametrize(("name", "shape", "arch", "fields"), CASES, ids=map(_name, CASES))
def test_all_stages_agree_and_are_right(
    name: str, shape: tuple[int, ...], arch: int, fields: dict[str, Any]
) -> None:
    kernel = simulated(name, shape, arch, **fields)
    assert list(kernel.stages()) == ["source", "ttir", "ttgir"]
    assert kernel.disagreement() is None


def test_a_persistent_matmul_takes_less_than_5_seconds() -> None:
    kernel = simulated(PERSISTENT, (512, 512, 256), **SMALL)
    for stage in kernel.stages():
        started = time.process_time()
        kernel.run(stage)
        assert kernel.problem() is None
        assert time.process_time() - started < 5
