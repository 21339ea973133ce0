"""Split K: programs that share an output tile add their partial sums, in a fixed order."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def sum_partials(
    accumulator,
    c_ptr,
    c_stride,
    partial_ptr,
    counter_ptr,
    tile,
    split,
    row,
    column,
    M,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SPLIT_K: tl.constexpr,
    STRIP: tl.constexpr,
):
    """Store this program's partial tile [BLOCK_M, BLOCK_N]; the last of a tile's programs sums all
    SPLIT_K of them into C and resets the counter for the next launch.

    Order, which the result depends on:
    1. The barrier puts every thread's stores before thread 0's atomic, whose release, cumulative
       in PTX's memory model, publishes them all.
    2. The program that sees the last count has acquired all partials, again by thread 0 alone; a
       second barrier hands that on to the other threads, which may not read before it.
    3. The partials are read past L1, which may hold what an earlier launch left at these addresses.
    The sum goes strip by strip through few registers: all partials of a tile at once would spill.
    """
    SIZE: tl.constexpr = BLOCK_M * BLOCK_N
    columns = tl.arange(0, BLOCK_N)[None, :]
    partials = partial_ptr + tile.to(tl.int64) * (SPLIT_K * SIZE)
    rows = tl.arange(0, BLOCK_M)[:, None]
    tl.store(partials + split * SIZE + rows * BLOCK_N + columns, accumulator.T)
    tl.debug_barrier()
    arrived = tl.atomic_add(counter_ptr + tile, 1, sem="acq_rel", scope="gpu")
    if arrived == SPLIT_K - 1:
        tl.debug_barrier()
        for first in range(0, BLOCK_M, STRIP):
            strip = first + tl.arange(0, STRIP)[:, None]
            total = tl.zeros((STRIP, BLOCK_N), dtype=tl.float32)
            for other in tl.static_range(SPLIT_K):
                address = partials + other * SIZE + strip * BLOCK_N + columns
                total += tl.load(address, cache_modifier=".cg")
            inside = (row + strip < M) & (column + columns < N)
            c = c_ptr + (row + strip).to(tl.int64) * c_stride + column + columns
            tl.store(c, total.to(tl.bfloat16), mask=inside)
        tl.store(counter_ptr + tile, 0)
