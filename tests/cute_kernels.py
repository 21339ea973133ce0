# The DSL ships no types, and its decorators return what they like.
# pyright: basic, reportAttributeAccessIssue=false
"""A small CuTe kernel that compiles in half a second: two warp-level matrix products.

It needs no GPU: `compile_for` names the chip. One `cute.gemm` of 16 x 16 x 32 is 4 mma.sync of
m16n8k16 (2 along n, 2 along k).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cutlass
from cutlass import cute
from cutlass.cute.nvgpu import warp
from cutlass.cute.runtime import make_fake_compact_tensor

CHIP = "sm_90a"


@cute.kernel
def two_products_kernel(
    a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, tiled_mma: cute.TiledMma
) -> None:
    """C = A B^T + A B^T, of (16, 32) fp16 matrices, by one warp."""
    thread, _, _ = cute.arch.thread_idx()
    slice_ = tiled_mma.get_slice(thread)
    global_a, global_b = slice_.partition_A(a), slice_.partition_B(b)
    global_c = slice_.partition_C(c)
    registers_a = tiled_mma.make_fragment_A(global_a)
    registers_b = tiled_mma.make_fragment_B(global_b)
    accumulator = tiled_mma.make_fragment_C(global_c)
    cute.autovec_copy(global_a, registers_a)
    cute.autovec_copy(global_b, registers_b)
    accumulator.fill(0.0)
    cute.gemm(tiled_mma, accumulator, registers_a, registers_b, accumulator)
    cute.gemm(tiled_mma, accumulator, registers_a, registers_b, accumulator)
    cute.autovec_copy(accumulator, global_c)


@cute.jit
def two_products(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor) -> None:
    """Launch the kernel on (16, 32), (16, 32) and (16, 16) tensors."""
    mma = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    tiled_mma = cute.make_tiled_mma(mma)
    two_products_kernel(a, b, c, tiled_mma).launch(grid=(1, 1, 1), block=(32, 1, 1))


def fake_arguments() -> tuple[Any, Any, Any]:
    """Arguments without memory behind them, for compiling alone."""
    a = make_fake_compact_tensor(cutlass.Float16, (16, 32), stride_order=(1, 0))
    b = make_fake_compact_tensor(cutlass.Float16, (16, 32), stride_order=(1, 0))
    c = make_fake_compact_tensor(cutlass.Float32, (16, 16), stride_order=(1, 0))
    return a, b, c


def compile_to_ptx(folder: Path, chip: str = CHIP) -> str:
    """The PTX of the kernel, compiled by the DSL; files go to `folder`, which must be empty."""
    options = f"--gpu-arch {chip} --keep-ptx --dump-dir {folder}"
    cute.compile(two_products, *fake_arguments(), options=options)
    (file,) = folder.glob("*.ptx")
    return file.read_text(encoding="utf-8").rstrip("\0")


def count_mmas(ptx: str) -> int:
    """How many mma.sync instructions the PTX holds."""
    return ptx.count("mma.sync.aligned")


def compile_only() -> None:
    """Compile the kernel, for whatever chip the DSL is set to."""
    cute.compile(two_products, *fake_arguments())
