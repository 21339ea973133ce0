"""What a multiprocessor has, and how its registers are shared out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilepass.core.pass_base import Target
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, Refusal

_LANES = 32
# Registers are handed out to groups of so many warps, in steps of so many a thread
# (PTX ISA, setmaxnreg).
_GROUP_WARPS = 4
_STEP = 8
FEWEST_REGISTERS = 24
"""Registers of a thread that only issues copies: the least that setmaxnreg knows."""
_MOST_REGISTERS = 240
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
    """The limits of a target, None where they are not known."""
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
    share = min(_MOST_REGISTERS, left // heavy // _STEP * _STEP)
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
