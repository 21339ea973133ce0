"""Kernels to be validated: one that the simulator cannot execute, one that is folded late."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def assembly_kernel(x_pointer, y_pointer, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_pointer + offsets)
    root = tl.inline_asm_elementwise(
        "sqrt.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(y_pointer + offsets, x + root)


@triton.jit
def late_kernel(a_pointer, b_pointer, c_pointer, tiles, K, q, BLOCK: tl.constexpr):
    """The next value of `prev` is known only after ttgir's canonicalizer has run."""
    lanes = tl.arange(0, BLOCK)
    places = lanes[:, None] * BLOCK + lanes[None, :]
    prev = 0
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        accumulator = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(0, K):
            a = tl.load(a_pointer + tile * BLOCK * BLOCK + places)
            b = tl.load(b_pointer + k * BLOCK * BLOCK + places)
            accumulator = tl.dot(a, b, accumulator)
        tl.store(c_pointer + prev * BLOCK * BLOCK + places, accumulator)
        first = tile * q
        again = tile * q
        prev = tile + (again - first)
