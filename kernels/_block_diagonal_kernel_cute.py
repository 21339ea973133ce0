"""The kernel of `block_diagonal_matmul_cute`.

A CTA takes 128 columns. It lays their blocks out in shared memory as one dense [128, 128] operand,
zeros between the blocks, and multiplies tile after tile of rows with it. Of the 16 x 8 tiles
(n8 x k16) of that operand, 96 are zero with blocks of 32, and 64 with blocks of 64.
"""

from __future__ import annotations

from typing import Any

import cutlass
import cutlass.cute as cute

from tilepass.kernels import _tiles_cute as tiles

PANEL = 128
"""Columns of a CTA."""
ROWS = 128
"""Rows that are multiplied at once."""
WARPS = ROWS // 16
THREADS = 32 * WARPS
CTAS_PER_PANEL = 32
"""At most; each takes every 32nd tile of rows and builds its operand once."""


class BlockDiagonalMatmul:
    """Y = X W^T with W block diagonal; `block` columns and rows a block, dividing PANEL."""

    def __init__(self, block: int) -> None:
        self.block = block

    @cute.jit
    def __call__(self, x: cute.Tensor, blocks: cute.Tensor, y: cute.Tensor, stream: Any):
        """Launch. x, y: [rows, panels, PANEL], blocks: [panels, PANEL, block], of one 16-bit type,
        contiguous. Row n of a panel's blocks holds row n of its W, the zeros left out."""
        dtype = x.element_type
        row_tiles = cute.ceil_div(x.shape[0], ROWS)
        grid = (cutlass.min(row_tiles, CTAS_PER_PANEL), x.shape[1], 1)
        self.kernel(
            x,
            blocks,
            y,
            tiles.tiled_mma_over_rows(dtype, WARPS),
            tiles.row_copy(dtype, THREADS, PANEL, asynchronous=True),
            tiles.row_copy(dtype, THREADS, PANEL, asynchronous=False),
        ).launch(grid=grid, block=(THREADS, 1, 1), stream=stream)

    @cute.kernel
    def kernel(
        self,
        x: cute.Tensor,
        blocks: cute.Tensor,
        y: cute.Tensor,
        mma: cute.TiledMma,
        load: cute.TiledCopy,
        store: cute.TiledCopy,
    ):
        """Every n-th tile of rows of one panel."""
        thread, _, _ = cute.arch.thread_idx()
        first, panel, _ = cute.arch.block_idx()
        step, _, _ = cute.arch.grid_dim()
        dtype = x.element_type
        smem = cutlass.memory.SmemAllocator()
        s_w = smem.allocate_tensor(dtype, tiles.padded_rows(PANEL, PANEL), 128)
        s_x = smem.allocate_tensor(dtype, tiles.padded_rows(ROWS, PANEL), 128)
        _expand(thread, blocks[panel, None, None], s_w, self.block)

        for tile in cutlass.range(first, cute.ceil_div(x.shape[0], ROWS), step):
            valid = cutlass.min(x.shape[0] - tile * ROWS, ROWS)
            rows = cute.local_tile(x[None, panel, None], (ROWS, PANEL), (tile, 0))
            tiles.load_rows(load, thread, rows, s_x, valid)
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(0)
            cute.arch.sync_threads()
            left = tiles.load_a(mma, thread, s_x, dtype)
            right = tiles.load_b(mma, thread, s_w, dtype)
            product = tiles.zeros(mma, ROWS, PANEL)
            cute.gemm(mma, product, left, right, product)
            # A warp's rows of X are in its registers, and it stores to no others.
            cute.arch.sync_warp()
            tiles.store_c(mma, thread, tiles.rounded(product, dtype), s_x)
            cute.arch.sync_threads()
            target = cute.local_tile(y[None, panel, None], (ROWS, PANEL), (tile, 0))
            tiles.store_rows(store, thread, s_x, target, valid)
            # This tile has been read before copies of the next one start to arrive.
            cute.arch.sync_threads()


@cute.jit
def _expand(thread: cutlass.Int32, blocks: cute.Tensor, s_w: cute.Tensor, block: cutlass.Constexpr):
    """The panel's W, zeros included, into shared memory, 8 columns a thread and step."""
    vector = tiles.COPY_BITS // 16
    across = PANEL // vector
    for index in cutlass.range_constexpr(PANEL * across // THREADS):
        row = thread // across + index * (THREADS // across)
        column = thread % across * vector
        target = cute.local_tile(s_w, (1, vector), (row, thread % across))
        if row // block == column // block:
            source = cute.local_tile(blocks, (1, vector), (row, column % block // vector))
            part = cute.make_fragment_like(source)
            cute.autovec_copy(source, part)
            cute.autovec_copy(part, target)
        else:
            target.fill(0.0)
