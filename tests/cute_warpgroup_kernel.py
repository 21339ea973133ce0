# The DSL ships no types, and its decorators return what they like.
# pyright: basic, reportAttributeAccessIssue=false
"""A small CuTe kernel with one wgmma: out of reach of `cute-zero-mma`."""

from __future__ import annotations

from typing import Any

import cutlass
from cutlass import cute
from cutlass.cute.nvgpu import OperandMajorMode, warpgroup
from cutlass.cute.runtime import make_fake_compact_tensor

CHIP = "sm_90a"


@cute.kernel
def one_product_kernel(c: cute.Tensor, mma: cute.TiledMma, layout: cute.ComposedLayout) -> None:
    """C (64 x 64) = the product of two shared tiles, by one warp group."""
    thread, _, _ = cute.arch.thread_idx()
    smem = cutlass.memory.SmemAllocator()
    part = mma.get_slice(thread)
    tiles = [
        smem.allocate_tensor(cutlass.Float16, layout.outer, 1024, swizzle=layout.inner)
        for _ in range(2)
    ]
    a = mma.make_fragment_A(part.partition_A(tiles[0]))
    b = mma.make_fragment_B(part.partition_B(tiles[1]))
    target = part.partition_C(c)
    accumulator = mma.make_fragment_C(target.shape)
    accumulator.fill(0.0)
    warpgroup.fence()
    cute.gemm(mma, accumulator, a[None, None, 0], b[None, None, 0], accumulator)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.autovec_copy(accumulator, target)


@cute.jit
def one_product(c: cute.Tensor) -> None:
    """Launch the kernel on a (64, 64) tensor."""
    major, shared = OperandMajorMode.K, warpgroup.OperandSource.SMEM
    operation = warpgroup.MmaF16BF16Op(
        cutlass.Float16, cutlass.Float32, (64, 64, 16), shared, major, major
    )
    kind = warpgroup.SmemLayoutAtomKind.K_SW128
    atom = warpgroup.make_smem_layout_atom(kind, cutlass.Float16)
    layout = cute.tile_to_shape(atom, (64, 64), (0, 1))
    mma = cute.make_tiled_mma(operation)
    one_product_kernel(c, mma, layout).launch(grid=(1, 1, 1), block=(128, 1, 1))


def compile_with(hook: Any) -> None:
    """Compile; the hook gets the module as it was traced."""
    c = make_fake_compact_tensor(cutlass.Float32, (64, 64), stride_order=(1, 0))
    cute.compile[(cute.GPUArch(CHIP),)](one_product, c, trace_finalize_hooks=hook)
