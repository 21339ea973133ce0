"""Persistent matmuls of batches and experts: descriptors with dimensions before the matrix."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from tests.ws_core_kernels import source


@triton.jit
def batched(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, BATCH: tl.constexpr, RANK: tl.constexpr,
    WORK: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    """C[i] = A[i] W[e]^T for BATCH matrices, with an expert for each: the other one's number, or
    (WORK "loaded") 0 or 1 as memory says; WORK "residual" adds C's like from B's memory. C has a
    dimension for them, or (OUT "flat") their tiles one behind the other."""
    if RANK == 3:
        a_desc = tl.make_tensor_descriptor(a_ptr, [BATCH, M, K], [M * K, K, 1], [1, BLOCK, BLOCK])
        b_desc = tl.make_tensor_descriptor(b_ptr, [BATCH, N, K], [N * K, K, 1], [1, BLOCK, BLOCK])
    else:
        a_desc = tl.make_tensor_descriptor(
            a_ptr, [1, BATCH, M, K], [BATCH * M * K, M * K, K, 1], [1, 1, BLOCK, BLOCK]
        )
        b_desc = tl.make_tensor_descriptor(
            b_ptr, [1, BATCH, N, K], [BATCH * N * K, N * K, K, 1], [1, 1, BLOCK, BLOCK]
        )
    r_desc = tl.make_tensor_descriptor(b_ptr, [BATCH, M, N], [M * N, N, 1], [1, BLOCK, BLOCK])
    tall, across = tl.cdiv(M, BLOCK), tl.cdiv(N, BLOCK)
    if OUT == "flat":
        rows = BATCH * tall * BLOCK
        c_desc = tl.make_tensor_descriptor(c_ptr, [rows, N], [N, 1], [BLOCK, BLOCK])
    else:
        c_desc = tl.make_tensor_descriptor(c_ptr, [BATCH, M, N], [M * N, N, 1], [1, BLOCK, BLOCK])
    for tile in tl.range(tl.program_id(0), BATCH * tall * across, tl.num_programs(0)):
        index, rest = tile // (tall * across), tile % (tall * across)
        m, n = rest // across * BLOCK, rest % across * BLOCK
        expert = BATCH - 1 - index
        if WORK == "loaded":
            expert = (tl.load(b_ptr + index) > 0).to(tl.int32)
        total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for k in range(0, K, BLOCK):
            if RANK == 3:
                a, b = a_desc.load([index, m, k]), b_desc.load([expert, n, k])
            else:
                a, b = a_desc.load([0, index, m, k]), b_desc.load([0, expert, n, k])
            total = tl.dot(a.reshape(BLOCK, BLOCK), b.reshape(BLOCK, BLOCK).T, total)
        if WORK == "residual":
            total += r_desc.load([index, m, n]).reshape(BLOCK, BLOCK).to(tl.float32)
        if OUT == "flat":
            c_desc.store([index * tall * BLOCK + m, n], total.to(tl.float16))
        else:
            c_desc.store([index, m, n], total.to(tl.float16).reshape(1, BLOCK, BLOCK))


def batches(rank: int = 3, work: str = "", out: str = "", block: int = 64) -> Any:
    """The kernel for two matrices, tiles of block x block and steps of as many."""
    return source(batched, BATCH=2, RANK=rank, WORK=work, OUT=out, BLOCK=block)
