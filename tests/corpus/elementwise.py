"""Elementwise work: conversions, math libraries, inline assembly, random numbers, reshapes."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportArgumentType=false, reportAssignmentType=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from .entries import MI300, Entry, pointers


@triton.jit
def casts(x_ptr, y_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    narrow = x.to(tl.float8e5).to(tl.float32) + x.to(tl.bfloat16).to(tl.float32)
    bits = x.to(tl.int32, bitcast=True).to(tl.int8).to(tl.uint64).to(tl.float32)
    tl.store(y_ptr + tl.arange(0, BLOCK), (narrow + bits).to(tl.float16))


@triton.jit
def special_functions(x_ptr, y_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    y = tl.erf(x) + tl.sqrt_rn(tl.abs(x)) + tl.fma(x, x, 1.0) + tl.math.div_rn(x, 3.0)
    y = tl.clamp(y, -1.0, 1.0) + libdevice.tanh(x) + tl.cos(x) + tl.ceil(x)
    tl.store(y_ptr + tl.arange(0, BLOCK), tl.where(y != y, float("nan"), y))


@triton.jit
def integer_arithmetic(x_ptr, y_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    y = tl.umulhi(x.to(tl.uint32), 0x9E3779B9) + (x.to(tl.uint32) // 7) % 5
    z = (x // 7) % 5 - (x >> 3) + (x << 2) - (-x & 0xFF)
    tl.store(y_ptr + tl.arange(0, BLOCK), tl.minimum(y.to(tl.int32), z))


@triton.jit
def inline_assembly(x_ptr, y_ptr, z_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    low, high = tl.inline_asm_elementwise(
        # The braces, quotes and names are to look like IR and its aliases.
        asm='{ // "#blocked" #shared1 = !x\n shl.b32 $0, $2, 3;\n shr.u32 $1, $2, 3; }',
        constraints="=r,=r,r",
        args=[x],
        dtype=(tl.int32, tl.int32),
        is_pure=True,
        pack=1,
    )
    tl.store(y_ptr + tl.arange(0, BLOCK), low)
    tl.store(z_ptr + tl.arange(0, BLOCK), high)


@triton.jit
def dropout(x_ptr, y_ptr, seed, p, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > p
    tl.store(y_ptr + at, tl.where(keep, tl.load(x_ptr + at) / (1 - p), 0.0))


@triton.jit
def shuffles(x_ptr, y_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    even, odd = tl.split(x.reshape(BLOCK // 2, 2))
    swapped = tl.interleave(odd, even)
    both = tl.cat(even, odd, can_reorder=True)
    flipped = tl.permute(x.reshape(4, BLOCK // 4), (1, 0)).reshape(BLOCK)
    tl.store(y_ptr + tl.arange(0, BLOCK), swapped + flipped + both)


@triton.jit
def _compare(a, b):
    if a < b:
        return a, 1
    return b, 0


@triton.jit
def mapped(x_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    low, flag = tl.map_elementwise(_compare, x, at)
    tl.store(y_ptr + at, low + flag)


_FLOATS = pointers("fp32", "x_ptr", "y_ptr")
_INTS = pointers("i32", "x_ptr", "y_ptr")
_BLOCK = {"BLOCK": 256}

ENTRIES = (
    Entry(casts, {"x_ptr": "*fp32", "y_ptr": "*fp16"}, _BLOCK),
    Entry(special_functions, _FLOATS, _BLOCK),
    Entry(special_functions, _FLOATS, _BLOCK, MI300),
    Entry(integer_arithmetic, _INTS, _BLOCK),
    Entry(inline_assembly, {**_INTS, "z_ptr": "*i32"}, _BLOCK),
    Entry(dropout, {**_FLOATS, "seed": "i32", "p": "fp32"}, _BLOCK),
    Entry(shuffles, _FLOATS, _BLOCK),
    Entry(mapped, _INTS, _BLOCK),
)
