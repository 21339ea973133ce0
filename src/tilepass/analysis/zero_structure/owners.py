"""Which accumulator tiles are still in registers, and which are read.

Beside the cells of a private object goes, cell by cell, what may still lie there: tiles that a
gemm's mma stored, each with the threads in which nothing has replaced it. A load of such a cell by
other than the same gemm's next mma reads the tile.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tilepass.analysis.zero_structure.intervals import Interval
from tilepass.analysis.zero_structure.program import Instruction, Program
from tilepass.analysis.zero_structure.values import Domain, Mask

# A gemm and the byte offset of an accumulator tile in its registers.
Tag = tuple[int, int]
Owner = tuple[tuple[Tag, Mask], ...]
Owners = list[Owner]
NOBODY: Owner = ()

_RESULT = ("llvm.extractvalue", "vector.from_elements", "vector.bitcast", "llvm.bitcast")


@dataclass
class AccumulatorReads:
    """The instructions that move accumulators, and the tiles found to be read."""

    stores: dict[int, int] = field(default_factory=dict[int, int])
    """By number of a store of an mma's result: the site."""
    loads: dict[int, int] = field(default_factory=dict[int, int])
    """By number of a load that only feeds the accumulator operand of mma: the site."""
    read: set[Tag] = field(default_factory=set[Tag])
    unknown: bool = False
    """Whether registers were read in a way that is not followed."""


def accumulator_moves(program: Program) -> AccumulatorReads:
    """The stores and loads around the mma of sites."""
    found = AccumulatorReads()
    for item in program.instructions:
        if item.name == "llvm.store":
            source = _back(program, item.operands[0])
            if source is not None and source.name == "nvvm.mma.sync" and source.site is not None:
                found.stores[item.number] = source.site
    uses = _uses(program)
    for item in program.instructions:
        if item.name != "nvvm.mma.sync" or item.site is None:
            continue
        for number in item.operands[sum(item.detail.registers[:2]) :]:
            load = _load_of(program, number)
            if load is not None and _feeds_only(program, uses, load, item):
                found.loads[load.number] = item.site
    return found


def _back(program: Program, number: int) -> Instruction | None:
    item = program.definitions.get(number)
    while item is not None and item.name in _RESULT:
        item = program.definitions.get(item.operands[0])
    return item


def _load_of(program: Program, number: int) -> Instruction | None:
    item = program.definitions.get(number)
    while item is not None and item.name in ("vector.to_elements", "vector.extract"):
        item = program.definitions.get(item.operands[0])
    return item if item is not None and item.name == "llvm.load" else None


def _uses(program: Program) -> dict[int, list[Instruction]]:
    uses: dict[int, list[Instruction]] = {}
    for item in program.instructions:
        for number in item.operands:
            uses.setdefault(number, []).append(item)
    return uses


def _feeds_only(
    program: Program, uses: dict[int, list[Instruction]], load: Instruction, product: Instruction
) -> bool:
    """Whether a load's value goes to an mma and nowhere else."""
    waiting = list(load.results)
    while waiting:
        for user in uses.get(waiting.pop(), []):
            if user.name in ("vector.to_elements", "vector.extract"):
                waiting += user.results
            elif user is not product:
                return False
    return True


def stored(
    owners: Owners | None, count: int, span: tuple[int, int] | None, owner: Owner
) -> Owners | None:
    """The owners after a store to a span of cells; None for a span that is not known."""
    if owners is None:
        if owner is NOBODY:
            return None
        owners = [NOBODY] * count
    if span is None:
        # What lay there may still do so.
        return owners
    result = list(owners)
    result[span[0] : span[1]] = [owner] * (span[1] - span[0])
    return result


def pick(domain: Domain, condition: Interval | None, one: Owners, other: Owners) -> Owners:
    """`one` where the condition holds, `other` where it does not, both where it is not known."""
    if one is other:
        return one
    return [
        first if first is second else _merged(domain, condition, first, second)
        for first, second in zip(one, other, strict=True)
    ]


def _merged(domain: Domain, condition: Interval | None, one: Owner, other: Owner) -> Owner:
    nobody = np.zeros(domain.threads, bool)
    here, there = dict(one), dict(other)
    merged = list[tuple[Tag, Mask]]()
    for tag in sorted({*here, *there}):
        first = here[tag].active if tag in here else nobody
        second = there[tag].active if tag in there else nobody
        alive = first | second
        if condition is not None:
            alive = np.where(
                condition.low >= 1, first, np.where(condition.high <= 0, second, alive)
            )
        if alive.any():
            merged.append((tag, domain.mask(alive)))
    return tuple(merged)


def note_load(
    reads: AccumulatorReads,
    owners: Owners,
    span: tuple[int, int] | None,
    own: Tag | None,
    mask: Mask,
) -> None:
    """A load of a span of cells by threads of a mask; `own` is the tile that a gemm adds to."""
    for owner in owners if span is None else owners[span[0] : span[1]]:
        for tag, alive in owner:
            if tag != own and tag not in reads.read and (alive.active & mask.active).any():
                reads.read.add(tag)
