"""The kernel of `gdn_prefill_cute`.

For each sequence and head, with state S [value, key], from token to token:

    S = alpha_t S;  u_t = beta_t (v_t - S k_t);  S = S + u_t k_t^T;  o_t = scale S q_t

(Yang, Kautz, Hatamizadeh, arXiv 2412.06464, equation 10.) Here CHUNK tokens at once: with S the
state before the chunk and g_t, P, T as in `_gdn_chunk_cute`,

    U = T diag(beta) (V - diag(g) K S^T)            the u_t as rows
    O = scale diag(g) Q S^T + P U
    S = g_end S + (diag(g_end / g) U)^T K

U, O and S are computed transposed: values are the rows, spread over the warps, and T and P are the
B operands of all warps. Both are lower triangular: of their 8 x 4 tiles (n8 x k16) 12 are zero.
"""

from __future__ import annotations

from typing import Any

import cutlass
import cutlass.cute as cute

from tilepass.kernels import _gdn_chunk_cute as chunks
from tilepass.kernels import _tiles_cute as tiles
from tilepass.kernels._gdn_chunk_cute import CHUNK, GROUP

HEAD = 128
"""Elements of a key and of a value."""
THREADS = HEAD // 16 * 32
"""A warp for each 16 rows of the state."""


class GdnPrefill:
    """One CTA for each sequence and head."""

    @cute.jit
    def __call__(
        self,
        q: cute.Tensor,
        k: cute.Tensor,
        v: cute.Tensor,
        alpha: cute.Tensor,
        beta: cute.Tensor,
        starts: cute.Tensor,
        initial: cute.Tensor | None,
        out: cute.Tensor,
        final: cute.Tensor,
        scale: cutlass.Float32,
        stream: Any,
    ):
        """Launch. q, k, v, out: [tokens, heads, HEAD], 16-bit, contiguous; alpha, beta: [tokens,
        heads] fp32; starts: int32 [sequences + 1], the tokens of sequence s being starts[s] to
        starts[s + 1] - 1; initial (or None for 0) and final: [sequences, heads, value, key] fp32.
        """
        dtype = q.element_type
        self.kernel(
            q,
            k,
            v,
            alpha,
            beta,
            starts,
            initial,
            out,
            final,
            scale,
            tiles.tiled_mma_over_rows(dtype, 8),
            tiles.tiled_mma_over_rows(dtype, 4),
            tiles.tiled_mma_over_rows(dtype, 1),
            tiles.row_copy(dtype, THREADS, HEAD, asynchronous=True),
            tiles.row_copy(dtype, THREADS, HEAD, asynchronous=False),
        ).launch(grid=(q.shape[1], starts.shape[0] - 1, 1), block=(THREADS, 1, 1), stream=stream)

    @cute.kernel
    def kernel(
        self,
        q: cute.Tensor,
        k: cute.Tensor,
        v: cute.Tensor,
        alpha: cute.Tensor,
        beta: cute.Tensor,
        starts: cute.Tensor,
        initial: cute.Tensor | None,
        out: cute.Tensor,
        final: cute.Tensor,
        scale: cutlass.Float32,
        mma: cute.TiledMma,
        group_mma: cute.TiledMma,
        warp_mma: cute.TiledMma,
        load: cute.TiledCopy,
        store: cute.TiledCopy,
    ):
        """All chunks of one sequence and head, one after the other; the state in registers."""
        thread, _, _ = cute.arch.thread_idx()
        head, sequence, _ = cute.arch.block_idx()
        dtype = q.element_type
        first = starts[sequence]
        length = starts[sequence + 1] - first

        smem = cutlass.memory.SmemAllocator()
        rows = tiles.padded_rows(CHUNK, HEAD)
        square = tiles.padded_rows(CHUNK, CHUNK)
        s_q, s_k, s_v, s_o = [smem.allocate_tensor(dtype, rows, 128) for _ in range(4)]
        s_p, s_t = [smem.allocate_tensor(dtype, square, 128) for _ in range(2)]
        s_d = smem.allocate_tensor(dtype, chunks.diagonal_block_layout(), 128)
        s_gate, s_beta = [
            smem.allocate_tensor(cutlass.Float32, cute.make_layout(CHUNK), 16) for _ in range(2)
        ]

        state = tiles.zeros(mma, HEAD, HEAD)
        if cutlass.const_expr(initial is not None):
            part = mma.get_slice(thread).partition_C(initial[sequence, head, None, None])
            cute.autovec_copy(part, state)
        place = tiles.coordinates(mma, thread, HEAD, CHUNK)

        for chunk in cutlass.range(cute.ceil_div(length, CHUNK)):
            token = first + chunk * CHUNK
            valid = cutlass.min(length - chunk * CHUNK, CHUNK)
            for source, tile in ((q, s_q), (k, s_k), (v, s_v)):
                tiles.load_rows(load, thread, _chunk_of(source, token, head), tile, valid)
            cute.arch.cp_async_commit_group()
            if thread < 32:
                chunks.load_gates(
                    thread,
                    cute.domain_offset((token,), alpha[None, head]),
                    cute.domain_offset((token,), beta[None, head]),
                    s_gate,
                    s_beta,
                    valid,
                )
            cute.arch.cp_async_wait_group(0)
            cute.arch.sync_threads()

            if thread < GROUP:
                chunks.build_t(group_mma, warp_mma, thread, s_k, s_gate, s_beta, s_t, s_d)
            else:
                chunks.build_p(group_mma, thread - GROUP, s_q, s_k, s_gate, s_p, scale)
            cute.arch.sync_threads()

            old = tiles.as_a(tiles.rounded(state, dtype))
            # U^T before T: beta (V^T - g S K^T).
            change = tiles.zeros(mma, HEAD, CHUNK)
            keys = tiles.load_b(mma, thread, s_k, dtype)
            cute.gemm(mma, change, old, keys, change)
            values = tiles.load_c(mma, thread, tiles.transposed(s_v), dtype, transpose=True)
            for e in cutlass.range_constexpr(cute.size(change)):
                t = place[e][1]
                predicted = cute.math.exp2(s_gate[t]) * change[e]
                change[e] = s_beta[t] * (values[e].to(cutlass.Float32) - predicted)
            update = tiles.zeros(mma, HEAD, CHUNK)
            inverse = tiles.load_b(mma, thread, s_t, dtype)
            cute.gemm(mma, update, tiles.as_a(tiles.rounded(change, dtype)), inverse, update)

            output = tiles.zeros(mma, HEAD, CHUNK)
            queries = tiles.load_b(mma, thread, s_q, dtype)
            cute.gemm(mma, output, old, queries, output)
            for e in cutlass.range_constexpr(cute.size(output)):
                output[e] = output[e] * (scale * cute.math.exp2(s_gate[place[e][1]]))
            weights = tiles.load_b(mma, thread, s_p, dtype)
            cute.gemm(mma, output, tiles.as_a(tiles.rounded(update, dtype)), weights, output)
            rounded = tiles.rounded(output, dtype)
            tiles.store_c(mma, thread, rounded, tiles.transposed(s_o), transpose=True)

            end = s_gate[CHUNK - 1]
            for e in cutlass.range_constexpr(cute.size(update)):
                update[e] = update[e] * cute.math.exp2(end - s_gate[place[e][1]])
            state.store(state.load() * cute.math.exp2(end))
            across = tiles.load_b(mma, thread, tiles.transposed(s_k), dtype, transpose=True)
            cute.gemm(mma, state, tiles.as_a(tiles.rounded(update, dtype)), across, state)

            # The output is whole, and nobody reads this chunk's tiles any more.
            cute.arch.sync_threads()
            tiles.store_rows(store, thread, s_o, _chunk_of(out, token, head), valid)

        part = mma.get_slice(thread).partition_C(final[sequence, head, None, None])
        cute.autovec_copy(state, part)


def _chunk_of(tensor: Any, token: Any, head: Any) -> Any:
    """[CHUNK, HEAD] of a [tokens, heads, HEAD] tensor, from `token` on."""
    from_token = cute.domain_offset((token, 0), tensor[None, head, None])
    return cute.local_tile(from_token, (CHUNK, HEAD), (0, 0))
