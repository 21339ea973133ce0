"""The shared memory that a plan takes, in bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tilepass.ir.build_async import buffer_of
from tilepass.ir.layouts import TensorType, element_bits
from tilepass.ir.shared_memory import tma_alignment
from tilepass.passes.triton.epilogue_warp_specialize.rings import BARRIER_BYTES

# Captures of the partitions and their state (well under 256 bytes), and the gaps in front of
# buffers, which begin at multiples of 1024 bytes at most.
OVERHEAD_BYTES = 1024


def array_bytes(block: TensorType, slots: int) -> int:
    """An array of buffers for a block, as `buffer_of` makes it, and the gap behind it."""
    size = math.prod(buffer_of(block, slots).shape) * element_bits(block.element) // 8
    alignment = tma_alignment(block.encoding)
    return -(-size // alignment) * alignment


def ring_bytes(blocks: Iterable[TensorType], slots: int) -> int:
    """A ring of slots with buffers for these blocks, its barriers included."""
    return sum(array_bytes(block, slots) for block in blocks) + 2 * BARRIER_BYTES * slots
