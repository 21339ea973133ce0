"""Loads, stores and atomics in all their modes; gathers; block pointers."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportArgumentType=false, reportAssignmentType=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from .entries import MI300, Entry, pointers, sizes


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + at, mask=at < n) + tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, total, mask=at < n)


@triton.jit
def cache_modes(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.max_contiguous(tl.arange(0, BLOCK), BLOCK)
    tl.assume(n > 0)
    # ptxas takes a cache modifier or an eviction policy, not both.
    x = tl.load(x_ptr + at, cache_modifier=".cg") + tl.load(x_ptr, eviction_policy="evict_last")
    y = tl.load(y_ptr + at, mask=at < n, other=1.0, volatile=True)
    tl.debug_barrier()
    tl.store(out_ptr + at, x + y, cache_modifier=".wt")
    tl.store(out_ptr, 0.0, eviction_policy="evict_first")


@triton.jit
def atomics(x_ptr, counter_ptr, mask_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = at.to(tl.float32)
    tl.atomic_add(x_ptr + at, value, mask=at < n)
    tl.atomic_max(x_ptr + at, value, sem="release", scope="cta")
    old = tl.atomic_add(counter_ptr, 1, sem="acquire")
    tl.atomic_xor(mask_ptr + at, at ^ old)
    tl.atomic_xchg(counter_ptr, 0, scope="sys")


@triton.jit
def spin_lock(lock_ptr, x_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(x_ptr, tl.load(x_ptr) + 1)
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def gather_rows(x_ptr, index_ptr, y_ptr, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(y_ptr + at, tl.gather(tl.load(x_ptr + at), tl.load(index_ptr + at), axis=1))


@triton.jit
def embedding(table_ptr, index_ptr, y_ptr, n, D: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + at, mask=at < n, other=0)
    row = tl.load(table_ptr + index[:, None] * D + tl.arange(0, D)[None, :])
    tl.store(y_ptr + at[:, None] * D + tl.arange(0, D)[None, :], row, mask=(at < n)[:, None])


@triton.jit
def transpose(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    x_block = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    y_block = tl.make_block_ptr(y_ptr, (N, M), (M, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    for _ in range(0, N, BLOCK):
        x = tl.load(x_block, boundary_check=(0, 1), padding_option="zero")
        tl.store(y_block, x.T, boundary_check=(0, 1))
        x_block = tl.advance(x_block, (0, BLOCK))
        y_block = tl.advance(y_block, (BLOCK, 0))


_XYO = pointers("fp32", "x_ptr", "y_ptr", "out_ptr")
_GRID = {"R": 16, "C": 64}

ENTRIES = (
    Entry(vector_add, {**_XYO, "n": "i32"}, {"BLOCK": 1024}),
    Entry(vector_add, {**_XYO, "n": "i32"}, {"BLOCK": 1024}, MI300),
    Entry(
        vector_add, {**_XYO, "n": "i64"}, {"BLOCK": 1}, variant="scalar", options={"num_warps": 1}
    ),
    Entry(cache_modes, {**_XYO, "n": "i32"}, {"BLOCK": 256}),
    Entry(
        atomics,
        {"x_ptr": "*fp32", **pointers("i32", "counter_ptr", "mask_ptr"), "n": "i32"},
        {"BLOCK": 128},
    ),
    Entry(spin_lock, pointers("i32", "lock_ptr", "x_ptr")),
    Entry(gather_rows, {**pointers("fp32", "x_ptr", "y_ptr"), "index_ptr": "*i32"}, _GRID),
    Entry(
        embedding,
        {**pointers("fp16", "table_ptr", "y_ptr"), "index_ptr": "*i64", "n": "i32"},
        {"D": 64, "BLOCK": 32},
    ),
    Entry(
        transpose,
        {**pointers("fp16", "x_ptr", "y_ptr"), **sizes("M", "N")},
        {"BLOCK": 32},
        before=(3, 8),
    ),
)
