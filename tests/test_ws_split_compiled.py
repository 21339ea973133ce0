"""Consumers that share a tile, in kernels of this project compiled to binaries."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ws_core_support import (
    Compiled,
    check_protocol,
    check_values,
    compile_with,
)
from tilepass.core.assembler import AssemblerLog
from tilepass.ir import engine

PLAIN, WITH_EPILOGUES = "persistent-matmul", "persistent-matmul-epilogues"
HALVES = {"block_m": "128", "block_n": "64", "num_warps": "8"}
SPLIT = "scheme=split-consumer,stages=3,epilogue-subtile=2,c-buffers=2"


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes from earlier compilations."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")


@pytest.mark.parametrize(
    ("kernel", "texts"),
    [
        (WITH_EPILOGUES, {"a_layout": "k_outer", "b_layout": "k_outer", "output": "fp32"}),
        (WITH_EPILOGUES, {"keep_product": "true", "finish": "row_bias", "epilogue": "residual"}),
        (WITH_EPILOGUES, {"output": "fp8e4m3", "finish": "scale_clamp"}),
        (PLAIN, {"descriptors": "device", "dtype": "fp16", "flatten": "false"}),
    ],
    ids=("k-outermost", "two-stores", "fp8", "device"),
)
def test_values_protocol_and_binary(kernel: str, texts: dict[str, str]) -> None:
    compiled = compile_with(kernel, SPLIT, **{**HALVES, **texts})
    assert "ttg.warp_specialize" in engine.operation_names(compiled.after)
    check_values(compiled, (0, 1, 4))
    check_protocol(compiled, (0, 1, 4), 2)
    assert compiled.log == AssemblerLog(0, 0, ())


@pytest.mark.parametrize(
    ("texts", "plan"),
    [
        ({"epilogue": "bias_gelu"}, "split-consumer, 4 stages, 2 C buffers, 4 subtiles"),
        (
            {"epilogue": "residual", "block_n": "256"},
            "split-consumer, 3 stages, 4 C buffers, 4 subtiles, in place",
        ),
    ],
    ids=("gelu", "residual"),
)
def test_the_large_tile(texts: dict[str, str], plan: str) -> None:
    """128x256: four stages beside staging buffers of 64x64, no spills, dots not serialized."""
    compiled = compile_with(PLAIN, "scheme=split-consumer", flatten="false", **texts)
    assert compiled.log == AssemblerLog(0, 0, ())
    assert compiled.kernel.metadata.num_warps == 12
    assert compiled.kernel.metadata.shared <= 232448
    assert _passed(compiled).startswith(plan)


def _passed(compiled: Compiled) -> str:
    (remark,) = (each for each in compiled.remarks if each.kind == "passed")
    return remark.message
