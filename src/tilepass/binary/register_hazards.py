"""Writes to registers that an asynchronous wgmma may still be reading, found in SASS.

A wgmma whose A operand is in registers reads them until a wait covers it (PTX ISA, wgmma.mma_async:
accessing its registers before `wgmma.wait_group` is undefined). ptxas keeps to that inside a
straight line, but, up to CUDA 12.9, not for wgmmas that are unfinished at a loop's back edge: it
gives their registers to whatever the next iteration computes first. Whether the result is wrong is
then a matter of timing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# m64k16 of 16-bit and m64k32 of 8-bit elements, in both cases 4 registers of each of 128 threads.
_A_REGISTERS = 4

_LINE = re.compile(r"^\s*(?:(\.L_x_\d+):|/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([^;]*);)", re.M)
_BRANCH = re.compile(r"BRA\b.*?(\.L_x_\d+)")
_WGMMA = re.compile(r"[HQIB]GMMA\S*\s+R\d+, (?:R(\d+)|gdesc)")
_WAIT = re.compile(r"WARPGROUP\.DEPBAR\S*\s+gsb0, (0x[0-9a-f]+)")
_WRITE = re.compile(r"(\S+)\s+(?:U?P\w+, )?R(\d+)\b")
_COMMIT = "gsb0"
# Operations whose first operand is a register that they only read.
_READS_ONLY = ("ST", "RED", "BAR", "BRX", "CALL", "RET", "WARPSYNC")
_WIDTHS = ((".128", 4), (".64", 2), (".WIDE", 2), ("CS2R", 2))


@dataclass(frozen=True)
class RegisterHazard:
    """An instruction of a loop that overwrites a register of an unfinished wgmma.

    `age` counts the wgmma groups issued after the one that reads the register.
    """

    instruction: str
    register: int
    age: int


def find_register_hazards(sass: str) -> list[RegisterHazard]:
    """The hazards in loops that hold wgmmas with A in registers; `sass` is nvdisasm's listing.

    Loops are taken as straight lines, executed twice: a forward branch counts as not taken.
    """
    instructions, labels = _parse(sass)
    hazards: dict[tuple[int, int], RegisterHazard] = {}
    for start, stop in _innermost_loops(instructions, labels):
        pipeline = _Pipeline()
        for index in (*range(start, stop), *range(start, stop)):
            for hazard in pipeline.step(instructions[index]):
                hazards.setdefault((index, hazard.register), hazard)
    return [hazards[key] for key in sorted(hazards)]


@dataclass
class _Pipeline:
    """The A registers of wgmma groups that have been issued and not been waited for."""

    unfinished: list[set[int]] = field(default_factory=list[set[int]])
    open_group: set[int] = field(default_factory=set[int])

    def step(self, instruction: str) -> Iterator[RegisterHazard]:
        if match := _WGMMA.match(instruction):
            if match[1]:
                first = int(match[1])
                self.open_group |= set(range(first, first + _A_REGISTERS))
            if _COMMIT in instruction:
                self.unfinished.append(self.open_group)
                self.open_group = set()
        elif match := _WAIT.match(instruction):
            allowed = int(match[1], 16)
            self.unfinished = self.unfinished[-allowed:] if allowed else []
        else:
            yield from self._overwritten(instruction)

    def _overwritten(self, instruction: str) -> Iterator[RegisterHazard]:
        match = _WRITE.match(instruction)
        if match is None or match[1].startswith(_READS_ONLY):
            return
        first = int(match[2])
        width = next((width for mark, width in _WIDTHS if mark in match[1]), 1)
        for register in range(first, first + width):
            for age, group in enumerate(reversed(self.unfinished)):
                if register in group:
                    group.discard(register)
                    yield RegisterHazard(instruction.strip(), register, age)
                    break


def _parse(sass: str) -> tuple[list[str], dict[str, int]]:
    """The instructions without their guards, and each label's index into them."""
    instructions: list[str] = []
    labels: dict[str, int] = {}
    for match in _LINE.finditer(sass):
        if match[1]:
            labels[match[1]] = len(instructions)
        else:
            instructions.append(match[2].strip())
    return instructions, labels


def _innermost_loops(instructions: list[str], labels: dict[str, int]) -> Iterator[tuple[int, int]]:
    """[start, stop) of each loop with wgmmas that holds no other such loop."""
    loops: list[tuple[int, int]] = []
    for index, instruction in enumerate(instructions):
        branch = _BRANCH.match(instruction)
        start = labels.get(branch[1], index + 1) if branch else index + 1
        if start <= index and any(map(_WGMMA.match, instructions[start : index + 1])):
            loops.append((start, index + 1))
    for start, stop in loops:
        inner = [(a, b) for a, b in loops if start <= a and b <= stop and (a, b) != (start, stop)]
        if not inner:
            yield start, stop
