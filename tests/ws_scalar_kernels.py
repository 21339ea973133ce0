"""A persistent matmul whose tiles load scalars."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from tests.ws_core_kernels import source


@triton.jit
def shifted(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, LOADS: tl.constexpr):
    """C = A B^T; LOADS says what every tile but the first loads: how far its "rows" of A are moved
    down, or how many "steps" fewer it has."""
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK, BLOCK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK, BLOCK])
    tiles_n = tl.cdiv(N, BLOCK)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BLOCK) * tiles_n, tl.num_programs(0)):
        row, column = tile // tiles_n * BLOCK, tile % tiles_n * BLOCK
        down, fewer = 0, 0
        if tile > 0:
            if LOADS == "rows":
                down = (tl.load(b_ptr + tile) > 0).to(tl.int32)
            if LOADS == "steps":
                fewer = (tl.load(b_ptr + tile) > 0).to(tl.int32)
        accumulator = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for k in range(0, K - fewer * BLOCK, BLOCK):
            a, b = a_desc.load([row + down, k]), b_desc.load([column, k])
            accumulator = tl.dot(a, b.T, accumulator)
        rows, columns = row + tl.arange(0, BLOCK), column + tl.arange(0, BLOCK)
        pointers = c_ptr + rows[:, None] * N + columns[None, :]
        tl.store(pointers, accumulator.to(tl.float16), mask=(rows < M)[:, None])


def loading(loads: str) -> Any:
    """The kernel for 64x64 tiles."""
    return source(shifted, LOADS=loads)
