"""A small matmul for the tests of dump-ir; needs no GPU to compile."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

SM80: Any = GPUTarget("cuda", 80, 32)
SM90: Any = GPUTarget("cuda", 90, 32)
GFX942: Any = GPUTarget("hip", "gfx942", 64)


@triton.jit
def small_matmul(a_ptr, b_ptr, c_ptr, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    depth = tl.arange(0, BLOCK)
    accumulator = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + rows[:, None] * K + (k + depth)[None, :])
        b = tl.load(b_ptr + (k + depth)[:, None] * N + columns[None, :])
        accumulator = tl.dot(a, b, accumulator)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], accumulator.to(tl.float16))


def compile_matmul(target: Any = SM90, **options: Any) -> Any:
    """A compiled kernel; `options` are Triton's compile options."""
    types = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "K": "i32"}
    constants = {"M": 64, "N": 64, "BLOCK": 32}
    aligned = {(index,): [["tt.divisibility", 16]] for index in range(4)}
    signature = {**types, **dict.fromkeys(constants, "constexpr")}
    source = ASTSource(small_matmul, signature, constants, aligned)
    return triton.compile(source, target=target, options={"num_warps": 4, **options})
