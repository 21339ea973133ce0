"""Tiles of warp-level matrix products in CuTe DSL: shared memory, fragments, global copies.

Everything is made of mma.sync m16n8k16 (16-bit operands, fp32 accumulators), ldmatrix, stmatrix and
cp.async, and runs on sm_90 as on later GPUs. A fragment's layout is CuTe's `(atom, M, N or K)`.
"""

from __future__ import annotations

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, warp

# CuTe DSL's classes are what its kernels are traced with; the names only say what is meant.
Fragment = Any
SmemTensor = Any
TiledMma = Any

COPY_BITS = 128
"""Widest copy of one thread, cp.async and vector stores alike."""


def tiled_mma_over_rows(dtype: Any, warps: int) -> TiledMma:
    """Warps below each other: a tile of (16 * warps) x N, every warp holding all of N.

    What multiplies is `mma.sync.m16n8k16`; N is taken 16 at a time, so that one ldmatrix.x4 fills
    the fragments of two atoms.
    """
    operation = warp.MmaF16BF16Op(dtype, cutlass.Float32, (16, 8, 16))
    return cute.make_tiled_mma(operation, (warps, 1, 1), permutation_mnk=(16 * warps, 16, 16))


def tiled_mma_over_columns(dtype: Any, warps: int) -> TiledMma:
    """Warps beside each other: a tile of M x (16 * warps), every warp holding all of M."""
    operation = warp.MmaF16BF16Op(dtype, cutlass.Float32, (16, 8, 16))
    return cute.make_tiled_mma(operation, (1, warps, 1), permutation_mnk=(16, 16 * warps, 16))


def padded_rows(rows: int, columns: int) -> Any:
    """Layout of a row-major tile of 16-bit elements in shared memory, rows 16 bytes further apart.

    The 8 rows that ldmatrix reads at once lie in different banks, if `columns` is a multiple of 64.
    """
    return cute.make_layout((rows, columns), stride=(columns + 8, 1))


def in_stages(layout: Any, stages: int) -> Any:
    """Several tiles of a layout, one behind the other; the last mode is the stage."""
    size = -(-cute.cosize(layout) // 8) * 8
    return cute.append(layout, cute.make_layout(stages, stride=size))


def transposed(tile: SmemTensor) -> SmemTensor:
    """The same tile with its two dimensions exchanged; nothing moves."""
    return cute.make_tensor(tile.iterator, cute.select(tile.layout, mode=[1, 0]))


def zeros(mma: TiledMma, rows: int, columns: int) -> Fragment:
    """An accumulator fragment of a rows x columns tile, all 0."""
    accumulator = cute.make_rmem_tensor(mma.partition_shape_C((rows, columns)), cutlass.Float32)
    accumulator.fill(0.0)
    return accumulator


def coordinates(mma: TiledMma, thread: Any, rows: int, columns: int) -> Any:
    """(row, column) of each element of an accumulator fragment."""
    return mma.get_slice(thread).partition_C(cute.make_identity_tensor((rows, columns)))


def load_a(mma: TiledMma, thread: Any, tile: SmemTensor, dtype: Any) -> Fragment:
    """The thread's A fragment (M x K) of a row-major tile in shared memory."""
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose=False, num_matrices=4), dtype)
    copy = cute.make_tiled_copy_A(atom, mma).get_slice(thread)
    part = mma.get_slice(thread)
    fragment = part.make_fragment_A(part.partition_A(tile))
    cute.copy(atom, copy.partition_S(tile), copy.retile(fragment))
    return fragment


def load_b(
    mma: TiledMma, thread: Any, tile: SmemTensor, dtype: Any, transpose: bool = False
) -> Fragment:
    """The thread's B fragment (N x K) of a tile in shared memory.

    `transpose` where not K but N is contiguous, as in a `transposed` view of a row-major tile.
    """
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose=transpose, num_matrices=4), dtype)
    copy = cute.make_tiled_copy_B(atom, mma).get_slice(thread)
    part = mma.get_slice(thread)
    fragment = part.make_fragment_B(part.partition_B(tile))
    cute.copy(atom, copy.partition_S(tile), copy.retile(fragment))
    return fragment


def load_c(
    mma: TiledMma, thread: Any, tile: SmemTensor, dtype: Any, transpose: bool = False
) -> Fragment:
    """A tile in shared memory as 16-bit elements in the layout of an accumulator fragment."""
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose=transpose, num_matrices=4), dtype)
    copy = cute.make_tiled_copy_C(atom, mma).get_slice(thread)
    fragment = cute.make_rmem_tensor(mma.partition_shape_C(tile.shape), dtype)
    cute.copy(atom, copy.partition_S(tile), copy.retile(fragment))
    return fragment


def store_c(
    mma: TiledMma, thread: Any, fragment: Fragment, tile: SmemTensor, transpose: bool = False
) -> None:
    """Store 16-bit elements in the layout of an accumulator fragment by stmatrix."""
    dtype = fragment.element_type
    atom = cute.make_copy_atom(warp.StMatrix8x8x16bOp(transpose=transpose, num_matrices=4), dtype)
    copy = cute.make_tiled_copy_C(atom, mma).get_slice(thread)
    cute.copy(atom, copy.retile(fragment), copy.partition_D(tile))


def rounded(accumulator: Fragment, dtype: Any) -> Fragment:
    """The accumulator in `dtype`, in the same layout."""
    fragment = cute.make_fragment_like(accumulator, dtype)
    fragment.store(accumulator.load().to(dtype))
    return fragment


def as_a(fragment: Fragment) -> Fragment:
    """A rounded accumulator (M x N) as the A operand of a product over N.

    An m16n8 accumulator holds of its columns what half an m16k16 A fragment holds of its: two
    neighbouring ones, read together, are that fragment. Nothing moves.
    """
    pairs = cute.logical_divide(fragment.layout, (None, None, 2))
    shape, stride = pairs.shape, pairs.stride
    view = cute.make_layout(
        ((shape[0], shape[2][0]), shape[1], shape[2][1]),
        stride=((stride[0], stride[2][0]), stride[1], stride[2][1]),
    )
    return cute.make_tensor(fragment.iterator, view)


def row_copy(dtype: Any, threads: int, columns: int, asynchronous: bool) -> Any:
    """A copy of rows of `columns` elements between global and shared memory, 16 bytes a thread."""
    vector = COPY_BITS // dtype.width
    across = columns // vector
    operation = cpasync.CopyG2SOp() if asynchronous else cute.nvgpu.CopyUniversalOp()
    atom = cute.make_copy_atom(operation, dtype, num_bits_per_copy=COPY_BITS)
    lanes = cute.make_layout((threads // across, across), stride=(across, 1))
    return cute.make_tiled_copy_tv(atom, lanes, cute.make_layout((1, vector)))


@cute.jit
def load_rows(
    copy: cute.TiledCopy,
    thread: cutlass.Int32,
    source: cute.Tensor,
    tile: cute.Tensor,
    valid: cutlass.Int32,
):
    """Start loading the first `valid` rows of a tile; the others become 0 at once."""
    part = copy.get_slice(thread)
    here = part.partition_S(cute.make_identity_tensor(tile.shape))
    values = part.partition_S(source)
    places = part.partition_D(tile)
    for row in cutlass.range_constexpr(cute.size(places, mode=[1])):
        if here[0, row, 0][0] < valid:
            cute.copy(copy, values[None, row, None], places[None, row, None])
        else:
            places[None, row, None].fill(0.0)


@cute.jit
def store_rows(
    copy: cute.TiledCopy,
    thread: cutlass.Int32,
    tile: cute.Tensor,
    target: cute.Tensor,
    valid: cutlass.Int32,
):
    """Store the first `valid` rows of a tile in shared memory to global memory."""
    part = copy.get_slice(thread)
    here = part.partition_S(cute.make_identity_tensor(tile.shape))
    values = part.partition_S(tile)
    places = part.partition_D(target)
    for row in cutlass.range_constexpr(cute.size(values, mode=[1])):
        if here[0, row, 0][0] < valid:
            registers = cute.make_fragment_like(values[None, row, None])
            cute.autovec_copy(values[None, row, None], registers)
            cute.copy(copy, registers, places[None, row, None])
