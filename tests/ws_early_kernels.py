"""A persistent matmul that may leave before its tile loop, or do something else around it."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from tests.ws_core_kernels import source


@triton.jit
def _multiply(
    a_desc,
    b_desc,
    c_desc,
    c_ptr,
    M,
    N,
    K,
    first,
    tiles,
    tiles_n,
    programs,
    offsets,
    BLOCK: tl.constexpr,
    MASKED: tl.constexpr,
):
    """C = A B^T, through a descriptor or through pointers."""
    for tile in range(first, tiles, programs):
        row, column = tile // tiles_n * BLOCK, tile % tiles_n * BLOCK
        accumulator = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for k in range(0, K, BLOCK):
            a, b = a_desc.load([row, k]), b_desc.load([column, k])
            accumulator = tl.dot(a, b.T, accumulator)
        c = accumulator.to(tl.float16)
        if MASKED:
            rows, columns = row + offsets, column + offsets
            inside = (rows < M)[:, None] & (columns < N)[None, :]
            tl.store(c_ptr + rows[:, None] * N + columns[None, :], c, mask=inside)
        else:
            c_desc.store([row, column], c)


@triton.jit
def leaving(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, WAY: tl.constexpr, MASKED: tl.constexpr
):
    """WAY: where the matrix is "empty", as torch inductor writes it; "twice", also where there is
    no tile; what a program "stores" that leaves; tiles "under" a condition; leaving "behind"."""
    offsets = tl.arange(0, BLOCK)
    first = tl.program_id(0)
    if (M == 0) or (N == 0):
        return
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK, BLOCK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK, BLOCK])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    m, n, programs = tl.cdiv(M, BLOCK), tl.cdiv(N, BLOCK), tl.num_programs(0)
    t = m * n
    if WAY == "twice" and first >= t:
        return
    if WAY == "stores" and first >= t:
        tl.store(c_ptr, 1.0)
        return
    if WAY != "under" or first < t:
        _multiply(
            a_desc, b_desc, c_desc, c_ptr, M, N, K, first, t, n, programs, offsets, BLOCK, MASKED
        )
    if WAY == "behind":
        if first >= t:
            return
        tl.store(c_ptr, 1.0)


def leaving_source(way: str, *, masked: bool = False, block: int = 64) -> Any:
    """The kernel for tiles of `block` rows and columns."""
    return source(leaving, WAY=way, MASKED=masked, BLOCK=block)
