"""Kernels whose flattened form is worse by its static figures."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false, reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HOPPER = GPUTarget("cuda", 90, 32)


@triton.jit
def matmul(
    a_desc,
    b_desc,
    c_desc,
    residual_desc,
    c_ptr,
    residual_ptr,
    M,
    N,
    K,
    stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BY_TMA: tl.constexpr,
    TILE_STAGES: tl.constexpr,
    DOT_STAGES: tl.constexpr,
    DISABLE_LICM: tl.constexpr,
):
    """Persistent C = A B^T + residual, the latter two by TMA or through pointers."""
    columns = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * columns
    steps = tl.cdiv(K, BLOCK_K)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), num_stages=TILE_STAGES):
        row, column = tile // columns * BLOCK_M, tile % columns * BLOCK_N
        sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in tl.range(0, steps, num_stages=DOT_STAGES, disable_licm=DISABLE_LICM):
            a = a_desc.load([row, step * BLOCK_K])
            b = b_desc.load([column, step * BLOCK_K])
            sums = tl.dot(a, b.T, sums)
        if BY_TMA:
            sums += residual_desc.load([row, column]).to(tl.float32)
            c_desc.store([row, column], sums.to(tl.bfloat16))
        else:
            rows = (row + tl.arange(0, BLOCK_M))[:, None]
            places = rows * stride + (column + tl.arange(0, BLOCK_N))[None, :]
            mask = (rows < M) & ((column + tl.arange(0, BLOCK_N))[None, :] < N)
            sums += tl.load(residual_ptr + places, mask).to(tl.float32)
            tl.store(c_ptr + places, sums.to(tl.bfloat16), mask)


def compile_matmul(
    *,
    by_tma: bool,
    block_n: int = 256,
    tile_stages: int | None = None,
    dot_stages: int | None = None,
    disable_licm: bool = False,
    **options: Any,
) -> Any:
    """The compiled kernel with tiles of 128 rows, 8 warps and 3 stages."""
    tile = f"tensordesc<bf16[128, {block_n}]>"
    constants = {
        "BLOCK_M": 128,
        "BLOCK_N": block_n,
        "BLOCK_K": 64,
        "BY_TMA": by_tma,
        "TILE_STAGES": tile_stages,
        "DOT_STAGES": dot_stages,
        "DISABLE_LICM": disable_licm,
    }
    arguments = {
        "a_desc": "tensordesc<bf16[128, 64]>",
        "b_desc": f"tensordesc<bf16[{block_n}, 64]>",
        "c_desc": tile if by_tma else "constexpr",
        "residual_desc": tile if by_tma else "constexpr",
        "c_ptr": "constexpr" if by_tma else "*bf16",
        "residual_ptr": "constexpr" if by_tma else "*bf16",
        **dict.fromkeys(("M", "N", "K", "stride"), "i32"),
    }
    constants |= {name: None for name, kind in arguments.items() if kind == "constexpr"}
    aligned = ("*bf16", "i32")
    attributes: Any = {
        (index,): [["tt.divisibility", 16]]
        for index, kind in enumerate(arguments.values())
        if kind in aligned
    }
    signature = arguments | dict.fromkeys(constants, "constexpr")
    source = ASTSource(matmul, signature, constants, attributes)
    return triton.compile(
        source, target=HOPPER, options={"num_warps": 8, "num_stages": 3} | options
    )
