"""Attention forward: two dots in one loop, online softmax, causal masks, -inf constants."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportArgumentType=false, reportAssignmentType=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from .entries import AMPERE, BLACKWELL, MI300, Entry, pointers


@triton.jit
def attention_forward(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    max_ptr,
    length,
    scale,
    BM: tl.constexpr,
    BN: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    start = tl.program_id(0) * BM
    head = tl.program_id(1).to(tl.int64) * length * D
    rows, columns, ds = start + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    q = tl.load(q_ptr + head + rows[:, None] * D + ds[None, :])
    high = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, start + BM if CAUSAL else length, BN):
        k = tl.load(k_ptr + head + (n + columns)[:, None] * D + ds[None, :])
        scores = tl.dot(q, k.T) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= (n + columns)[None, :], scores, float("-inf"))
        new_high = tl.maximum(high, tl.max(scores, 1))
        p = tl.exp2(scores - new_high[:, None])
        alpha = tl.exp2(high - new_high)
        total = total * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + head + (n + columns)[:, None] * D + ds[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        high = new_high
    tl.store(max_ptr + tl.program_id(1) * length + rows, high + tl.log2(total))
    acc = acc / total[:, None]
    tl.store(out_ptr + head + rows[:, None] * D + ds[None, :], acc.to(out_ptr.dtype.element_ty))


@triton.jit
def attention_specialized(
    q_desc,
    k_desc,
    v_desc,
    out_desc,
    length,
    scale,
    BM: tl.constexpr,
    BN: tl.constexpr,
    D: tl.constexpr,
):
    start = tl.program_id(0) * BM
    q = q_desc.load([start, 0])
    high = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in tl.range(0, length, BN, warp_specialize=True):
        k = k_desc.load([n, 0])
        scores = tl.dot(q, k.T) * scale
        new_high = tl.maximum(high, tl.max(scores, 1))
        p = tl.exp2(scores - new_high[:, None])
        alpha = tl.exp2(high - new_high)
        total = total * alpha + tl.sum(p, 1)
        v = v_desc.load([n, 0])
        acc = tl.dot(p.to(tl.bfloat16), v, acc * alpha[:, None])
        high = new_high
    out_desc.store([start, 0], (acc / total[:, None]).to(tl.bfloat16))


_TYPES = {
    **pointers("bf16", "q_ptr", "k_ptr", "v_ptr", "out_ptr"),
    "max_ptr": "*fp32",
    "length": "i32",
    "scale": "fp32",
}
_DESCRIPTORS = {
    **dict.fromkeys(("q_desc", "out_desc"), "tensordesc<bf16[128,64]>"),
    **dict.fromkeys(("k_desc", "v_desc"), "tensordesc<bf16[64,64]>"),
    "length": "i32",
    "scale": "fp32",
}
_TILE = {"BM": 128, "BN": 64, "D": 64}

ENTRIES = (
    *(
        Entry(
            attention_forward,
            _TYPES,
            {**_TILE, "CAUSAL": causal},
            target,
            {"num_warps": 4, "num_stages": 2},
            variant="causal" if causal else "full",
        )
        for causal, target in (
            (True, Entry.target),
            (False, Entry.target),
            (True, BLACKWELL),
            (True, AMPERE),
            (True, MI300),
        )
    ),
    Entry(attention_specialized, _DESCRIPTORS, _TILE, BLACKWELL, {"num_warps": 4}),
)
