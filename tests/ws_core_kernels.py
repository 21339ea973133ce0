"""Persistent kernels as users write them, beside those of tilepass.kernels."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.compiler import ASTSource

_BLOCK = 64
_HALVES = ("fp16", "fp16", "fp16")


@triton.jit
def _origin(tile, tiles_m, tiles_n):
    group = tile // (8 * tiles_n)
    rows = min(tiles_m - group * 8, 8)
    return group * 8 + tile % rows, tile % (8 * tiles_n) // rows


@triton.jit
def subtiled(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK: tl.constexpr,
    PROGRAMS: tl.constexpr,
    HALVES: tl.constexpr,
):
    """Triton's tutorial: descriptors of the kernel, a second count of the tiles for the epilogue,
    which may go out in halves."""
    tiles_m, tiles_n = tl.cdiv(M, BLOCK), tl.cdiv(N, BLOCK)
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK, BLOCK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK, BLOCK])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK, BLOCK // HALVES])
    stored = tl.program_id(0) - PROGRAMS
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS, flatten=True):
        m, n = _origin(tile, tiles_m, tiles_n)
        accumulator = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for k in range(tl.cdiv(K, BLOCK)):
            a = a_desc.load([m * BLOCK, k * BLOCK])
            b = b_desc.load([n * BLOCK, k * BLOCK])
            accumulator = tl.dot(a, b.T, accumulator)
        stored += PROGRAMS
        m, n = _origin(stored, tiles_m, tiles_n)
        if HALVES == 2:
            pairs = tl.permute(tl.reshape(accumulator, (BLOCK, 2, BLOCK // 2)), (0, 2, 1))
            left, right = tl.split(pairs)
            c_desc.store([m * BLOCK, n * BLOCK], left.to(tl.float16))
            c_desc.store([m * BLOCK, n * BLOCK + BLOCK // 2], right.to(tl.float16))
        else:
            c_desc.store([m * BLOCK, n * BLOCK], accumulator.to(tl.float16))


@triton.jit
def normalized(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, ADDED: tl.constexpr):
    """A reduction in the epilogue, a store that is masked only where it must be, K in steps;
    what is stored through, and a row to be added, is there before the steps."""
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK, BLOCK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK, BLOCK])
    tiles_n = tl.cdiv(N, BLOCK)
    tiles = tl.cdiv(M, BLOCK) * tiles_n
    if ADDED:
        added = tl.load(a_ptr + tl.arange(0, BLOCK))[None, :]
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        row, column = tile // tiles_n * BLOCK, tile % tiles_n * BLOCK
        rows, columns = row + tl.arange(0, BLOCK), column + tl.arange(0, BLOCK)
        pointers = c_ptr + rows[:, None] * N + columns[None, :]
        accumulator = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for k in range(0, K, BLOCK):
            a, b = a_desc.load([row, k]), b_desc.load([k, column])
            accumulator = tl.dot(a, b, accumulator)
        most = tl.max(tl.abs(accumulator), 1)
        c = (accumulator / (most + 1.0)[:, None]).to(tl.float16)
        if row + BLOCK <= M:
            if ADDED:
                c += added
            tl.store(pointers, c)
        else:
            tl.store(pointers, c, mask=(rows < M)[:, None])


@triton.jit
def narrow(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, EXACT: tl.constexpr, INTEGERS: tl.constexpr
):
    """Operands of 8 bits: int8, or fp8 with sums that are exact every so many elements of K."""
    OUT: tl.constexpr = tl.int32 if INTEGERS else tl.float32
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK, BLOCK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK, BLOCK])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    tiles_n = tl.cdiv(N, BLOCK)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BLOCK) * tiles_n, tl.num_programs(0)):
        row, column = tile // tiles_n * BLOCK, tile % tiles_n * BLOCK
        accumulator = tl.zeros((BLOCK, BLOCK), dtype=OUT)
        for k in range(0, K, BLOCK):
            a, b = a_desc.load([row, k]), b_desc.load([column, k])
            accumulator = tl.dot(a, b.T, accumulator, max_num_imprecise_acc=EXACT, out_dtype=OUT)
        c_desc.store([row, column], accumulator)


@triton.jit
def added_to(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, HOW: tl.constexpr):
    """C += A B^T; all tiles to one place, or to one place the last, or C added to itself behind the
    store once more."""
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK, BLOCK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK, BLOCK])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    tiles_n = tl.cdiv(N, BLOCK)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BLOCK) * tiles_n, tl.num_programs(0)):
        row, column = tile // tiles_n * BLOCK, tile % tiles_n * BLOCK
        accumulator = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for k in range(0, K, BLOCK):
            a, b = a_desc.load([row, k]), b_desc.load([column, k])
            accumulator = tl.dot(a, b.T, accumulator)
        if HOW != "behind":
            row, column = tl.program_id(0) * BLOCK, 0
        if HOW == "the last":
            c = accumulator.to(tl.float16)
        else:
            c = (c_desc.load([row, column]) + accumulator).to(tl.float16)
        c_desc.store([row, column], c)
        if HOW == "behind":
            c_desc.store([row, column], c + c_desc.load([row, column]))


def source(function: Any, types: tuple[str, str, str] = _HALVES, **constants: Any) -> Any:
    """A kernel for 64x64 tiles; `types` are those of the arrays."""
    constants = {"BLOCK": _BLOCK, **constants}
    signature = {
        **dict(zip(("a_ptr", "b_ptr", "c_ptr"), (f"*{each}" for each in types), strict=True)),
        **dict.fromkeys(("M", "N", "K"), "i32"),
        **dict.fromkeys(constants, "constexpr"),
    }
    return ASTSource(function, signature, constexprs=constants)
