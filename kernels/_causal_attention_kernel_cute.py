"""The kernel of `causal_attention_cute`: one CTA for a block of queries of one head.

The block of keys on the diagonal comes first, then those before it. In each, S = Q K^T is spread
over the warps by rows; its weights P go through shared memory, because in O = P V every warp takes
all rows and a part of the columns of V. P is the A operand, and on the diagonal, where it is lower
triangular, 6 of its 4 x 4 tiles (m16 x k16) are zero for every warp.

The diagonal block's P has its own buffer: of one that all blocks share nobody could say what
it holds without following every barrier.
"""

from __future__ import annotations

from typing import Any

import cutlass
import cutlass.cute as cute

from tilepass.kernels import _tiles_cute as tiles

HEAD = 128
"""Elements of a query, a key and a value."""
BLOCK = 64
"""Queries of a CTA, and keys that it works on at once."""
WARPS = 4
THREADS = 32 * WARPS
LOG2_E = 1.4426950408889634


class CausalAttention:
    """softmax(scale Q K^T, masked) V, each query attending to itself and to what is before it."""

    @cute.jit
    def __call__(
        self,
        q: cute.Tensor,
        k: cute.Tensor,
        v: cute.Tensor,
        out: cute.Tensor,
        scale: cutlass.Float32,
        stream: Any,
    ):
        """Launch. q, k, v, out: [sequences, length, heads, HEAD], 16-bit, contiguous."""
        dtype = q.element_type
        blocks = cute.ceil_div(q.shape[1], BLOCK)
        self.kernel(
            q,
            k,
            v,
            out,
            scale,
            tiles.tiled_mma_over_rows(dtype, WARPS),
            tiles.tiled_mma_over_columns(dtype, WARPS),
            tiles.row_copy(dtype, THREADS, HEAD, asynchronous=True),
            tiles.row_copy(dtype, THREADS, HEAD, asynchronous=False),
        ).launch(grid=(blocks, q.shape[2], q.shape[0]), block=(THREADS, 1, 1), stream=stream)

    @cute.kernel
    def kernel(
        self,
        q: cute.Tensor,
        k: cute.Tensor,
        v: cute.Tensor,
        out: cute.Tensor,
        scale: cutlass.Float32,
        row_mma: cute.TiledMma,
        column_mma: cute.TiledMma,
        load: cute.TiledCopy,
        store: cute.TiledCopy,
    ):
        """One block of queries against all keys up to its last."""
        thread, _, _ = cute.arch.thread_idx()
        index, head, sequence = cute.arch.block_idx()
        blocks, _, _ = cute.arch.grid_dim()
        # The longest first: the last CTAs to start are the shortest.
        block = blocks - 1 - index
        scale_log2 = scale * LOG2_E
        length = q.shape[1]
        dtype = q.element_type

        smem = cutlass.memory.SmemAllocator()
        rows = tiles.padded_rows(BLOCK, HEAD)
        square = tiles.padded_rows(BLOCK, BLOCK)
        s_q, s_k, s_v = [smem.allocate_tensor(dtype, rows, 128) for _ in range(3)]
        s_diagonal, s_p = [smem.allocate_tensor(dtype, square, 128) for _ in range(2)]
        s_factor = smem.allocate_tensor(cutlass.Float32, cute.make_layout(BLOCK), 16)

        valid = cutlass.min(length - block * BLOCK, BLOCK)
        tiles.load_rows(load, thread, _block_of(q, sequence, head, block), s_q, valid)
        tiles.load_rows(load, thread, _block_of(k, sequence, head, block), s_k, valid)
        tiles.load_rows(load, thread, _block_of(v, sequence, head, block), s_v, valid)
        _wait_for_copies()
        queries = tiles.load_a(row_mma, thread, s_q, dtype)
        maximum = cute.make_rmem_tensor(2, cutlass.Float32)
        total = cute.make_rmem_tensor(2, cutlass.Float32)
        maximum.fill(-cutlass.Float32.inf)
        total.fill(0.0)
        output = tiles.zeros(column_mma, BLOCK, HEAD)

        scores = _scores(row_mma, thread, queries, s_k, dtype)
        place = tiles.coordinates(row_mma, thread, BLOCK, BLOCK)
        for e in cutlass.range_constexpr(cute.size(scores)):
            masked = place[e][1] > place[e][0]
            scores[e] = -cutlass.Float32.inf if masked else scores[e]
        _weights(scores, maximum, total, scale_log2)
        for e in cutlass.range_constexpr(cute.size(scores)):
            scores[e] = scores[e] if place[e][1] <= place[e][0] else cutlass.Float32(0.0)
        tiles.store_c(row_mma, thread, tiles.rounded(scores, dtype), s_diagonal)
        cute.arch.sync_threads()
        _accumulate(column_mma, thread, output, s_diagonal, s_v, dtype)

        for before in cutlass.range(block):
            cute.arch.sync_threads()
            tiles.load_rows(load, thread, _block_of(k, sequence, head, before), s_k, BLOCK)
            tiles.load_rows(load, thread, _block_of(v, sequence, head, before), s_v, BLOCK)
            _wait_for_copies()
            scores = _scores(row_mma, thread, queries, s_k, dtype)
            factor = _weights(scores, maximum, total, scale_log2)
            _share_rows(thread, factor, s_factor)
            tiles.store_c(row_mma, thread, tiles.rounded(scores, dtype), s_p)
            cute.arch.sync_threads()
            _scale_rows(column_mma, thread, output, s_factor)
            _accumulate(column_mma, thread, output, s_p, s_v, dtype)

        for half in cutlass.range_constexpr(2):
            total[half] = 1.0 / _over_quad(total[half], lambda a, b: a + b)
        cute.arch.sync_threads()
        _share_rows(thread, total, s_factor)
        cute.arch.sync_threads()
        _scale_rows(column_mma, thread, output, s_factor)
        # Queries are in registers: their tile takes the output.
        tiles.store_c(column_mma, thread, tiles.rounded(output, dtype), s_q)
        cute.arch.sync_threads()
        tiles.store_rows(store, thread, s_q, _block_of(out, sequence, head, block), valid)


def _wait_for_copies() -> None:
    """Until all threads' copies have arrived."""
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()


def _scores(mma: Any, thread: Any, queries: Any, s_k: Any, dtype: Any) -> Any:
    """Q K^T of the warp's rows."""
    scores = tiles.zeros(mma, BLOCK, BLOCK)
    cute.gemm(mma, scores, queries, tiles.load_b(mma, thread, s_k, dtype), scores)
    return scores


def _weights(scores: Any, maximum: Any, total: Any, scale_log2: Any) -> Any:
    """Scores into weights relative to the greatest score so far, in place.

    A thread has elements of two rows (element e of row half e // 2 % 2), four neighbouring threads
    have all of them. Returns by what earlier weights shrink; `total` is the thread's own part.
    """
    factor = cute.make_rmem_tensor(2, cutlass.Float32)
    for half in range(2):
        mine = [e for e in range(cute.size(scores)) if e // 2 % 2 == half]
        greatest = maximum[half]
        for e in mine:
            greatest = cute.arch.fmax(greatest, scores[e])
        greatest = _over_quad(greatest, cute.arch.fmax)
        shift = greatest * scale_log2
        factor[half] = cute.math.exp2(maximum[half] * scale_log2 - shift)
        maximum[half] = greatest
        part = total[half] * factor[half]
        for e in mine:
            scores[e] = cute.math.exp2(scores[e] * scale_log2 - shift)
            part = part + scores[e]
        total[half] = part
    return factor


def _over_quad(value: Any, combine: Any) -> Any:
    """The values of the four threads that share a row, combined in all of them."""
    for distance in (1, 2):
        value = combine(value, cute.arch.shuffle_sync_bfly(value, distance))
    return value


@cute.jit
def _share_rows(thread: cutlass.Int32, values: cute.Tensor, shared: cute.Tensor):
    """A value for each of the thread's two rows, to all warps."""
    if thread % 4 == 0:
        row = thread // 32 * 16 + thread % 32 // 4
        shared[row] = values[0]
        shared[row + 8] = values[1]


def _scale_rows(mma: Any, thread: Any, output: Any, factors: Any) -> None:
    """Multiply each row of the output by its factor."""
    place = tiles.coordinates(mma, thread, BLOCK, HEAD)
    for e in range(cute.size(output)):
        output[e] = output[e] * factors[place[e][0]]


def _accumulate(mma: Any, thread: Any, output: Any, s_p: Any, s_v: Any, dtype: Any) -> None:
    """O += P V."""
    weights = tiles.load_a(mma, thread, s_p, dtype)
    values = tiles.load_b(mma, thread, tiles.transposed(s_v), dtype, transpose=True)
    cute.gemm(mma, output, weights, values, output)


def _block_of(tensor: Any, sequence: Any, head: Any, block: Any) -> Any:
    """[BLOCK, HEAD] of a [sequences, length, heads, HEAD] tensor."""
    return cute.local_tile(tensor[sequence, None, head, None], (BLOCK, HEAD), (block, 0))
