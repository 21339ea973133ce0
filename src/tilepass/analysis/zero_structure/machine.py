"""The abstract interpreter: all threads of a block at once, through structured control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilepass.analysis.zero_structure import ops_numbers, private
from tilepass.analysis.zero_structure.facts import Limits
from tilepass.analysis.zero_structure.owners import accumulator_moves
from tilepass.analysis.zero_structure.private import Cells, PrivateObject, Registers
from tilepass.analysis.zero_structure.program import Block, Instruction, Program
from tilepass.analysis.zero_structure.shared import SharedMemory
from tilepass.analysis.zero_structure.values import (
    ANYWHERE,
    Domain,
    Mask,
    Pointer,
    Region,
    Struct,
    Value,
)

TERMINATORS = frozenset(
    ("scf.yield", "scf.condition", "func.return", "cuda.return", "gpu.return", "llvm.return")
)


class OutOfReach(Exception):
    """The analysis gives up: the reason, and the operation where it became clear."""

    def __init__(self, reason: str, instruction: Instruction | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.instruction = instruction


@dataclass(frozen=True)
class Execution:
    """One mma of a site: byte offsets of the register tiles it uses (None where one is not a tile
    in registers or its place is not known) and the zero facts that hold in every thread."""

    a_offset: int | None
    b_offset: int | None
    c_offset: int | None
    a_zero: int
    b_zero: int


@dataclass
class Trace:
    """What one run saw, by site."""

    executions: dict[int, list[Execution]] = field(default_factory=dict[int, list[Execution]])
    products: dict[int, set[int]] = field(default_factory=dict[int, set[int]])


Effect = Callable[["Machine", Instruction, tuple[Value, ...], Registers, Mask], "Value | None"]


class Machine:
    """Interprets a program; shared memory and what has escaped live as long as the machine.

    For each instruction there is one of `pures` if it only computes, else one of `effects`.
    """

    def __init__(
        self,
        program: Program,
        block: tuple[int, int, int],
        limits: Limits,
        pures: Sequence[ops_numbers.Pure | None],
        effects: Sequence[Effect],
    ) -> None:
        threads = block[0] * block[1] * block[2]
        padded = -(-threads // 32) * 32
        self.block = block
        self.program = program
        self.limits = limits
        self.domain = Domain(padded)
        self.shared = {
            name: SharedMemory(self.domain, shared, limits.shared_bytes)
            for name, shared in program.objects.items()
        }
        self.everyone = self.domain.mask(np.arange(padded) < threads)
        self.private: dict[int, PrivateObject] = {}
        # Private objects of which a pointer has gone where it is not followed.
        self.escaped: set[int] = set()
        self.clobbers: dict[int, str] = {}
        # Which instructions store to a private object, in the order seen.
        self.writers: dict[int, dict[int, None]] = {}
        # The addresses that a load of shared memory has had and the threads that ran it, by
        # instruction number; for explanations.
        self.readers: dict[int, dict[Pointer, Mask]] = {}
        self.trace = Trace()
        self.reads = accumulator_moves(program)
        self.steps = 0
        self.env: list[Any] = [None] * len(program.types)
        self._pures: Sequence[Any] = pures
        self._effects = effects

    def run(self) -> bool:
        """Interpret the kernel once; whether nothing new was learned."""
        before = self._version()
        self.trace = Trace()
        for memory in self.shared.values():
            memory.start_run()
        body = self.program.body
        for number, kind in zip(body.arguments, body.types, strict=True):
            self.env[number] = self.domain.argument(kind)
        self.execute(body, Registers(), self.everyone)
        return before == self._version()

    def execute(self, block: Block, state: Registers, mask: Mask) -> tuple[Value, ...]:
        """Run a block; the operands of its terminator. Raises OutOfReach."""
        env, pures = self.env, self._pures
        self.steps += len(block.body)
        if self.steps > self.limits.steps:
            raise OutOfReach(f"more than {self.limits.steps} operations to interpret")
        for item in block.body:
            values = tuple([env[number] for number in item.operands])
            pure = pures[item.number]
            if pure is not None:
                result = item.memo.get(values)
                if result is None:
                    result = item.memo[values] = pure(self.domain, item, values)
                if len(item.results) == 1:
                    env[item.results[0]] = result
                else:
                    for number, part in zip(item.results, result, strict=True):
                        env[number] = part
                continue
            if item.name in TERMINATORS:
                return values
            result = self._effects[item.number](self, item, values, state, mask)
            if result is not None:
                env[item.results[0]] = result
            elif item.name not in _SETS_RESULTS:
                for number, kind in zip(item.results, item.types, strict=True):
                    env[number] = self.domain.top(kind)
        return ()

    # ---- memory ----

    def cells(self, number: int, state: Registers) -> Cells:
        """What a private object holds."""
        found = state.cells.get(number)
        if found is None or number in self.escaped:
            found = private.everything_lost(self.domain, self.private[number])
        return found

    def clobber(self, instruction: Instruction, reason: str) -> None:
        """Anything may have been stored to shared memory."""
        self.clobbers.setdefault(instruction.number, reason)
        for memory in self.shared.values():
            memory.spoil_all(instruction.number)

    def escape(self, value: Value) -> None:
        """A pointer goes where it is not followed."""
        if isinstance(value, Struct):
            for member in value.members:
                self.escape(member)
        if isinstance(value, Pointer) and value.region.kind in ("private", "anywhere"):
            self.reads.unknown = True
        if isinstance(value, Pointer) and value.region.kind == "private":
            self.escaped.add(int(value.region.name))

    def lose_registers(self, state: Registers) -> None:
        """Anything may have been stored to any private object."""
        for number, shape in self.private.items():
            state.cells[number] = private.everything_lost(self.domain, shape)

    def follow(self, region: Region) -> Region:
        """A region as it is for stores: an escaped private object may be anywhere."""
        return ANYWHERE if region.kind == "private" and region.name in self.escaped else region

    def check_memory(self, instruction: Instruction) -> None:
        """Raise OutOfReach where the tables have grown too large."""
        if self.domain.held_bytes > self.limits.table_bytes:
            raise OutOfReach(
                f"more than {self.limits.table_bytes >> 20} MiB of distinct values", instruction
            )

    def _version(self) -> tuple[int, ...]:
        versions = (memory.version for memory in self.shared.values())
        return *versions, len(self.escaped), len(self.reads.read)


# Operations with regions give values to their results themselves.
_SETS_RESULTS = frozenset(("scf.if", "scf.for", "scf.while", "scf.index_switch"))
