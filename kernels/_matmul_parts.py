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
    A_K_OUTER: tl.constexpr = False,
    B_K_OUTER: tl.constexpr = False,
):
    """One tile of A B^T in fp32, [BLOCK_M, BLOCK_N]. TMA reads zeros past the edges; K = 0 loads
    nothing and gives zeros. With K_OUTER the operand lies in memory as [K, M] or [K, N]."""
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        i = k * BLOCK_K
        a = a_desc.load([i, row]).T if A_K_OUTER else a_desc.load([row, i])
        b = b_desc.load([i, column]) if B_K_OUTER else b_desc.load([column, i]).T
        accumulator = tl.dot(a, b, accumulator)
    return accumulator


@triton.jit
def gelu(x):
    """GELU by its tanh form, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel,
    2016; torch's approximate="tanh").

    `tanh.approx.f32` is one instruction, within 2^-11 of tanh (PTX ISA): less than a bf16 resolves.
    By exp and a division an element takes three times as many, which no main loop hides.
    """
    argument = x * (0.7978845608028654 + 0.035677408136300125 * x * x)
    tanh = tl.inline_asm_elementwise(
        "tanh.approx.f32 $0, $1;", "=f,f", [argument], dtype=tl.float32, is_pure=True, pack=1
    )
    half = 0.5 * x
    return half + half * tanh


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
def finish_tile(x, row_bias_ptr, scale, LIMIT: tl.constexpr, row, M, FINISH: tl.constexpr):
    """What may follow on `apply_epilogue`: SiLU, scaled and clamped to +-LIMIT, or a bias [M] over
    the rows, in fp32."""
    if FINISH == "silu":
        x = x * tl.sigmoid(x)
    if FINISH == "scale_clamp":
        x = tl.clamp(x * scale, -LIMIT, LIMIT)
    if FINISH == "row_bias":
        rows = row + tl.arange(0, x.shape[0])
        bias = tl.load(row_bias_ptr + rows, mask=rows < M, other=0.0)
        x += bias.to(tl.float32)[:, None]
    return x


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
