"""Persistent matmuls whose authors cut the epilogue themselves: two or four pieces of columns."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from tests.ws_core_kernels import source


@triton.jit
def _halves(x, M: tl.constexpr, N: tl.constexpr):
    return tl.split(tl.permute(tl.reshape(x, (M, 2, N // 2)), (0, 2, 1)))


@triton.jit
def _out(c_desc, c_ptr, x, m, n, M, N, BY: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    if BY == "tma":
        c_desc.store([m, n], x.to(tl.float16))
    else:
        rows, columns = m + tl.arange(0, BM), n + tl.arange(0, BN)
        mask = (rows < M)[:, None] & (columns < N)[None, :]
        tl.store(c_ptr + rows[:, None] * N + columns[None, :], x.to(tl.float16), mask=mask)


@triton.jit
def _piece(
    x, c_desc, c_ptr, b_ptr, r_desc, m, n, M, N,
    BY: tl.constexpr, WORK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    if WORK == "bias":
        columns = n + tl.arange(0, BN)
        x += tl.load(b_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    if WORK == "residual":
        x += r_desc.load([m, n]).to(tl.float32)
    if WORK == "relu":
        x = tl.maximum(x, 0.0)
    _out(c_desc, c_ptr, x, m, n, M, N, BY, BM, BN)


@triton.jit
def cut(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    PIECES: tl.constexpr, BEFORE: tl.constexpr, WORK: tl.constexpr, BY: tl.constexpr,
):  # fmt: skip
    """C = A B^T, with work BEFORE the cut and WORK on each piece; the residual is B again."""
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BLOCK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BLOCK])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN // PIECES])
    r_desc = tl.make_tensor_descriptor(b_ptr, [M, N], [N, 1], [BM, BN // PIECES])
    across = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0)):
        m, n = tile // across * BM, tile % across * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BLOCK):
            total = tl.dot(a_desc.load([m, k]), b_desc.load([n, k]).T, total)
        if BEFORE == "scale":
            total = total * 0.5
        if BEFORE == "bias":
            columns = n + tl.arange(0, BN)
            row = tl.load(b_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
            total = tl.maximum(total + row[None, :], 0.0)
        if BEFORE == "half":
            total = total.to(tl.float16)
        left, right = _halves(total, BM, BN)
        W: tl.constexpr = BN // PIECES
        if PIECES == 2:
            _piece(left, c_desc, c_ptr, b_ptr, r_desc, m, n, M, N, BY, WORK, BM, W)
            _piece(right, c_desc, c_ptr, b_ptr, r_desc, m, n + W, M, N, BY, WORK, BM, W)
        else:
            one, two = _halves(left, BM, BN // 2)
            three, four = _halves(right, BM, BN // 2)
            _piece(one, c_desc, c_ptr, b_ptr, r_desc, m, n, M, N, BY, WORK, BM, W)
            _piece(two, c_desc, c_ptr, b_ptr, r_desc, m, n + W, M, N, BY, WORK, BM, W)
            _piece(three, c_desc, c_ptr, b_ptr, r_desc, m, n + 2 * W, M, N, BY, WORK, BM, W)
            _piece(four, c_desc, c_ptr, b_ptr, r_desc, m, n + 3 * W, M, N, BY, WORK, BM, W)


@triton.jit
def odd(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    HOW: tl.constexpr,
):  # fmt: skip
    """C = A B^T, HOW it is cut."""
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BLOCK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BLOCK])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN // 2])
    wide_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    across = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0)):
        m, n = tile // across * BM, tile % across * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BLOCK):
            total = tl.dot(a_desc.load([m, k]), b_desc.load([n, k]).T, total)
        if HOW == "gated":
            left, right = _halves(total, BM, BN)
            c_desc.store([m, n], (left * right).to(tl.float16))
        if HOW == "interleaved":
            left, right = tl.split(tl.reshape(total, (BM, BN // 2, 2)))
            c_desc.store([m, n], left.to(tl.float16))
            c_desc.store([m, n + BN // 2], right.to(tl.float16))
        if HOW == "swapped":
            left, right = _halves(total, BM, BN)
            c_desc.store([m, n], right.to(tl.float16))
            c_desc.store([m, n + BN // 2], left.to(tl.float16))
        if HOW == "different":
            left, right = _halves(total, BM, BN)
            c_desc.store([m, n], tl.exp(left).to(tl.float16))
            c_desc.store([m, n + BN // 2], (right + m).to(tl.float16))
        if HOW == "one":
            left, right = _halves(total, BM, BN)
            c_desc.store([m, n], left.to(tl.float16))
        if HOW == "and whole":
            wide_desc.store([m, n + N], total.to(tl.float16))
            left, right = _halves(total, BM, BN)
            c_desc.store([m, n], left.to(tl.float16))
            c_desc.store([m, n + BN // 2], right.to(tl.float16))


def cutting(
    pieces: int = 2, before: str = "", work: str = "", by: str = "tma", m: int = 64, n: int = 64
) -> Any:
    """The kernel for tiles of m x n and steps of 64."""
    return source(cut, BM=m, BN=n, PIECES=pieces, BEFORE=before, WORK=work, BY=by)


def cutting_oddly(how: str, m: int = 64, n: int = 64) -> Any:
    """A kernel that cuts in another way."""
    return source(odd, BM=m, BN=n, HOW=how)
