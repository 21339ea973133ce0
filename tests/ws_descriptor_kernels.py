"""A persistent matmul that makes its descriptors where it is told to."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from tests.ws_core_kernels import source


@triton.jit
def _described(ptr, rows, columns, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    return tl.make_tensor_descriptor(ptr, [rows, columns], [columns, 1], [BLOCK, WIDTH])


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, ADDED: tl.constexpr,
):  # fmt: skip
    """C = A B^T + a tile of what ADDED names: C, or A by a descriptor that may "vary".

    A, B and C say where and from what each descriptor is made: in "front" of the loops, for each
    "tile", each "step" of K, or for each tile "from" what is computed there, "under" a condition,
    from a base that "varies" with the tile, was loaded "before" the loop, or is "loaded" or
    "divided" in it. C may also go out "twice", in halves.
    """
    tiles_n = tl.cdiv(N, BLOCK)
    if A == "front":
        a_desc = _described(a_ptr, M, K, BLOCK, BLOCK)
    if B == "front":
        b_desc = _described(b_ptr, N, K, BLOCK, BLOCK)
    if C == "before":
        first = (tl.load(b_ptr) > 1000).to(tl.int32)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BLOCK) * tiles_n, tl.num_programs(0)):
        row, column = tile // tiles_n * BLOCK, tile % tiles_n * BLOCK
        if A == "tile":
            a_desc = _described(a_ptr, M, K, BLOCK, BLOCK)
        if A == "varies":
            a_desc = _described(a_ptr + row * K, M - row, K, BLOCK, BLOCK)
            row_of_a = 0
        else:
            row_of_a = row
        accumulator = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for k in range(0, K, BLOCK):
            if A == "step":
                a_desc = _described(a_ptr, M, K, BLOCK, BLOCK)
            if B == "step":
                b_desc = _described(b_ptr, N, K, BLOCK, BLOCK)
            b = b_desc.load([column, k])
            accumulator = tl.dot(a_desc.load([row_of_a, k]), b.T, accumulator)
        if C == "from":
            c_desc = _described(c_ptr + M // 64 * N, M, N + N - N, BLOCK, BLOCK)
        elif C == "divided":
            c_desc = _described(c_ptr + M // K, M, N, BLOCK, BLOCK)
        elif C == "before":
            c_desc = _described(c_ptr + first, M, N, BLOCK, BLOCK)
        elif C == "loaded":
            c_desc = _described(c_ptr + (tl.load(b_ptr) > 1000).to(tl.int32), M, N, BLOCK, BLOCK)
        elif C == "varies":
            c_desc = _described(c_ptr + row * N, M - row, N, BLOCK, BLOCK)
            row = 0
        elif C == "twice":
            c_desc = _described(c_ptr, M, N, BLOCK, BLOCK // 2)
        else:
            c_desc = _described(c_ptr, M, N, BLOCK, BLOCK)
        if ADDED == "A":
            accumulator += _described(a_ptr, M, K, BLOCK, BLOCK).load([row, 0])
        if ADDED == "vary":
            accumulator += _described(a_ptr + row * K, M - row, K, BLOCK, BLOCK).load([0, 0])
        if ADDED == "C":
            accumulator += c_desc.load([row, column])
        c = accumulator.to(tl.float16)
        if C == "twice":
            left, right = tl.split(tl.permute(tl.reshape(c, (BLOCK, 2, BLOCK // 2)), (0, 2, 1)))
            c_desc.store([row, column], left)
            c_desc.store([row, column + BLOCK // 2], right)
        elif C == "under":
            if row + BLOCK <= M:
                _described(c_ptr, M, N, BLOCK, BLOCK).store([row, column], c)
        else:
            c_desc.store([row, column], c)


@triton.jit
def entangled(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, USE: tl.constexpr):
    """C = A B^T, but the tile loop has another USE for what its descriptors are computed from: the
    "bound" of K, columns of each "step", a "carried" value, "values" of C; and rows under an if."""
    tiles_n = tl.cdiv(N, BLOCK)
    last, stored = 0, tl.program_id(0) - tl.num_programs(0)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BLOCK) * tiles_n, tl.num_programs(0)):
        size = M * 3 + N
        a_desc = _described(a_ptr, min(M, size), K, BLOCK, BLOCK)
        row, column = tile // tiles_n * BLOCK, tile % tiles_n * BLOCK
        if tile > 1:
            row += (size > N).to(tl.int32)
        bound = min(K, size) if USE == "bound" else K
        accumulator, moved = tl.zeros((BLOCK, BLOCK), dtype=tl.float32), 0
        for k in range(0, bound, BLOCK):
            more = size + N
            b = _described(b_ptr, min(N, more), K, BLOCK, BLOCK).load([column + moved, k])
            accumulator = tl.dot(a_desc.load([row, k]), b.T, accumulator)
            if USE == "step":
                moved = min(more, 1)
        if USE == "carried":
            stored += tl.num_programs(0) + last - min(size, last)
            last = size
            row, column = stored // tiles_n * BLOCK, stored % tiles_n * BLOCK
        if USE == "values":
            accumulator += size
        c_desc = _described(c_ptr, min(M, size), N, BLOCK, BLOCK)
        c_desc.store([row, column], accumulator.to(tl.float16))


def described(a: str = "front", b: str = "front", c: str = "tile", added: str = "") -> Any:
    """The kernel for 64x64 tiles."""
    return source(matmul, A=a, B=b, C=c, ADDED=added)


def using(use: str) -> Any:
    """The entangled kernel for 64x64 tiles."""
    return source(entangled, USE=use)
