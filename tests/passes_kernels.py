"""Kernels that the tests of passes compile, and how they do it."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HOPPER = GPUTarget("cuda", 90, 32)
BLACKWELL = GPUTarget("cuda", 100, 32)


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    FLATTEN: tl.constexpr,
    SPECIALIZE: tl.constexpr,
    ASSUME: tl.constexpr,
):
    """Persistent C = A B^T, K in steps of 64."""
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, 64])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, 64])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles = tiles_m * tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, 64)
    if ASSUME:
        tl.assume(steps > 0)
        tl.assume(tiles >= 0)
    for tile in tl.range(
        tl.program_id(0),
        tiles,
        tl.num_programs(0),
        flatten=FLATTEN,
        warp_specialize=SPECIALIZE,
    ):
        row = tile % tiles_m * BLOCK_M
        column = tile // tiles_m * BLOCK_N
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(steps):
            a = a_desc.load([row, k * 64])
            b = b_desc.load([column, k * 64])
            accumulator = tl.dot(a, b.T, accumulator)
        c_desc.store([row, column], accumulator.to(tl.bfloat16))


@triton.jit
def matmul_of_bytes(a_ptr, b_ptr, c_ptr, K):
    """C = A B for one tile, A int8, which becomes bf16 in registers."""
    rows, columns, depth = tl.arange(0, 128), tl.arange(0, 64), tl.arange(0, 128)
    accumulator = tl.zeros((128, 64), dtype=tl.float32)
    for k in range(0, K, 128):
        a = tl.load(a_ptr + rows[:, None] * K + depth[None, :] + k)
        b = tl.load(b_ptr + columns[None, :] * K + depth[:, None] + k)
        accumulator = tl.dot(a.to(tl.bfloat16), b, accumulator)
    tl.store(c_ptr + rows[:, None] * 64 + columns[None, :], accumulator)


def compile_matmul_of_bytes() -> Any:
    """The kernel above for Hopper."""
    signature = {"a_ptr": "*i8", "b_ptr": "*bf16", "c_ptr": "*fp32", "K": "i32"}
    aligned: Any = {(index,): [["tt.divisibility", 16]] for index in range(4)}
    source = ASTSource(matmul_of_bytes, signature, attrs=aligned)
    return triton.compile(source, target=HOPPER, options={"num_warps": 4, "num_stages": 3})


def compile_matmul(
    *,
    flatten: bool,
    specialize: bool = False,
    assume: bool = False,
    tile: tuple[int, int] = (128, 128),
    num_warps: int = 8,
    target: GPUTarget = HOPPER,
) -> Any:
    """The compiled kernel; `asm` holds the IR of every stage."""
    constants = {
        "BLOCK_M": tile[0],
        "BLOCK_N": tile[1],
        "FLATTEN": flatten,
        "SPECIALIZE": specialize,
        "ASSUME": assume,
    }
    signature = {
        **dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*bf16"),
        **dict.fromkeys(("M", "N", "K"), "i32"),
        **dict.fromkeys(constants, "constexpr"),
    }
    aligned: Any = {(index,): [["tt.divisibility", 16]] for index in range(6)}
    source = ASTSource(matmul, signature, constexprs=constants, attrs=aligned)
    return triton.compile(source, target=target, options={"num_warps": num_warps})


@triton.jit
def late_fold(a_ptr, b_ptr, c_ptr, tiles, K, q):
    """Stores each tile where the one before belongs. That the next value of `previous` is the tile
    index shows once the two products are one."""
    rows, depth = tl.arange(0, 16), tl.arange(0, 16)
    at = rows[:, None] * 16 + depth[None, :]
    previous = 0
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        accumulator = tl.zeros((16, 16), dtype=tl.float32)
        for k in range(K):
            a, b = tl.load(a_ptr + tile * 256 + at), tl.load(b_ptr + k * 256 + at)
            accumulator = tl.dot(a, b, accumulator)
        tl.store(c_ptr + previous * 256 + at, accumulator)
        first, again = tile * q, tile * q
        previous = tile + (again - first)


@triton.jit
def swapped_pointers(a_ptr, b_ptr, c_ptr, tiles, K, q):
    """The two results change places from tile to tile, one of them is what the dots read."""
    rows, depth = tl.arange(0, 16), tl.arange(0, 16)
    at = rows[:, None] * 16 + depth[None, :]
    to, other = c_ptr, b_ptr
    for _tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        accumulator = tl.zeros((16, 16), dtype=tl.float32)
        for k in range(K):
            a, b = tl.load(a_ptr + k * 256 + at), tl.load(b_ptr + q + at)
            accumulator = tl.dot(a, b, accumulator)
        tl.store(to + at, accumulator.to(tl.float16))
        to, other = other, to


def compile_carrying(kernel: Any, c_type: str) -> Any:
    """One of the two kernels above for Hopper."""
    names = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": c_type}
    source = ASTSource(kernel, names | dict.fromkeys(("tiles", "K", "q"), "i32"))
    return triton.compile(source, target=HOPPER, options={"num_warps": 4})
