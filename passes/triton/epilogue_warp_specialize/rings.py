"""Rings of buffers in shared memory, and the barriers by which they are handed over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilepass.ir.build_async import AsyncBuilder, barrier_array, buffer_of
from tilepass.ir.engine import ir
from tilepass.ir.layouts import TensorType

BARRIER_BYTES = 8


@dataclass(frozen=True)
class Ring:
    """`slots` slots, each with one buffer of every array in `buffers`.

    A slot is filled by who has waited for `empty` of its phase, and read by who has waited for
    `full`. The first wait for `empty` passes: it asks for the parity before the first phase.
    """

    slots: int
    buffers: tuple[ir.Value, ...]
    full: ir.Value
    empty: ir.Value


@dataclass(frozen=True)
class Cursor:
    """A slot (i32) and the parity (i32) of the phase that is waited for next."""

    slot: ir.Value
    parity: ir.Value

    @property
    def values(self) -> list[ir.Value]:
        """Both, as a loop carries them."""
        return [self.slot, self.parity]

    def next(self, builder: AsyncBuilder, slots: int) -> Cursor:
        """The slot after this one; after the last one the first, of the other parity."""
        one = builder.constant(1)
        if slots == 1:
            return Cursor(self.slot, builder.integer("xori", self.parity, one))
        after = builder.integer("addi", self.slot, one)
        wraps = builder.compare("eq", after, builder.constant(slots))
        slot = builder.select(wraps, builder.constant(0), after)
        flip = builder.cast("extui", wraps, builder.type("i32"))
        return Cursor(slot, builder.integer("xori", self.parity, flip))


def filling(builder: AsyncBuilder) -> Cursor:
    """Where who fills a ring starts: its slots are empty."""
    return Cursor(builder.constant(0), builder.constant(1))


def reading(builder: AsyncBuilder) -> Cursor:
    """Where who reads a ring starts: the first phase of `full` is to come."""
    return Cursor(builder.constant(0), builder.constant(0))


def hand_back(ring: Ring, cursor: Cursor, builder: AsyncBuilder) -> None:
    """Give a slot that threads have read back to who fills it.

    TMA writes it next, and a barrier alone does not order that behind the reads (PTX ISA, "Async
    proxy"): loads from shared memory may still be under way when their warps pass a barrier.
    """
    builder.fence_async_shared()
    builder.arrive_barrier(builder.slot(ring.empty, cursor.slot))


def allocate_ring(
    builder: AsyncBuilder,
    blocks: Sequence[TensorType],
    slots: int,
    *,
    fullers: int = 1,
    readers: int = 1,
) -> Ring:
    """A ring whose slots take one buffer for each block, its barriers initialised.

    `fullers` and `readers` are the arrivals that a slot's `full` and `empty` take.
    """
    buffers = [builder.local_alloc(builder.type(buffer_of(block, slots))) for block in blocks]
    full = allocate_barriers(builder, slots, fullers)
    empty = allocate_barriers(builder, slots, readers)
    return Ring(slots, tuple(buffers), full, empty)


def allocate_barriers(builder: AsyncBuilder, count: int, arrivals: int = 1) -> ir.Value:
    """An array of barriers, each of which takes so many arrivals a phase."""
    barriers = builder.local_alloc(builder.type(barrier_array(count)))
    for index in range(count):
        builder.init_barrier(builder.slot(barriers, builder.constant(index)), arrivals)
    return barriers
