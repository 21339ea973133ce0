"""A persistent matmul that Triton warp-specializes itself: descriptors are made in the kernel."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.compiler import ASTSource


@triton.jit
def specialized_matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    POINTER_STORE: tl.constexpr,
    FLATTEN: tl.constexpr,
):
    """C = A B^T, bf16, C stored by TMA or through pointers."""
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    if not POINTER_STORE:
        c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * tiles_n
    for tile in tl.range(
        tl.program_id(0), tiles, tl.num_programs(0), warp_specialize=True, flatten=FLATTEN
    ):
        row = tile // tiles_n * BLOCK_M
        column = tile % tiles_n * BLOCK_N
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in tl.range(0, tl.cdiv(K, BLOCK_K), num_stages=3):
            a = a_desc.load([row, k * BLOCK_K])
            b = b_desc.load([column, k * BLOCK_K])
            accumulator = tl.dot(a, b.T, accumulator)
        c = accumulator.to(tl.bfloat16)
        if POINTER_STORE:
            rows = row + tl.arange(0, BLOCK_M)
            columns = column + tl.arange(0, BLOCK_N)
            inside = (rows[:, None] < M) & (columns[None, :] < N)
            tl.store(c_ptr + rows[:, None] * N + columns[None, :], c, mask=inside)
        else:
            c_desc.store([row, column], c)


def source_of(*, pointer_store: bool, flatten: bool) -> Any:
    """The kernel with tiles of 128x128x64, for arguments divisible by 16.

    On Hopper Triton specializes only loops that are not flattened; on Blackwell 3.6 only others.
    """
    blocks = {
        "BLOCK_M": 128,
        "BLOCK_N": 128,
        "BLOCK_K": 64,
        "POINTER_STORE": pointer_store,
        "FLATTEN": flatten,
    }
    signature = {
        **dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*bf16"),
        **dict.fromkeys(("M", "N", "K"), "i32"),
        **dict.fromkeys(blocks, "constexpr"),
    }
    aligned: Any = {(index,): [["tt.divisibility", 16]] for index in range(6)}
    return ASTSource(specialized_matmul, signature, constexprs=blocks, attrs=aligned)
