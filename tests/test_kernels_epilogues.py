"""The persistent matmul's further epilogues, layouts and outputs, executed after every stage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sim_kernels import simulated

from tilepass.core.errors import TilepassError
from tilepass.kernels import get_workload

KERNEL = "persistent_matmul_epilogues"
SHAPE = (144, 144, 80)
TILE: dict[str, Any] = {"block_n": 64, "programs": 2}
CASES: list[dict[str, Any]] = [
    {"finish": "silu", "b_layout": "k_outer", "output": "fp32"},
    {"finish": "scale_clamp", "a_layout": "k_outer", "epilogue": "residual", "dtype": "fp16"},
    {"finish": "row_bias", "dtype": "fp8e4m3", "output": "fp8e4m3", "epilogue": "bias"},
    {"keep_product": True, "epilogue": "bias_gelu", "num_warps": 4},
]


@pytest.mark.parametrize("fields", CASES, ids=lambda fields: "-".join(map(str, fields.values())))
def test_all_stages_agree_and_are_right(fields: dict[str, Any]) -> None:
    kernel = simulated(KERNEL, SHAPE, **{**TILE, **fields})
    results: set[bytes] = set()
    for stage in kernel.stages():
        results.add(kernel.run(stage))
        assert kernel.problem() is None, stage
    assert len(results) == 1, "the stages differ"


@pytest.mark.parametrize(
    "changed",
    [{"a_layout": "k_outer"}, {"output": "fp32"}, {"finish": "row_bias"}, {"epilogue": "bias"}],
)
def test_inputs_of_another_configuration(changed: dict[str, Any]) -> None:
    workload = get_workload(KERNEL)
    config = workload.config_for(SHAPE)
    inputs = workload.make_inputs(SHAPE, 0, "cpu", config)
    with pytest.raises(TilepassError, match="inputs made for "):
        workload.prepare(inputs, replace(config, **changed))
    with pytest.raises(TilepassError, match="made for another kernel"):
        workload.prepare(get_workload("softmax").make_inputs((4, 4), 0, "cpu"), config)


def test_two_outputs_are_both_checked() -> None:
    workload = get_workload(KERNEL)
    config = workload.config_for(SHAPE, keep_product=True, finish="silu")
    inputs = workload.make_inputs(SHAPE, 0, "cpu", config)
    launch = workload.prepare(inputs, config)
    for output, value in zip(launch.outputs, workload.reference(inputs), strict=True):
        output.copy_(value)
    assert workload.check(launch, inputs) is None
    launch.outputs[1][-1, -1] += 1
    assert "output 1: 1 of" in str(workload.check(launch, inputs))
    assert workload.bytes_moved(SHAPE, config) > workload.bytes_moved(
        SHAPE, replace(config, keep_product=False)
    )
