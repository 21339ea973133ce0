# The DSL ships no types, and its decorators return what they like.
# pyright: basic, reportAttributeAccessIssue=false, reportPrivateImportUsage=false
"""A CuTe kernel that copies a matrix through registers element by element, as accumulators go.

Each thread takes the elements of an m16n8k16 accumulator over (M, N): pairs of neighbours in a row.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cutlass
from cutlass import cute
from cutlass.cute.nvgpu import warp
from cutlass.cute.runtime import make_fake_tensor

CHIP = "sm_90a"


class CopyByElements:
    """`columns_first`: columns are the matrix's first mode, of stride 1, as FlashInfer has it."""

    def __init__(self, shape: tuple[int, int], columns_first: bool, align: int) -> None:
        self.shape, self.columns_first, self.align = shape, columns_first, align

    @cute.jit
    def __call__(self, source: cute.Tensor, destination: cute.Tensor) -> None:
        """Launch one warp."""
        mma = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
        self.kernel(source, destination, cute.make_tiled_mma(mma)).launch(
            grid=(1, 1, 1), block=(32, 1, 1)
        )

    @cute.kernel
    def kernel(
        self, source: cute.Tensor, destination: cute.Tensor, tiled_mma: cute.TiledMma
    ) -> None:
        """Through registers, one element after the other."""
        thread, _, _ = cute.arch.thread_idx()
        rows, columns = self.shape
        strides = (1, columns) if self.columns_first else (columns, 1)
        modes = (columns, rows) if self.columns_first else (rows, columns)
        layout = cute.make_layout(modes, stride=strides)
        taken = cute.make_tensor(source.iterator, layout)
        given = cute.make_tensor(destination.iterator, layout)
        places = tiled_mma.get_slice(thread).partition_C(cute.make_identity_tensor(self.shape))
        registers = cute.make_rmem_tensor(places.shape, cutlass.Float32)
        for index in cutlass.range(cute.size(registers), unroll_full=True):
            row, column = places[index]
            if cutlass.const_expr(self.columns_first):
                registers[index] = taken[column, row]
            else:
                registers[index] = taken[row, column]
        for index in cutlass.range(cute.size(registers), unroll_full=True):
            row, column = places[index]
            if cutlass.const_expr(self.columns_first):
                given[column, row] = registers[index]
            else:
                given[row, column] = registers[index]

    def compile_to_ptx(self, folder: Path) -> str:
        """The PTX, compiled by the DSL; files go to `folder`, which must be empty."""
        options = f"--gpu-arch {CHIP} --keep-ptx --dump-dir {folder}"
        cute.compile(self, self._argument(), self._argument(), options=options)
        (file,) = folder.glob("*.ptx")
        return file.read_text(encoding="utf-8").rstrip("\0")

    def _argument(self) -> Any:
        return make_fake_tensor(
            cutlass.Float32, self.shape, (self.shape[1], 1), assumed_align=self.align
        )
