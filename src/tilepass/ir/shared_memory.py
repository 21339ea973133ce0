"""Where in shared memory Triton puts buffers and their parts, and where TMA may read and write."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilepass.ir.layouts import (
    Encoding,
    MemDescType,
    NvmmaShared,
    SharedLinear,
    SwizzledShared,
    TensorType,
    element_bits,
)

# PTX ISA, cp.async.bulk.tensor: the alignment of the address in shared memory.
_TMA_BYTES = 128
# A swizzle permutes pieces of so many bytes, in as many rows of 128 bytes as it has pieces: it
# repeats behind that (PTX ISA, tensor swizzling modes).
_PIECE_BYTES = 16
_FEWEST_BYTES = 16
# TMA moves at most so many elements of a dimension at once (CUDA driver API,
# cuTensorMapEncodeTiled); Triton lays larger blocks out in tiles of that.
_BOX_ELEMENTS = 256


def tma_alignment(encoding: Encoding | None) -> int:
    """The multiple of bytes that a block which TMA moves must begin at: a whole swizzle atom."""
    swizzle = encoding.swizzling_byte_width if isinstance(encoding, NvmmaShared) else 0
    return _TMA_BYTES * max(1, swizzle // _PIECE_BYTES)


def allocation_alignment(encoding: Encoding) -> int:
    """The multiple of bytes that `ttg.local_alloc` promises by itself, without an `alignment`
    attribute (Triton's LocalAllocOp::getAlignmentOrDefault)."""
    if isinstance(encoding, NvmmaShared):
        return tma_alignment(encoding)
    if isinstance(encoding, SharedLinear):
        return encoding.alignment
    return _FEWEST_BYTES


def blocks_apart(block: TensorType | MemDescType) -> int:
    """How many blocks apart the places of an array of them are that TMA may all use."""
    size = math.prod(block.shape) * element_bits(block.element) // 8
    return math.lcm(size, tma_alignment(block.encoding)) // size


def slot_bytes(array: MemDescType) -> int | None:
    """The bytes from one slot of an array to the next, as `ttg.memdesc_index` has them; None where
    the encoding is not known to have none between them."""
    if not isinstance(array.encoding, NvmmaShared | SwizzledShared | SharedLinear):
        return None
    shape = array.alloc_shape or array.shape
    return math.prod(shape[1:]) * _stored_bits(array) // 8


def part_offset(buffer: MemDescType, at: Sequence[int]) -> int | None:
    """The byte of a buffer at which its part begins that `ttg.memdesc_subslice` cuts out, counted
    from where the buffer as it was allocated begins; None where the encoding is not known."""
    shape, encoding = buffer.alloc_shape or buffer.shape, buffer.encoding
    if not any(at):
        return 0
    if len(shape) != len(at):
        return None
    if isinstance(encoding, NvmmaShared):
        element = _nvmma_element(encoding, shape, at, _stored_bits(buffer))
    elif isinstance(encoding, SwizzledShared) and len(encoding.order) == len(shape):
        element = _row_major(shape, at, encoding.order)
    else:
        return None
    return None if element is None else element * _stored_bits(buffer) // 8


def _stored_bits(buffer: MemDescType) -> int:
    """Bits that an element takes up: padded, two packed into a byte take two bytes."""
    encoding = buffer.encoding
    padded = isinstance(encoding, NvmmaShared) and encoding.fp4_padded
    return element_bits(buffer.element) * (2 if padded else 1)


def _nvmma_element(
    encoding: NvmmaShared, shape: Sequence[int], at: Sequence[int], bits: int
) -> int | None:
    """How many elements precede one in tiles as TMA fills them. Swizzled tiles are as wide as the
    swizzle, rows of all of them one behind the other; the others as large as a box may be."""
    order = list(range(len(shape)))
    order = order if encoding.transposed else order[::-1]
    fastest, *others = order
    width = encoding.swizzling_byte_width * 8 // bits
    if width == 0:
        tile = [min(extent, _BOX_ELEMENTS) for extent in shape]
        tiles = [extent // each for extent, each in zip(shape, tile, strict=True)]
        which = [index // each for index, each in zip(at, tile, strict=True)]
        inside = [index % each for index, each in zip(at, tile, strict=True)]
        before = _row_major(tiles, which, order) * math.prod(tile)
        return before + _row_major(tile, inside, order)
    if len(shape) > 2 and max(shape[each] for each in others) > _BOX_ELEMENTS:
        return None
    rows = math.prod(shape[each] for each in others)
    row = _row_major([shape[each] for each in others], [at[each] for each in others])
    return at[fastest] // width * width * rows + row * width + at[fastest] % width


def _row_major(shape: Sequence[int], at: Sequence[int], order: Sequence[int] | None = None) -> int:
    """The number of the element at a position; `order` from the fastest dimension, by default the
    first."""
    number, stride = 0, 1
    for dimension in order or range(len(shape)):
        number += at[dimension] * stride
        stride *= shape[dimension]
    return number
