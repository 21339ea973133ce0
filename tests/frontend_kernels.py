"""The smallest kernels for the tests of the Triton front end."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false

from __future__ import annotations

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@triton.jit
def helper(x):
    return x + tl.abs(x)


@triton.jit(noinline=True)
def outlined(x):
    return x * tl.sqrt(x)


@triton.jit
def add_kernel(x_pointer, y_pointer, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_pointer + offsets)
    tl.store(y_pointer + offsets, helper(x))


@triton.jit
def calling_kernel(x_pointer, y_pointer, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_pointer + offsets)
    tl.store(y_pointer + offsets, helper(x) + outlined(tl.load(x_pointer)))


@triton.jit
def loop_kernel(x_pointer, y_pointer, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(0, 8):
        total = helper(total + tl.load(x_pointer + step * BLOCK + offsets))
    tl.store(y_pointer + offsets, total)


@gluon.jit
def gluon_kernel(x_pointer, y_pointer, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    offsets = gl.arange(0, BLOCK, layout=layout)
    x = gl.load(x_pointer + offsets)
    gl.store(y_pointer + offsets, x + gl.abs(x))


@gluon.jit
def gluon_wave64_kernel(x_pointer, y_pointer, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [gl.num_warps()], [0])
    offsets = gl.arange(0, BLOCK, layout=layout)
    x = gl.load(x_pointer + offsets)
    gl.store(y_pointer + offsets, x + gl.abs(x))
