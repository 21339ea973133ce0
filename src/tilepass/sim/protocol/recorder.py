"""Recording: every partition runs alone, as if nothing had to be waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilepass.core.errors import TilepassError
from tilepass.sim.effects import Effects
from tilepass.sim.faults import UndefinedBehaviour
from tilepass.sim.memory import GlobalMemory
from tilepass.sim.protocol.cells import number_cells
from tilepass.sim.protocol.events import Event, Kind, Memory, Place, Recording, Region, Thread
from tilepass.sim.state import State

if TYPE_CHECKING:
    from collections.abc import Generator

    from tilepass.sim.protocol.compiler import ProtocolProgram

EVENT_LIMIT = 200_000
STEP_LIMIT = 5_000_000
UNKNOWN = "the value comes from memory or a tensor, whose contents are not followed"
_POINTER_SPAN = 1 << 42


class CannotFollow(TilepassError):
    """Control flow or a slot depends on what memory or a tensor holds."""


@dataclass
class Recorder(State):
    """The state of a program that is being recorded. `issued` counts the thread's dots."""

    threads: list[Thread] = field(default_factory=lambda: [Thread("default partition")])
    current: int = 0
    issued: int = 0
    memories: dict[object, Memory] = field(default_factory=dict[object, Memory])
    total: int = 0

    def add(
        self,
        kind: Kind,
        place: Place,
        regions: Sequence[Region] = (),
        barrier: Region | None = None,
        amount: int = 0,
        threads: tuple[int, ...] = (),
    ) -> None:
        """Append an event to the current partition. Raises CannotFollow past EVENT_LIMIT."""
        self.total += 1
        if self.total > EVENT_LIMIT:
            raise CannotFollow(f"one program does more than {EVENT_LIMIT} things: take smaller "
                               "shapes")  # fmt: skip
        event = Event(kind, place, tuple(regions), barrier, amount, threads)
        self.threads[self.current].events.append(event)

    @contextmanager
    def partition(self, thread: int) -> Generator[None]:
        """Record what follows as that thread's."""
        before = self.current, self.issued
        self.current, self.issued = thread, 0
        yield
        self.current, self.issued = before


def record(
    program: ProtocolProgram,
    arguments: Mapping[str, int],
    place: tuple[int, int, int] = (0, 0, 0),
    grid: tuple[int, int, int] = (1, 1, 1),
) -> Recording:
    """What the program at `place` of the grid does with these integer arguments, others 0.

    Raises CannotFollow, and Fault for what is wrong whatever the schedule.
    """
    recorder = Recorder(GlobalMemory(), Effects(), place, grid, STEP_LIMIT)
    frame = program.entry.frame(recorder)
    body = program.entry.body
    values = argument_values(program, arguments)
    try:
        body.enter(frame, values)
    except UndefinedBehaviour as fault:
        if UNKNOWN in fault.message:
            raise CannotFollow(f"{fault}\nnote: the protocol is checked without values") from fault
        raise
    regions, barriers = number_cells(recorder.threads)
    memories = list(recorder.memories.values())
    return Recording(recorder.threads, regions, barriers, memories)


def argument_values(program: ProtocolProgram, arguments: Mapping[str, int]) -> list[Any]:
    """The values of all parameters: integers as given, addresses for pointers, else nothing."""
    values: list[Any] = []
    for index, parameter in enumerate(program.parameters):
        type_ = parameter.type
        if type_.form != "scalar" or type_.element is None:
            values.append(None)
        elif type_.of.kind == "pointer":
            values.append((index + 1) * _POINTER_SPAN)
        else:
            values.append(type_.of.scalar(arguments.get(parameter.name, 0)))
    return values
