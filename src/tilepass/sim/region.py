"""Compiled regions: blocks as lists of steps, run in a frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from tilepass.ir import engine
from tilepass.sim.faults import raise_blaming
from tilepass.sim.state import Frame, Step, Suspending, Task

Exit = Callable[[Frame], "tuple[int, list[Any]]"]
"""What a terminator does: (index of the block to go to or -1, values handed out)."""


@dataclass
class Block:
    """`steps` without the terminator; `leave` is the terminator."""

    arguments: tuple[int, ...]
    steps: list[Step | Suspending]
    operations: list[engine.Operation]
    leave: Exit
    terminator: engine.Operation
    yields: tuple[int, ...] | None
    """The slots handed out by a terminator that ends the region, None for a branch."""

    def operation_of(self, step: Step | Suspending | None) -> engine.Operation:
        """The operation of a step, the terminator for None."""
        if step is None:
            return self.terminator
        return next(
            operation
            for each, operation in zip(self.steps, self.operations, strict=True)
            if each is step
        )


@dataclass
class Body:
    """A region. Handlers call `run`, or `resume` where `suspends`."""

    blocks: list[Block]
    suspends: bool = field(init=False)
    run: Callable[[Frame], Sequence[Any]] = field(init=False)

    def __post_init__(self) -> None:
        steps = [step for block in self.blocks for step in block.steps]
        self.suspends = any(isinstance(step, Suspending) for step in steps)
        single = len(self.blocks) == 1 and self.blocks[0].yields is not None
        self.run = _straight(self.blocks[0]) if single else self._run_blocks

    @property
    def arguments(self) -> tuple[int, ...]:
        """The slots of the entry block's arguments."""
        return self.blocks[0].arguments if self.blocks else ()

    @property
    def cost(self) -> int:
        """Steps of the entry block, at least 1."""
        return len(self.blocks[0].steps) + 1

    def enter(self, frame: Frame, values: Sequence[Any]) -> Sequence[Any]:
        """Run with these values as arguments of the entry block."""
        for slot, value in zip(self.arguments, values, strict=True):
            frame[slot] = value
        return self.run(frame)

    def resume(self, frame: Frame) -> Task:
        """`run` as a task."""
        index = 0
        while True:
            block, step = self.blocks[index], None
            try:
                for step in block.steps:
                    if isinstance(step, Suspending):
                        yield from step.run(frame)
                    else:
                        step(frame)
                step = None
                index, values = block.leave(frame)
            except Exception as error:
                raise_blaming(error, block.operation_of(step))
            if index < 0:
                return values

    def _run_blocks(self, frame: Frame) -> Sequence[Any]:
        index = 0
        while True:
            block, step = self.blocks[index], None
            try:
                frame[0].spend(len(block.steps) + 1)
                for step in block.steps:
                    cast("Step", step)(frame)
                step = None
                index, values = block.leave(frame)
            except Exception as error:
                raise_blaming(error, block.operation_of(step))
            if index < 0:
                return values


def _straight(block: Block) -> Callable[[Frame], Sequence[Any]]:
    """The way through a block that ends its region."""
    steps: Any = block.steps
    yields = block.yields or ()

    def run(frame: Frame) -> Sequence[Any]:
        step = None
        try:
            for step in steps:
                step(frame)
        except Exception as error:
            raise_blaming(error, block.operation_of(step))
        return [frame[slot] for slot in yields]

    return run
