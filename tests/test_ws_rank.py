"""Descriptors with dimensions of size 1 before the matrix: batches, weights of experts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ws_core_support import check_protocol, check_values, compile_source
from tests.ws_rank_kernels import batches
from tilepass.ir import engine
from tilepass.ir.layouts import NvmmaShared, TensorDescType, TensorType
from tilepass.passes.triton.epilogue_warp_specialize.description import in_memory, outer_dimensions

STEPS = (0, 1, 4)
PING_PONG, SPLIT, COOPERATIVE = (
    f"scheme={name},stages=3" for name in ("ping-pong", "split-consumer", "cooperative")
)


@pytest.mark.parametrize(
    ("source", "scheme"),
    [
        (batches(), PING_PONG),
        (batches(work="residual"), SPLIT),
        (batches(work="residual"), f"{COOPERATIVE},epilogue-subtile=1"),
        (batches(4, work="loaded", out="flat"), COOPERATIVE),
        (batches(work="loaded"), f"{SPLIT},epilogue-subtile=2,late-subtiles=1"),
    ],
)
def test_batches_and_experts(
    source: Any, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operands, residual tiles and what is stored; experts by number and out of memory."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    compiled = compile_source(source, scheme)
    assert "ttg.warp_specialize" in engine.operation_names(compiled.after)
    check_values(compiled, STEPS)
    check_protocol(compiled, STEPS, 2)


def test_blocks_in_memory() -> None:
    encoding = NvmmaShared(swizzling_byte_width=128, transposed=False, element_bit_width=16)
    ranked = NvmmaShared(
        swizzling_byte_width=128, transposed=False, element_bit_width=16, extra=(("rank", 3),)
    )
    block = TensorType((1, 64, 32), "si8", ranked)
    assert in_memory(TensorDescType(block)) == TensorType((64, 32), "i8", encoding)
    for shape, ones in (((1, 32), 0), ((64, 32), 0), ((2, 64, 32), 0), ((1, 2, 64, 32), 0)):
        block = TensorType(shape, "f16", ranked)
        assert outer_dimensions(block) == ones
        assert in_memory(TensorDescType(block)).shape == shape
    assert outer_dimensions(TensorType((1, 1, 1, 32), "f16", ranked)) == 2
