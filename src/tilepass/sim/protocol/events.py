"""What partitions do that another partition, or an asynchronous unit, can notice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from tilepass.core.diagnostics import SourceLocation

Box = tuple[tuple[int, int], ...]
"""(first, end) for each dimension of an allocation."""


class Kind(Enum):
    """The kinds of events; `amount` says what an event's number counts."""

    READ = auto()
    WRITE = auto()
    ALLOCATE = auto()
    FREE = auto()
    FENCE = auto()
    LOAD = auto()
    """A TMA load into shared memory; `amount` bytes complete at the barrier."""
    STORE = auto()
    """A TMA store out of shared memory; a separate bulk group."""
    STORE_WAIT = auto()
    DOT = auto()
    """A wgmma group that reads shared memory until it is waited for."""
    DOT_WAIT = auto()
    COPY = auto()
    """A `cp.async` into shared memory."""
    COMMIT = auto()
    COPY_WAIT = auto()
    INIT = auto()
    INVALIDATE = auto()
    EXPECT = auto()
    ARRIVE = auto()
    WAIT = auto()
    """Wait for the phase of parity `amount`."""
    FORK = auto()
    JOIN = auto()


BARRIER_KINDS = frozenset((Kind.INIT, Kind.INVALIDATE, Kind.EXPECT, Kind.ARRIVE, Kind.WAIT))
STOPS = BARRIER_KINDS | {Kind.FORK, Kind.JOIN}
"""Between these, what a partition does changes no other partition's way."""


@dataclass(frozen=True)
class Place:
    """An operation of the module."""

    operation: str
    location: SourceLocation | None

    def __str__(self) -> str:
        return f"{self.operation} at {self.location}" if self.location else self.operation


@dataclass(frozen=True)
class Memory:
    """An allocation in shared memory: one for each operation that allocates. It begins at a
    multiple of `alignment` bytes."""

    label: str
    shape: tuple[int, ...]
    element: str
    place: Place
    alignment: int

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"{self.label} = {shape}x{self.element}, {self.place}"


@dataclass(frozen=True)
class Region:
    """A box of an allocation."""

    memory: Memory
    box: Box

    def __str__(self) -> str:
        parts = [
            str(first) if end == first + 1 else f"{first}:{end}"
            for (first, end), size in zip(self.box, self.memory.shape, strict=True)
            if (first, end) != (0, size)
        ]
        return f"{self.memory.label}[{','.join(parts)}]" if parts else self.memory.label


@dataclass(slots=True, eq=False)
class Event:
    """One thing that a partition does. `cells` and `number` are set when recording ends."""

    kind: Kind
    place: Place
    regions: tuple[Region, ...] = ()
    barrier: Region | None = None
    amount: int = 0
    threads: tuple[int, ...] = ()
    cells: tuple[int, ...] = ()
    number: int = -1
    """The barrier's number."""

    def __str__(self) -> str:
        said = f" of {self.barrier}" if self.barrier else ""
        touched = f" {', '.join(map(str, self.regions))}" if self.regions else ""
        return f"{self.place.operation}{touched}{said}{_NOTES.get(self.kind, '')}".format(
            amount=self.amount
        )


_NOTES = {
    Kind.LOAD: " ({amount} bytes)",
    Kind.STORE_WAIT: " ({amount} pending)",
    Kind.DOT_WAIT: " ({amount} pending)",
    Kind.COPY_WAIT: " ({amount} pending)",
    Kind.INIT: " (count {amount})",
    Kind.EXPECT: " ({amount} bytes)",
    Kind.ARRIVE: " (count {amount})",
    Kind.WAIT: " (parity {amount})",
}


@dataclass
class Thread:
    """A partition's events in program order. Thread 0 is the default partition and what surrounds
    the specialized region; the others exist from the FORK that names them on."""

    name: str
    events: list[Event] = field(default_factory=list[Event])


@dataclass
class Recording:
    """What one program of a grid does."""

    threads: Sequence[Thread]
    regions: Sequence[Region]
    """For each cell of shared memory a region that holds it, for messages."""
    barriers: Sequence[Region]
    memories: Sequence[Memory]
    fences_to_come: bool
    """Whether Triton has yet to put fences between a partition's writes and its dots."""


Clock = list[int]
"""What has certainly happened: the number of things, by component."""


def join(into: Clock, other: Clock) -> None:
    """Learn what `other` knows."""
    into[:] = map(max, into, other)
