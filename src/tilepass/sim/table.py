"""The table of operations: for each name a function that makes its step at compile time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tilepass.sim.state import Frame, Task

if TYPE_CHECKING:
    from tilepass.sim.site import Site

Step = Callable[[Frame], None]


@dataclass(frozen=True, eq=False)
class Suspending:
    """A step that yields requests to the driver."""

    run: Callable[[Frame], Task]


MakeStep = Callable[["Site"], Step | Suspending]
MakeStepT = TypeVar("MakeStepT", bound=MakeStep)


class CannotSimulate(Exception):
    """Raised by a step maker for an operation that is known but not in this form."""


OPERATIONS: dict[str, MakeStep] = {}


def operation(*names: str) -> Callable[[MakeStepT], MakeStepT]:
    """Enter a step maker for the operations of these names."""

    def enter(make: MakeStepT) -> MakeStepT:
        for name in names:
            OPERATIONS[name] = make
        return make

    return enter
