"""Dequantisation of packed mxfp4 in registers; `_mxfp4_format` describes the packing."""

from __future__ import annotations

import triton
import triton.language as tl

DECODE = tl.constexpr("""{
    .reg .b32 p0, p1, p2, p3, t;
    and.b32 p0, $8, 0x81C081C0;
    shl.b32 t, $8, 3;
    and.b32 p1, t, 0x81C081C0;
    shl.b32 t, $8, 6;
    and.b32 p2, t, 0x81C081C0;
    shl.b32 t, $8, 1;
    and.b32 p3, t, 0x80008000;
    shr.u32 t, $8, 5;
    lop3.b32 p3, t, 0x01000100, p3, 0xEA;
    shr.u32 t, $8, 4;
    lop3.b32 p3, t, 0x00C000C0, p3, 0xEA;
    mul.rn.bf16x2 p0, p0, $9;
    mul.rn.bf16x2 p1, p1, $9;
    mul.rn.bf16x2 p2, p2, $9;
    mul.rn.bf16x2 p3, p3, $9;
    mov.b32 {$0, $1}, p0;
    mov.b32 {$2, $3}, p1;
    mov.b32 {$4, $5}, p2;
    mov.b32 {$6, $7}, p3;
}""")
"""A word of 8 codes ($8) times a pair of equal bf16 factors ($9), as 8 bf16 ($0..$7).
lop3 with 0xEA is (a & b) | c."""

REPEAT_HALVES = tl.constexpr("""{
    prmt.b32 $0, $2, 0, 0x1010;
    prmt.b32 $1, $2, 0, 0x3232;
}""")
"""The two bf16 of a word ($2), each twice ($0, $1): shifts and masks would take three times the
instructions."""

FINISH_DOTS = tl.constexpr("""{
    wgmma.wait_group.sync.aligned 0;
    mov.b32 $0, $1;
}""")
"""A word ($1) unchanged, behind a wait for all earlier dots: what is computed from it writes no
register that one of them still reads."""

UNSCALE = tl.constexpr(2.0**64)
"""What the factors leave out, see `_mxfp4_format`."""


@triton.jit
def scale_factors(words, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Packed scales [BLOCK_N, max(1, BLOCK_K / 128)] as pairs of equal bf16 factors,
    int32 [BLOCK_N, BLOCK_K / 32]."""
    if BLOCK_K == 64:
        pair = tl.inline_asm_elementwise(
            REPEAT_HALVES, "=r,=r,r", [words], dtype=(tl.int32,) * 2, is_pure=True, pack=1
        )
        factors = tl.join(pair[0], pair[1])
    else:
        bits = words.to(tl.uint32, bitcast=True)
        even = tl.join((bits & 0xFF) * 0x00800080, (bits >> 16 & 0xFF) * 0x00800080)
        odd = tl.join((bits >> 8 & 0xFF) * 0x00800080, (bits >> 24) * 0x00800080)
        factors = tl.join(even, odd).to(tl.int32, bitcast=True)
    return factors.reshape(BLOCK_N, BLOCK_K // 32)


@triton.jit
def dequantize_tile(
    words, scales, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GUARD: tl.constexpr
):
    """Packed codes int32 [BLOCK_N, BLOCK_K / 8] as bf16 [BLOCK_N, BLOCK_K], times 2^-64. The
    elements come out in the order of wgmma's A fragment: no data moves between threads. With
    GUARD (sm_90) it begins only when all earlier dots have finished."""
    GROUPS: tl.constexpr = BLOCK_K // 32
    if GUARD:
        # Pure: the order comes from the data, and the words' loads may still move.
        scales = tl.inline_asm_elementwise(
            FINISH_DOTS, "=r,r", [scales], dtype=tl.int32, is_pure=True, pack=1
        )
    factors = scale_factors(scales, BLOCK_N, BLOCK_K).reshape(BLOCK_N, 1, GROUPS)
    halves = tl.inline_asm_elementwise(
        DECODE,
        "=h,=h,=h,=h,=h,=h,=h,=h,r,r",
        [words.reshape(BLOCK_N, 4, GROUPS), factors.broadcast_to(BLOCK_N, 4, GROUPS)],
        dtype=(tl.int16,) * 8,
        is_pure=True,
        pack=1,
    )
    first = tl.join(tl.join(halves[0], halves[1]), tl.join(halves[2], halves[3]))
    second = tl.join(tl.join(halves[4], halves[5]), tl.join(halves[6], halves[7]))
    # n, t, group, half, q, h -> n, group, h, q, t, half
    ordered = tl.join(first, second).permute(0, 2, 5, 4, 1, 3)
    return ordered.reshape(BLOCK_N, BLOCK_K).to(tl.bfloat16, bitcast=True)
