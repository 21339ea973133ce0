"""Gluon kernels: explicit layouts, shared and tensor memory, barriers, partitions."""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportArgumentType=false, reportAssignmentType=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell, hopper

from .entries import BLACKWELL, HOPPER, Entry, pointers

# Renamed in 3.9.
_load = getattr(hopper.tma, "async_load", None) or hopper.tma.async_copy_global_to_shared


@gluon.jit
def gluon_copy(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(y_ptr + at, gl.load(x_ptr + at, mask=at < n), mask=at < n)


@gluon.jit
def gluon_transpose(x_ptr, y_ptr, B: gl.constexpr):
    wide: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    tall: gl.constexpr = gl.BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1])
    rows = gl.arange(0, B, layout=gl.SliceLayout(1, wide))
    columns = gl.arange(0, B, layout=gl.SliceLayout(0, wide))
    x = gl.load(x_ptr + rows[:, None] * B + columns[None, :])
    shared: gl.constexpr = gl.SwizzledSharedLayout(4, 2, 4, [1, 0])
    buffer = gl.allocate_shared_memory(x_ptr.dtype.element_ty, [B, B], shared, x)
    y = buffer.permute((1, 0)).load(tall)
    y = gl.convert_layout(y, wide)
    gl.store(y_ptr + rows[:, None] * B + columns[None, :], y)


@gluon.jit
def gluon_wgmma(a_desc, b_desc, y_ptr, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr):
    a = gl.allocate_shared_memory(a_desc.dtype, [BM, BK], a_desc.layout)
    b = gl.allocate_shared_memory(b_desc.dtype, [BK, BN], b_desc.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], hopper.mbarrier.MBarrierLayout())
    hopper.mbarrier.init(bar, count=1)
    hopper.mbarrier.expect(bar, a_desc.block_type.nbytes + b_desc.block_type.nbytes)
    _load(a_desc, [0, 0], bar, a)
    _load(b_desc, [0, 0], bar, b)
    hopper.mbarrier.wait(bar, 0)
    hopper.mbarrier.invalidate(bar)
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    acc = gl.zeros((BM, BN), gl.float32, layout)
    acc = hopper.warpgroup_mma(a, b, acc, is_async=True)
    acc = hopper.warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    rows = gl.arange(0, BM, layout=gl.SliceLayout(1, layout))
    columns = gl.arange(0, BN, layout=gl.SliceLayout(0, layout))
    gl.store(y_ptr + rows[:, None] * BN + columns[None, :], acc)


@gluon.jit
def _produce(x_desc, buffer, full, empty, n):
    for i in range(n):
        hopper.mbarrier.wait(empty, (i + 1) & 1)
        hopper.mbarrier.expect(full, x_desc.block_type.nbytes)
        _load(x_desc, [i * 64, 0], full, buffer)


@gluon.jit
def _consume(y_ptr, buffer, full, empty, n):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, layout))
    columns = gl.arange(0, 64, layout=gl.SliceLayout(0, layout))
    for i in range(n):
        hopper.mbarrier.wait(full, i & 1)
        x = buffer.load(layout)
        hopper.mbarrier.arrive(empty, count=1)
        gl.store(y_ptr + (i * 64 + rows)[:, None] * 64 + columns[None, :], x)


@gluon.jit
def gluon_specialized(x_desc, y_ptr, n):
    buffer = gl.allocate_shared_memory(x_desc.dtype, [64, 64], x_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], hopper.mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [1], hopper.mbarrier.MBarrierLayout())
    hopper.mbarrier.init(full, count=1)
    hopper.mbarrier.init(empty, count=1)
    gl.warp_specialize(
        [
            (_consume, (y_ptr, buffer, full, empty, n)),
            (_produce, (x_desc, buffer, full, empty, n)),
        ],
        [4],
        [24],
    )


@gluon.jit
def gluon_tcgen05(a_ptr, y_ptr, B: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    at = gl.arange(0, B, layout=gl.SliceLayout(1, layout))[:, None] * B
    at = at + gl.arange(0, B, layout=gl.SliceLayout(0, layout))[None, :]
    shared: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    a = gl.allocate_shared_memory(gl.float16, [B, B], shared, gl.load(a_ptr + at))
    hopper.fence_async_shared()
    tensor_memory: gl.constexpr = blackwell.TensorMemoryLayout([B, B], 1)
    acc = blackwell.allocate_tensor_memory(gl.float32, [B, B], tensor_memory)
    bar = gl.allocate_shared_memory(gl.int64, [1], hopper.mbarrier.MBarrierLayout())
    hopper.mbarrier.init(bar, count=1)
    blackwell.tcgen05_mma(a, a, acc, use_acc=False, mbarriers=[bar])
    hopper.mbarrier.wait(bar, 0)
    registers: gl.constexpr = gl.BlockedLayout([1, B], [32, 1], [4, 1], [0, 1])
    gl.store(y_ptr + at, gl.convert_layout(acc.load(registers), layout))


_SWIZZLED = "NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)"

ENTRIES = (
    Entry(
        gluon_copy,
        {**pointers("fp32", "x_ptr", "y_ptr"), "n": "i32"},
        {"BLOCK": 512},
        gluon=True,
    ),
    Entry(gluon_transpose, pointers("fp32", "x_ptr", "y_ptr"), {"B": 32}, gluon=True),
    Entry(
        gluon_wgmma,
        {
            "a_desc": f"tensordesc<fp16[64,64],{_SWIZZLED}>",
            "b_desc": f"tensordesc<fp16[64,64],{_SWIZZLED}>",
            "y_ptr": "*fp32",
        },
        {"BM": 64, "BN": 64, "BK": 64},
        HOPPER,
        gluon=True,
    ),
    Entry(
        gluon_specialized,
        {"x_desc": f"tensordesc<fp16[64,64],{_SWIZZLED}>", "y_ptr": "*fp16", "n": "i32"},
        target=HOPPER,
        gluon=True,
    ),
    Entry(gluon_tcgen05, {"a_ptr": "*fp16", "y_ptr": "*fp32"}, {"B": 128}, BLACKWELL, gluon=True),
)
