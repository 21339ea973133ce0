"""The matrices inside one chunk of the gated delta rule, each [CHUNK, CHUNK] in shared memory.

With g_t the product of the gates up to t inside the chunk, rows t and i of the chunk, and beta_t:

    P[t, i] = scale * g_t / g_i * (q_t . k_i)         where i <= t, else 0
    L[t, i] = beta_t * g_t / g_i * (k_t . k_i)        where i < t,  else 0
    T = (1 + L)^-1, lower triangular with a diagonal of ones

All three are lower triangular, and every product they are an operand of has zero tiles.
"""

from __future__ import annotations

from typing import Any

import cutlass
import cutlass.cute as cute

from tilepass.kernels import _tiles_cute as tiles

CHUNK = 64
"""Tokens that are worked on at once."""
GROUP = 128
"""Threads of the four warps that build P, and of the four that build T."""
BLOCK = 16
"""Rows of the diagonal blocks of L that are inverted in registers: one k step of the MMA."""
BLOCKS = CHUNK // BLOCK
SMALLEST_GATE = 1e-10
"""A gate below this counts as this: its logarithm stays finite."""
_T_BARRIER = 1
"""Named barrier of the threads that build T (0 is that of the whole CTA)."""


def diagonal_block_layout() -> Any:
    """Layout of the inverted diagonal blocks [CHUNK, BLOCK]: rows 48 bytes apart, so that eight of
    them, which ldmatrix reads at once, lie in different banks."""
    return cute.make_layout((CHUNK, BLOCK), stride=(24, 1))


@cute.jit
def load_gates(
    lane: cutlass.Int32,
    alpha: cute.Tensor,
    beta: cute.Tensor,
    s_gate: cute.Tensor,
    s_beta: cute.Tensor,
    valid: cutlass.Int32,
):
    """One warp: s_gate[t] = log2 g_t and s_beta[t], of the chunk's first `valid` rows.

    Rows beyond keep the last gate and get beta 0: they add nothing to the state.
    """
    before = cutlass.Float32(0.0)
    for half in cutlass.range_constexpr(CHUNK // 32):
        row = lane + half * 32
        log_gate = cutlass.Float32(0.0)
        weight = cutlass.Float32(0.0)
        if row < valid:
            log_gate = cute.math.log2(cute.arch.fmax(alpha[row], SMALLEST_GATE))
            weight = beta[row]
        for power in cutlass.range_constexpr(5):
            step = 2**power
            lower = cute.arch.shuffle_sync_up(log_gate, step)
            log_gate = log_gate + lower if lane >= step else log_gate
        log_gate = log_gate + before
        s_gate[row] = log_gate
        s_beta[row] = weight
        before = cute.arch.shuffle_sync(log_gate, 31)


@cute.jit
def build_p(
    mma: cute.TiledMma,
    thread: cutlass.Int32,
    s_q: cute.Tensor,
    s_k: cute.Tensor,
    s_gate: cute.Tensor,
    s_p: cute.Tensor,
    scale: cutlass.Float32,
):
    """Four warps: P into `s_p`."""
    dtype = s_p.element_type
    products = tiles.zeros(mma, CHUNK, CHUNK)
    queries = tiles.load_a(mma, thread, s_q, dtype)
    keys = tiles.load_b(mma, thread, s_k, dtype)
    cute.gemm(mma, products, queries, keys, products)
    place = tiles.coordinates(mma, thread, CHUNK, CHUNK)
    for e in cutlass.range_constexpr(cute.size(products)):
        t, i = place[e]
        decay = cute.math.exp2(s_gate[t] - s_gate[i])
        # A choice and no product with a mask: above the diagonal the decay may be infinite.
        products[e] = products[e] * decay * scale if i <= t else cutlass.Float32(0.0)
    tiles.store_c(mma, thread, tiles.rounded(products, dtype), s_p)


@cute.jit
def build_t(
    mma: cute.TiledMma,
    warp_mma: cute.TiledMma,
    thread: cutlass.Int32,
    s_k: cute.Tensor,
    s_gate: cute.Tensor,
    s_beta: cute.Tensor,
    s_t: cute.Tensor,
    s_d: cute.Tensor,
):
    """Four warps: T into `s_t`, by way of -L, in place. `s_d` takes the inverted diagonal blocks.

    The blocks above the diagonal are written once, by the mask.
    """
    _store_minus_l(mma, thread, s_k, s_gate, s_beta, s_t)
    cute.arch.barrier(barrier_id=_T_BARRIER, number_of_threads=GROUP)
    _invert_diagonal_blocks(thread, s_t, s_d)
    cute.arch.barrier(barrier_id=_T_BARRIER, number_of_threads=GROUP)
    _solve_block_column(warp_mma, thread, s_t, s_d)


@cute.jit
def _store_minus_l(
    mma: cute.TiledMma,
    thread: cutlass.Int32,
    s_k: cute.Tensor,
    s_gate: cute.Tensor,
    s_beta: cute.Tensor,
    s_t: cute.Tensor,
):
    """-L into `s_t`."""
    dtype = s_t.element_type
    products = tiles.zeros(mma, CHUNK, CHUNK)
    rows = tiles.load_a(mma, thread, s_k, dtype)
    keys = tiles.load_b(mma, thread, s_k, dtype)
    cute.gemm(mma, products, rows, keys, products)
    place = tiles.coordinates(mma, thread, CHUNK, CHUNK)
    for e in cutlass.range_constexpr(cute.size(products)):
        t, i = place[e]
        weight = -s_beta[t] * cute.math.exp2(s_gate[t] - s_gate[i])
        products[e] = products[e] * weight if i < t else cutlass.Float32(0.0)
    tiles.store_c(mma, thread, tiles.rounded(products, dtype), s_t)


@cute.jit
def _invert_diagonal_blocks(thread: cutlass.Int32, s_t: cute.Tensor, s_d: cute.Tensor):
    """Rows 16r to 16r + 15 of `s_d` = (1 + L_rr)^-1, a warp for each r, a lane for each column.

    Forward substitution in fp32: x_t = [t = column] - sum over i < t of L[t, i] x_i.
    """
    lane = thread % 32
    first = thread // 32 * BLOCK
    if lane < BLOCK:
        x = cute.make_rmem_tensor(BLOCK, cutlass.Float32)
        for t in cutlass.range_constexpr(BLOCK):
            value = cutlass.Float32(1.0) if lane == t else cutlass.Float32(0.0)
            for i in cutlass.range_constexpr(t):
                value = value + s_t[first + t, first + i].to(cutlass.Float32) * x[i]
            x[t] = value
        for t in cutlass.range_constexpr(BLOCK):
            s_d[first + t, lane] = x[t].to(s_d.element_type)


@cute.jit
def _solve_block_column(
    mma: cute.TiledMma, thread: cutlass.Int32, s_t: cute.Tensor, s_d: cute.Tensor
):
    """Warp c turns block column c of `s_t` from -L into T.

    With D_r the inverted diagonal blocks, in block rows r = 0, 1, ...:
        T_rc = D_r ([r = c] - sum over m < r of L_rm T_mc)
    computed transposed, so that each block, rounded, is at once the A operand of the next ones.
    Blocks above the diagonal come out as 0 and are not stored.
    """
    dtype = s_t.element_type
    lane = thread % 32
    column = thread // 32
    place = tiles.coordinates(mma, lane, BLOCK, BLOCK)
    solved = []
    for r in cutlass.range_constexpr(BLOCKS):
        block = tiles.zeros(mma, BLOCK, BLOCK)
        for e in cutlass.range_constexpr(cute.size(block)):
            one = place[e][0] == place[e][1] and column == r
            block[e] = cutlass.Float32(1.0) if one else cutlass.Float32(0.0)
        for m in cutlass.range_constexpr(r):
            factor = tiles.load_b(mma, lane, _block(s_t, r, m), dtype)
            cute.gemm(mma, block, tiles.as_a(solved[m]), factor, block)
        inverse = tiles.load_b(mma, lane, _block(s_d, r, 0), dtype)
        result = tiles.zeros(mma, BLOCK, BLOCK)
        cute.gemm(mma, result, tiles.as_a(tiles.rounded(block, dtype)), inverse, result)
        solved.append(tiles.rounded(result, dtype))
    # What the columns to the left still read is overwritten below.
    cute.arch.barrier(barrier_id=_T_BARRIER, number_of_threads=GROUP)
    for r in cutlass.range_constexpr(BLOCKS):
        if r >= column:
            target = tiles.transposed(_block(s_t, r, column))
            tiles.store_c(mma, lane, solved[r], target, transpose=True)


def _block(tile: Any, row: Any, column: Any) -> Any:
    """Block (row, column) of a tile in shared memory."""
    return cute.local_tile(tile, (BLOCK, BLOCK), (row, column))
