"""Branches, loops, calls, prints and asserts."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportArgumentType=false, reportAssignmentType=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from .entries import Entry, pointers, sizes


@triton.jit
def collatz(x_ptr, y_ptr):
    x, steps = tl.load(x_ptr + tl.program_id(0)), 0
    while x > 1:
        if x % 2 == 0:  # noqa: SIM108, no expression makes an scf.if
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    tl.store(y_ptr + tl.program_id(0), steps)


@triton.jit(noinline=True)
def _scaled(x, factor):
    return x * factor + 1.0


@triton.jit(noinline=True)
def _store_row(ptr, n, value, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(ptr + at, at * value, mask=at < n)


@triton.jit
def calls(x_ptr, y_ptr, factor, n, BLOCK: tl.constexpr):
    value = _scaled(_scaled(tl.load(x_ptr), factor), factor)
    _store_row(y_ptr, n, value, BLOCK)


@triton.jit
def early_return(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    if start >= n:
        return
    at = start + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at))


@triton.jit
def nested_loops(x_ptr, y_ptr, m, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(m):
        bound = tl.load(y_ptr + i).to(tl.int32)
        for j in range(bound):
            for k in tl.static_range(3):
                total += tl.load(x_ptr + i * n + j * 4 + k + tl.arange(0, BLOCK))
        if i % 2 == 0:
            total *= 0.5
    tl.store(y_ptr + tl.arange(0, BLOCK), total)


@triton.jit
def loop_attributes(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.range(0, n, num_stages=4, loop_unroll_factor=2):
        total += tl.load(x_ptr + i * BLOCK + tl.arange(0, BLOCK))
    for i in tl.range(0, n, disallow_acc_multi_buffer=True, disable_licm=True):
        total += tl.load(x_ptr + i * BLOCK + tl.arange(0, BLOCK))
    tl.store(y_ptr + tl.arange(0, BLOCK), total)


@triton.jit
def prints_and_asserts(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.device_print('value of "x": ', x)
    tl.device_print("n ", n, hex=True)
    tl.device_assert(n > 0, "n must be positive")
    tl.static_assert(BLOCK > 1)
    tl.store(y_ptr + at, x)


@triton.jit
def _sum_of(values):
    total = values[0]
    for index in tl.static_range(1, len(values)):
        total += values[index]
    return total


@triton.jit
def tuples(pairs, y_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, _sum_of((tl.load(pairs[0] + at), tl.load(pairs[1] + at))) * pairs[2])


_FLOATS = pointers("fp32", "x_ptr", "y_ptr")
_BLOCK = {"BLOCK": 256}

ENTRIES = (
    Entry(collatz, pointers("i32", "x_ptr", "y_ptr")),
    Entry(calls, {**_FLOATS, "factor": "fp32", "n": "i32"}, _BLOCK),
    Entry(early_return, {**_FLOATS, "n": "i32"}, _BLOCK),
    Entry(nested_loops, {**_FLOATS, **sizes("m", "n")}, _BLOCK),
    Entry(loop_attributes, {**_FLOATS, "n": "i32"}, _BLOCK),
    Entry(prints_and_asserts, {**_FLOATS, "n": "i32"}, _BLOCK, options={"debug": True}),
    Entry(tuples, {"pairs": ("*fp32", "*fp32", "i32"), "y_ptr": "*fp32"}, _BLOCK),
)
