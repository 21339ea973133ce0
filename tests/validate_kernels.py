"""A kernel that the simulator cannot execute."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false

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
