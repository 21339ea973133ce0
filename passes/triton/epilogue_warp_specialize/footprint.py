"""The shared memory that a plan takes, in bytes."""

from __future__ import annotations

from collections.abc import Iterable

from tilepass.passes.triton.epilogue_warp_specialize.rings import BARRIER_BYTES

# Captures of the partitions and their state (well under 256 bytes), and the gaps in front of
# buffers, which begin at multiples of 1024 bytes at most.
OVERHEAD_BYTES = 1024


def ring_bytes(blocks: Iterable[int], slots: int) -> int:
    """A ring of slots with buffers of these sizes, its barriers included."""
    return slots * (sum(blocks) + 2 * BARRIER_BYTES)
