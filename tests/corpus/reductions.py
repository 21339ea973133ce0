"""Reductions, scans, sorts and histograms, with built-in and with own combine functions."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportArgumentType=false, reportAssignmentType=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from .entries import MI300, Entry, pointers


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    row = tl.program_id(0) * columns
    x = tl.load(x_ptr + row + offsets, mask=offsets < columns, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row + offsets, e / tl.sum(e, axis=0), mask=offsets < columns)


@triton.jit
def layer_norm(x_ptr, w_ptr, b_ptr, y_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row + at, mask=at < columns, other=0.0)
    mean = tl.sum(total, axis=0) / columns
    square = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + at, mask=at < columns, other=0.0)
        square += tl.where(at < columns, (x - mean) * (x - mean), 0.0)
    scale = tl.rsqrt(tl.sum(square, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + at, mask=at < columns, other=0.0)
        w = tl.load(w_ptr + at, mask=at < columns)
        b = tl.load(b_ptr + at, mask=at < columns)
        tl.store(y_ptr + row + at, (x - mean) * scale * w + b, mask=at < columns)


@triton.jit
def argmax_rows(x_ptr, index_ptr, R: tl.constexpr, C: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])
    _, index = tl.max(x, axis=1, return_indices=True)
    tl.store(index_ptr + tl.arange(0, R), index)


@triton.jit
def _welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    delta = mean_b - mean_a
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@triton.jit
def welford(x_ptr, mean_ptr, var_ptr, R: tl.constexpr, C: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])
    zeros = tl.zeros((R, C), tl.float32)
    mean, m2, count = tl.reduce((x, zeros, zeros + 1.0), 1, _welford)
    tl.store(mean_ptr + tl.arange(0, R), mean)
    tl.store(var_ptr + tl.arange(0, R), m2 / count)


@triton.jit
def cumulative(x_ptr, y_ptr, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, tl.cumsum(x, axis=1) + tl.cumprod(x, axis=0, reverse=True))


@triton.jit
def _linear_recurrence(a, b, c, d):
    return a * c, c * b + d


@triton.jit
def recurrence_scan(a_ptr, b_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    _, y = tl.associative_scan((a, b), 0, _linear_recurrence)
    tl.store(y_ptr + at, y)


@triton.jit
def sort_rows(x_ptr, y_ptr, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(y_ptr + at, tl.sort(tl.load(x_ptr + at), descending=True))


@triton.jit
def histogram(x_ptr, y_ptr, N: tl.constexpr, BINS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(y_ptr + tl.arange(0, BINS), tl.histogram(x, BINS))


@triton.jit
def bit_reduce(x_ptr, y_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(y_ptr, tl.xor_sum(x, axis=0))
    tl.store(y_ptr + 1, tl.min(x, axis=0))


_XY = pointers("fp32", "x_ptr", "y_ptr")
_GRID = {"R": 16, "C": 128}

ENTRIES = (
    Entry(softmax, {**_XY, "columns": "i32"}, {"BLOCK": 1024}),
    Entry(softmax, {**_XY, "columns": "i32"}, {"BLOCK": 1024}, MI300),
    Entry(
        layer_norm,
        {**pointers("fp32", "x_ptr", "w_ptr", "b_ptr", "y_ptr"), "columns": "i32", "eps": "fp32"},
        {"BLOCK": 512},
    ),
    Entry(argmax_rows, {"x_ptr": "*fp32", "index_ptr": "*i32"}, _GRID),
    Entry(welford, pointers("fp32", "x_ptr", "mean_ptr", "var_ptr"), _GRID),
    Entry(cumulative, _XY, _GRID),
    Entry(recurrence_scan, pointers("fp32", "a_ptr", "b_ptr", "y_ptr"), {"N": 512}),
    Entry(sort_rows, pointers("i32", "x_ptr", "y_ptr"), {"R": 4, "C": 16}),
    Entry(histogram, pointers("i32", "x_ptr", "y_ptr"), {"N": 512, "BINS": 64}),
    Entry(bit_reduce, pointers("i32", "x_ptr", "y_ptr"), {"N": 256}),
)
