"""Tensor descriptors: made on the device, gathers and scatters, reductions to memory."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportArgumentType=false, reportAssignmentType=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from .entries import BLACKWELL, HOPPER, Entry, pointers, sizes


@triton.jit
def device_descriptors(a_ptr, b_ptr, c_ptr, M, N, K, B: tl.constexpr, BK: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [B, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [B, BK])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [B, B])
    row, column = tl.program_id(0) * B, tl.program_id(1) * B
    acc = tl.zeros((B, B), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([row, k]), b_desc.load([column, k]).T, acc)
    c_desc.store([row, column], acc.to(tl.float16))


@triton.jit
def descriptor_reduce(x_desc, y_desc, B: tl.constexpr):
    at = tl.program_id(0) * B
    y_desc.atomic_add([at, 0], x_desc.load([at, 0]))


@triton.jit
def descriptor_rows(x_desc, y_desc, index_ptr, B: tl.constexpr):
    index = tl.load(index_ptr + tl.arange(0, B))
    y_desc.scatter(x_desc.gather(index, 0), index, 0)


_ABC = pointers("fp16", "a_ptr", "b_ptr", "c_ptr")

ENTRIES = (
    *(
        Entry(
            device_descriptors,
            {**_ABC, **sizes("M", "N", "K")},
            {"B": 128, "BK": 64},
            target,
            {"num_warps": 4, "num_stages": 3},
        )
        for target in (HOPPER, BLACKWELL)
    ),
    Entry(
        descriptor_reduce,
        dict.fromkeys(("x_desc", "y_desc"), "tensordesc<fp32[64,32]>"),
        {"B": 64},
    ),
    Entry(
        descriptor_rows,
        {**dict.fromkeys(("x_desc", "y_desc"), "tensordesc<bf16[1,64]>"), "index_ptr": "*i32"},
        {"B": 32},
        BLACKWELL,
    ),
)
