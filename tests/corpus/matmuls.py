"""Matrix products: pointers and descriptors, all dot kinds, persistent and split."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportArgumentType=false, reportAssignmentType=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget

from .entries import AMPERE, BLACKWELL, HOPPER, MI300, Entry, pointers, sizes


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a_mask = (rows[:, None] < M) & (ks[None, :] + k < K)
        b_mask = (ks[:, None] + k < K) & (columns[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :] + k, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + (ks[:, None] + k) * N + columns[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc, mask=c_mask)


@triton.jit
def matmul_int8(a_ptr, b_ptr, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :] + k)
        b = tl.load(b_ptr + (ks[:, None] + k) * BN + columns[None, :])
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
    tl.store(c_ptr + rows[:, None] * BN + columns[None, :], acc)


@triton.jit
def matmul_split_k(a_ptr, b_ptr, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    ks = tl.program_id(2) * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK * tl.num_programs(2)):
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :] + k)
        b = tl.load(b_ptr + (ks[:, None] + k) * BN + columns[None, :])
        acc = tl.dot(a, b, acc, input_precision="tf32x3")
    tl.atomic_add(c_ptr + rows[:, None] * BN + columns[None, :], acc, sem="relaxed")


@triton.jit
def matmul_batched(a_ptr, b_ptr, c_ptr, B: tl.constexpr, S: tl.constexpr):
    batch = tl.arange(0, B)[:, None, None] * S * S
    offsets = batch + tl.arange(0, S)[None, :, None] * S + tl.arange(0, S)[None, None, :]
    tl.store(c_ptr + offsets, tl.dot(tl.load(a_ptr + offsets), tl.load(b_ptr + offsets)))


@triton.jit
def matmul_mxfp4(
    a_ptr, b_ptr, s_ptr, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """bf16 times fp4 e2m1 unpacked with integer operations and scaled per 32 values."""
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + tl.arange(0, BK)[None, :] + k)
        packed = tl.load(
            b_ptr + columns[:, None] * (K // 2) + tl.arange(0, BK // 2)[None, :] + k // 2
        )
        low, high = packed & 0xF, packed >> 4
        codes = tl.join(low, high).reshape(BN, BK).to(tl.uint16)
        bits = ((codes & 0x8) << 12) | ((codes & 0x7) << 6)
        values = bits.to(tl.bfloat16, bitcast=True)
        scale = tl.load(
            s_ptr + columns[:, None] * (K // 32) + tl.arange(0, BK // 32)[None, :] + k // 32
        )
        factor = (scale.to(tl.uint16) << 7).to(tl.bfloat16, bitcast=True)
        factor = tl.broadcast_to(factor[:, :, None], (BN, BK // 32, 32)).reshape(BN, BK)
        acc = tl.dot(a, (values * factor).trans(), acc)
    tl.store(c_ptr + rows[:, None] * BN + columns[None, :], acc.to(tl.bfloat16))


@triton.jit
def matmul_scaled(
    a_ptr, sa_ptr, b_ptr, sb_ptr, c_ptr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    blocks = tl.arange(0, BK // 32)
    a = tl.load(a_ptr + rows[:, None] * BK + ks[None, :])
    b = tl.load(b_ptr + tl.arange(0, BK // 2)[:, None] * BN + columns[None, :])
    sa = tl.load(sa_ptr + rows[:, None] * (BK // 32) + blocks[None, :])
    sb = tl.load(sb_ptr + columns[:, None] * (BK // 32) + blocks[None, :])
    acc = tl.dot_scaled(a, sa, "e4m3", b, sb, "e2m1")
    tl.store(c_ptr + rows[:, None] * BN + columns[None, :], acc)


@triton.jit
def persistent_matmul(
    a_desc,
    b_desc,
    c_desc,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    FLATTEN: tl.constexpr,
    SPECIALIZE: tl.constexpr,
):
    tiles_m = tl.cdiv(M, BM)
    tiles = tiles_m * tl.cdiv(N, BN)
    for tile in tl.range(
        tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTEN, warp_specialize=SPECIALIZE
    ):
        row, column = tile % tiles_m * BM, tile // tiles_m * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            a = a_desc.load([row, k * BK])
            b = b_desc.load([column, k * BK])
            acc = tl.dot(a, b.T, acc)
        c_desc.store([row, column], acc.to(tl.bfloat16))


def _persistent(
    variant: str,
    target: GPUTarget = HOPPER,
    *,
    flatten: bool,
    specialize: bool,
    since: tuple[int, int] = (3, 6),
    num_warps: int = 4,
) -> Entry:
    types = {
        "a_desc": "tensordesc<bf16[128,64]>",
        "b_desc": "tensordesc<bf16[128,64]>",
        "c_desc": "tensordesc<bf16[128,128]>",
        **sizes("M", "N", "K"),
    }
    constants = {"BM": 128, "BN": 128, "BK": 64, "FLATTEN": flatten, "SPECIALIZE": specialize}
    options = {"num_warps": num_warps, "num_stages": 3}
    return Entry(persistent_matmul, types, constants, target, options, variant, since)


_TILE = {"BM": 128, "BN": 128, "BK": 64}
_SMALL = {"BM": 64, "BN": 64, "BK": 64}
_ABC = ("a_ptr", "b_ptr", "c_ptr")
_MATMUL = {**pointers("bf16", "a_ptr", "b_ptr"), "c_ptr": "*fp32", **sizes("M", "N", "K")}

ENTRIES = (
    Entry(matmul, _MATMUL, _TILE, options={"num_warps": 8, "num_stages": 3}),
    Entry(matmul, _MATMUL, _TILE, AMPERE, {"num_warps": 4, "num_stages": 4}),
    Entry(matmul, _MATMUL, _TILE, BLACKWELL, {"num_warps": 4, "num_stages": 3}),
    Entry(matmul, _MATMUL, _TILE, MI300, {"num_warps": 4, "num_stages": 2}),
    Entry(
        matmul,
        {**_MATMUL, **pointers("fp8e4nv", "a_ptr", "b_ptr")},
        _TILE,
        variant="fp8",
        options={"num_warps": 4},
    ),
    Entry(matmul_int8, {**pointers("i8", "a_ptr", "b_ptr"), "c_ptr": "*i32", "K": "i32"}, _SMALL),
    Entry(matmul_split_k, {**pointers("fp32", *_ABC), "K": "i32"}, {"BM": 64, "BN": 64, "BK": 32}),
    Entry(matmul_batched, pointers("fp16", *_ABC), {"B": 4, "S": 32}),
    Entry(
        matmul_mxfp4,
        {**pointers("bf16", "a_ptr", "c_ptr"), **pointers("u8", "b_ptr", "s_ptr"), "K": "i32"},
        {"BM": 64, "BN": 64, "BK": 128},
    ),
    *(
        Entry(
            matmul_scaled,
            {
                "a_ptr": "*fp8e4nv",
                **pointers("u8", "sa_ptr", "b_ptr", "sb_ptr"),
                "c_ptr": "*fp32",
            },
            {"BM": 128, "BN": 128, "BK": 128},
            target,
        )
        for target in (BLACKWELL, HOPPER)
    ),
    _persistent("plain", flatten=False, specialize=False, num_warps=8),
    _persistent("flat", flatten=True, specialize=False, num_warps=8),
    _persistent("both", flatten=True, specialize=True),
    _persistent("flat", BLACKWELL, flatten=True, specialize=False),
    # NVWSInsertAref of 3.6 fails on it.
    _persistent("specialized", BLACKWELL, flatten=False, specialize=True, since=(3, 9)),
    _persistent("both", BLACKWELL, flatten=True, specialize=True),
)
