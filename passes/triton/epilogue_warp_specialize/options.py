"""What is asked for, and what the target has: registers, shared memory, the Triton that reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Literal

from tilepass.core.errors import OptionError
from tilepass.core.pass_base import Target
from tilepass.core.refusal import Refusal
from tilepass.ir.build_async import buffer_of
from tilepass.ir.layouts import TensorType, element_bits
from tilepass.ir.shared_memory import tma_alignment

from .description import PersistentNest

SchemeName = Literal["cooperative", "ping-pong", "split-consumer"]

Subtiles = Literal[1, 2, 4]


@dataclass(frozen=True)
class Options:
    """What a user may ask for. `auto` leaves it to the cost model and the budgets.

    `stages` is the number of slots for the operands of the dot, `c_buffers` the number of staging
    buffers that each TMA store has in each consumer, `epilogue_subtile` the number of pieces
    along N in which the epilogue goes through them, `late_subtiles` how many of them wait in
    registers until the next tile's first dot is issued (all of them TMA stores, in `split-consumer`
    and `cooperative`). `alternate_epilogues` is for `split-consumer`.
    """

    scheme: Literal["auto", "none", "cooperative", "ping-pong", "split-consumer"] = "auto"
    stages: Literal["auto"] | int = "auto"
    c_buffers: Literal["auto"] | int = "auto"
    epilogue_subtile: Literal["auto", 1, 2, 4] = "auto"
    late_subtiles: Literal["auto", 0, 1, 2] = "auto"
    alternate_epilogues: Literal["auto", "true", "false"] = "auto"

    def __post_init__(self) -> None:
        """Raises OptionError for what no scheme can be built with."""
        for name, value, fewest in (
            ("stages", self.stages, 2),
            ("c-buffers", self.c_buffers, 1),
        ):
            if isinstance(value, int) and value < fewest:
                raise OptionError(
                    f"pass 'epilogue-warp-specialize', option '{name}': {value} is too few, "
                    f"{fewest} is the least"
                )
        if self.alternate_epilogues == "true" and self.scheme not in ("auto", "split-consumer"):
            raise OptionError(
                "pass 'epilogue-warp-specialize', option 'alternate-epilogues': it is for "
                f"scheme=split-consumer, not {self.scheme}"
            )

    def asked_for(self) -> dict[str, object]:
        """By the name of its field, each number that is not left open."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: value for name, value in values.items() if name != "scheme" and value != "auto"
        }


_LANES = 32

# Registers are handed out to groups of so many warps, in steps of so many a thread
# (PTX ISA, setmaxnreg).
_GROUP_WARPS = 4

_STEP = 8

FEWEST_REGISTERS = 24
"""Registers of a thread that only issues copies: the least that setmaxnreg knows."""

MOST_REGISTERS = 240
"""Registers of a thread that computes: with more no other group would have the least."""

UNLIMITED_REGISTERS = 255
"""A thread has no more (CUDA C++ Programming Guide, compute capability 9.0): `maxnreg` from there
on limits nothing."""

# What a thread needs beside its accumulator: the values of the epilogue in flight, addresses,
# counters. Without spills at 168 registers with an accumulator of 128 (measured by ptxas).
_WORKING_REGISTERS = 40


@dataclass(frozen=True)
class Limits:
    """What one program may have of a multiprocessor: bytes of shared memory, 32-bit registers."""

    shared_bytes: int
    registers: int


# CUDA C++ Programming Guide, technical specifications per compute capability: registers per thread
# block.
_REGISTERS: Mapping[int | str, int] = {90: 64 * 1024}


def limits_of(target: Target) -> Limits | None:
    registers, shared_bytes = _REGISTERS.get(target.arch), target.shared_bytes
    if registers is None or shared_bytes is None:
        return None
    return Limits(shared_bytes, registers)


def requested_registers(
    limits: Limits, default_warps: int, partitions: Sequence[tuple[int, bool]]
) -> tuple[int, ...]:
    """`requestedRegisters` of the partitions, given as (warps, computes).

    Those that only copy take the least; what they leave goes to those that compute, the default
    region among them, in equal parts. Triton rounds warps up to whole groups and gives the default
    region what the partitions leave.
    """
    copying = sum(warps for warps, computes in partitions if not computes)
    heavy = _groups(default_warps) + sum(
        _groups(warps) for warps, computes in partitions if computes
    )
    light = _groups(copying)
    per_thread = limits.registers // ((heavy + light) * _GROUP_WARPS * _LANES) // _STEP * _STEP
    left = (heavy + light) * per_thread - light * FEWEST_REGISTERS
    share = min(MOST_REGISTERS, left // heavy // _STEP * _STEP)
    return tuple(share if computes else FEWEST_REGISTERS for _, computes in partitions)


def _groups(warps: int) -> int:
    return -(-warps // _GROUP_WARPS)


def registers_obstacle(nest: PersistentNest, accumulator: int, available: int) -> Refusal | None:
    """A refusal where an accumulator of so many registers a thread would be spilled."""
    if accumulator + _WORKING_REGISTERS <= available:
        return None
    return Refusal(
        nest.dot,
        f"the accumulator takes {accumulator} registers a thread and the rest "
        f"{_WORKING_REGISTERS}: a consumer has {available}",
        "take a smaller tile",
    )


BARRIER_BYTES = 8

# Captures of the partitions and their state (well under 256 bytes), and the gaps before
# buffers, which begin at multiples of 1024 bytes at most.
OVERHEAD_BYTES = 1024


@lru_cache
def array_bytes(block: TensorType, slots: int) -> int:
    """An array of buffers for a block, as `buffer_of` makes it, and the gap behind it."""
    size = math.prod(buffer_of(block, slots).shape) * element_bits(block.element) // 8
    alignment = tma_alignment(block.encoding)
    return -(-size // alignment) * alignment


def ring_bytes(blocks: Iterable[TensorType], slots: int) -> int:
    """A ring of slots with buffers for these blocks, its barriers included."""
    return sum(array_bytes(block, slots) for block in blocks) + 2 * BARRIER_BYTES * slots


# A dot is issued before the slot of the one before is handed back: with one slot nobody moves.
_FEWEST_STAGES = 2

_MOST_STAGES = 12


def stage_counts(options: Options) -> list[int]:
    """The numbers of slots for the dot's operands that the options allow, largest first."""
    if options.stages == "auto":
        return list(range(_MOST_STAGES, _FEWEST_STAGES - 1, -1))
    return [options.stages]


@dataclass(frozen=True)
class Machine:
    """The Triton that reads what is built, and what the target has for one program."""

    triton_version: tuple[int, ...]
    limits: Limits
