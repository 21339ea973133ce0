"""Device functions that the matmul kernels share: tile order, main loop, epilogue, stores."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def tile_origin(tile, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """Row and column of a tile's first element. Tiles go down columns of GROUP_M rows, so that
    the programs of one wave share their A and B tiles in L2."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    group = tile // (GROUP_M * tiles_n)
    within = tile % (GROUP_M * tiles_n)
    rows = min(tiles_m - group * GROUP_M, GROUP_M)
    row = (group * GROUP_M + within % rows) * BLOCK_M
    column = (within // rows) * BLOCK_N
    return row, column


@triton.jit
def accumulate(
    a_desc,
    b_desc,
    row,
    column,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """One tile of A B^T in fp32, [BLOCK_M, BLOCK_N]. TMA reads zeros past the edges; K = 0 loads
    nothing and gives zeros."""
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        a = a_desc.load([row, k * BLOCK_K])
        b = b_desc.load([column, k * BLOCK_K])
        accumulator = tl.dot(a, b.T, accumulator)
    return accumulator


@triton.jit
def gelu(x):
    """GELU by its tanh form: 0.5 x (1 + tanh z) = x sigmoid(2 z), z = sqrt(2/pi) (x + 0.044715 x^3)
    (Hendrycks and Gimpel, 2016; torch's approximate="tanh")."""
    return x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


@triton.jit
def apply_epilogue(
    accumulator,
    bias_ptr,
    residual_desc,
    residual_ptr,
    residual_stride,
    row,
    column,
    M,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    EPILOGUE: tl.constexpr,
):
    """Bias [N] over the columns, GELU, or a residual [M, N], in fp32. The residual comes by TMA
    where there is a descriptor: through pointers its layout conversion needs more shared memory
    than 3 stages of 128x256x64 leave."""
    columns = column + tl.arange(0, BLOCK_N)
    if EPILOGUE == "bias" or EPILOGUE == "bias_gelu":
        bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0)
        accumulator += bias.to(tl.float32)[None, :]
    if EPILOGUE == "bias_gelu":
        accumulator = gelu(accumulator)
    if EPILOGUE == "residual":
        if residual_desc is not None:
            residual = residual_desc.load([row, column])
        else:
            rows = tl.arange(0, BLOCK_M)
            base = residual_ptr + row.to(tl.int64) * residual_stride + column
            inside = (row + rows < M)[:, None] & (columns < N)[None, :]
            offsets = rows[:, None] * residual_stride + tl.arange(0, BLOCK_N)[None, :]
            residual = tl.load(base + offsets, mask=inside, other=0.0)
        accumulator += residual.to(tl.float32)
    return accumulator


@triton.jit
def store_tile(
    tile, c_ptr, c_stride, row, column, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Masked stores of one tile through pointers: any row stride will do."""
    rows = tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    base = c_ptr + row.to(tl.int64) * c_stride + column
    inside = (row + rows < M)[:, None] & (column + columns < N)[None, :]
    tl.store(base + rows[:, None] * c_stride + columns[None, :], tile, mask=inside)
