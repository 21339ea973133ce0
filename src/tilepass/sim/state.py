"""What a running program sees: its place in the grid, memory, and the budget of steps."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilepass.sim.coverage import Coverage
from tilepass.sim.faults import StepLimit
from tilepass.sim.memory import GlobalMemory

if TYPE_CHECKING:
    from tilepass.sim.effects import Effects

Frame = list[Any]
"""The values of a function's operations; element 0 is the State."""


@dataclass(frozen=True)
class Point:
    """A request to the driver: an effect follows, others may run before it."""


@dataclass(frozen=True)
class Blocked:
    """A request to the driver: go on only when `ready()`; `what` is waited for."""

    ready: Callable[[], bool]
    what: str


@dataclass(frozen=True)
class Fork:
    """A request to the driver: run these side by side and send back the list of their results."""

    names: Sequence[str]
    tasks: Sequence[Task]


Request = Point | Blocked | Fork
Task = Generator[Request, Any, Any]
Step = Callable[[Frame], None]


@dataclass(frozen=True, eq=False)
class Suspending:
    """A step that yields requests to the driver."""

    run: Callable[[Frame], Task]


POINT = Point()


@dataclass
class State:
    """One program of a grid."""

    memory: GlobalMemory
    effects: Effects
    program: tuple[int, int, int]
    grid: tuple[int, int, int]
    budget: int
    """Steps that the launch may still take."""
    printed: list[str] = field(default_factory=list[str])
    descriptors: dict[int, Any] = field(default_factory=dict[int, Any])
    """Tensor maps that the kernel made, by address."""
    allocations: int = 0
    coverage: Coverage = field(default_factory=Coverage)

    def spend(self, steps: int) -> None:
        """Raises StepLimit when the budget is spent."""
        self.budget -= steps
        if self.budget < 0:
            raise StepLimit("the step limit is reached in this loop")
