"""Recording: every partition runs alone, as if nothing had to be waited for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilepass.core.errors import TilepassError
from tilepass.sim.protocol.events import Event, Kind, Memory, Place, Region, Thread
from tilepass.sim.state import State

if TYPE_CHECKING:
    from collections.abc import Generator

EVENT_LIMIT = 20_000
STEP_LIMIT = 2_000_000
UNKNOWN = "it comes from memory or a tensor, whose contents are not followed"


class CannotFollow(TilepassError):
    """Control flow or a slot depends on what memory or a tensor holds."""


class TooLong(CannotFollow):
    """A program with more than EVENT_LIMIT events or STEP_LIMIT operations."""


@dataclass
class Recorder(State):
    """The state of a program that is being recorded.

    Of the current thread's dots `issued` were issued and `finished` have been waited for;
    `registers` holds the places of unfinished ones that read registers.
    """

    threads: list[Thread] = field(default_factory=lambda: [Thread("default partition")])
    current: int = 0
    issued: int = 0
    finished: int = 0
    registers: dict[int, Place] = field(default_factory=dict[int, Place])
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
            raise TooLong(f"one program does more than {EVENT_LIMIT} asynchronous things: take "
                          "smaller shapes")  # fmt: skip
        event = Event(kind, place, tuple(regions), barrier, amount, threads)
        self.threads[self.current].events.append(event)

    @contextmanager
    def partition(self, thread: int) -> Generator[None]:
        """Record what follows as that thread's."""
        before = self.current, self.issued, self.finished, self.registers
        self.current, self.issued, self.finished, self.registers = thread, 0, 0, {}
        yield
        self.current, self.issued, self.finished, self.registers = before

    def finish_dots(self, pendings: int) -> None:
        """All dots but the last `pendings` have finished."""
        self.finished = max(self.finished, self.issued - pendings)
        for serial in [each for each in self.registers if each <= self.finished]:
            del self.registers[serial]
