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
STAGES = 2
"""Chunks in shared memory: one that is worked on, one that is loaded."""


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
        staged = tiles.in_stages(rows, STAGES)
        q_stages, k_stages, v_stages = [smem.allocate_tensor(dtype, staged, 128) for _ in range(3)]
        s_o = smem.allocate_tensor(dtype, rows, 128)
        s_p, s_t = [smem.allocate_tensor(dtype, square, 128) for _ in range(2)]
        s_d = smem.allocate_tensor(dtype, chunks.diagonal_block_layout(), 128)
        gate_layout = tiles.in_stages(cute.make_layout(CHUNK), STAGES)
        gates, betas = [smem.allocate_tensor(cutlass.Float32, gate_layout, 16) for _ in range(2)]

        state = tiles.zeros(mma, HEAD, HEAD)
        if cutlass.const_expr(initial is not None):
            part = mma.get_slice(thread).partition_C(initial[sequence, head, None, None])
            cute.autovec_copy(part, state)
        place = tiles.coordinates(mma, thread, HEAD, CHUNK)

        sources = (q, k, v, alpha, beta)
        buffers = (q_stages, k_stages, v_stages, gates, betas)
        _start_loading(load, thread, sources, buffers, head, first, length, 0)
        for chunk in cutlass.range(cute.ceil_div(length, CHUNK)):
            # The chunk's copies have arrived, and nobody reads the stage of the one before.
            cute.arch.cp_async_wait_group(0)
            cute.arch.sync_threads()
            _start_loading(load, thread, sources, buffers, head, first, length, chunk + 1)
            stage = chunk & 1
            s_q, s_k, s_v = [t[None, None, stage] for t in (q_stages, k_stages, v_stages)]
            s_gate, s_beta = gates[None, stage], betas[None, stage]

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

            cute.arch.sync_threads()
            valid = cutlass.min(length - chunk * CHUNK, CHUNK)
            target = _chunk_of(out, first + chunk * CHUNK, head)
            tiles.store_rows(store, thread, s_o, target, valid)

        part = mma.get_slice(thread).partition_C(final[sequence, head, None, None])
        cute.autovec_copy(state, part)


@cute.jit
def _start_loading(
    load: cute.TiledCopy,
    thread: cutlass.Int32,
    sources: tuple[cute.Tensor, ...],
    buffers: tuple[cute.Tensor, ...],
    head: cutlass.Int32,
    first: cutlass.Int32,
    length: cutlass.Int32,
    chunk: cutlass.Int32,
):
    """Start the copies of a chunk into its stage, and load its gates, if there is such a chunk."""
    valid = cutlass.min(length - chunk * CHUNK, CHUNK)
    if valid > 0:
        token = first + chunk * CHUNK
        stage = chunk & 1
        for index in cutlass.range_constexpr(3):
            source = _chunk_of(sources[index], token, head)
            tiles.load_rows(load, thread, source, buffers[index][None, None, stage], valid)
        # A warp of the group that has less to do.
        if thread >= THREADS - 32:
            chunks.load_gates(
                thread % 32,
                cute.domain_offset((token,), sources[3][None, head]),
                cute.domain_offset((token,), sources[4][None, head]),
                buffers[3][None, stage],
                buffers[4][None, stage],
                valid,
            )
    cute.arch.cp_async_commit_group()


def _chunk_of(tensor: Any, token: Any, head: Any) -> Any:
    """[CHUNK, HEAD] of a [tokens, heads, HEAD] tensor, from `token` on."""
    from_token = cute.domain_offset((token, 0), tensor[None, head, None])
    return cute.local_tile(from_token, (CHUNK, HEAD), (0, 0))
