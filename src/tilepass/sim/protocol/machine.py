"""One execution of a recording: partitions and copies take steps in an order chosen from outside.

Accesses are judged by what is ordered, not by what happened to come first: whatever would go wrong
in an execution that synchronizes in the same way is found in this one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilepass.sim.protocol.barrier import Barrier
from tilepass.sim.protocol.events import STOPS, Clock, Event, Kind, Recording, join
from tilepass.sim.protocol.findings import (
    ParityAliasing,
    ProtocolFault,
    Stuck,
    WorkPending,
    WrongBytes,
)
from tilepass.sim.protocol.memory import Access, SharedMemory, finish

COPIES = -1
"""The thread of a trace entry that a copy's completion makes."""


@dataclass(eq=False)
class Landing:
    """A TMA load on its way; `clock` is what its issuer knew."""

    event: Event
    access: Access
    clock: Clock
    issuer: int


@dataclass
class _Queue:
    """A thread's asynchronous groups of one kind, the oldest first."""

    groups: deque[list[Access]] = field(default_factory=deque[list[Access]])
    open: list[Access] = field(default_factory=list[Access])

    def close(self) -> None:
        self.groups.append(self.open)
        self.open = []

    def wait(self, pendings: int, owner: int, time: int) -> None:
        while len(self.groups) > pendings:
            finish(self.groups.popleft(), owner, time)


_QUEUES = {Kind.DOT: "dot", Kind.STORE: "TMA store", Kind.COPY: "async copy"}
_WAITS = {Kind.DOT_WAIT: Kind.DOT, Kind.STORE_WAIT: Kind.STORE, Kind.COPY_WAIT: Kind.COPY}


class Machine:
    """The state of an execution. `landings` are the copies that may complete."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.threads = recording.threads
        count = len(recording.threads)
        self.size = count + len(recording.barriers)
        self.clocks: list[Clock] = [self._clock() for _ in range(count)]
        self.barriers = [
            Barrier(region, count + index, self._clock(), self._clock())
            for index, region in enumerate(recording.barriers)
        ]
        self.memory = SharedMemory(recording.regions, recording.fences_to_come)
        self.positions = [0] * count
        self.started = [thread == 0 for thread in range(count)]
        self.landings: list[Landing] = []
        self.loads: list[Access] = []
        self.trace: list[tuple[int, Event]] = []
        self._queues = [{kind: _Queue() for kind in _QUEUES} for _ in range(count)]
        self._act: dict[Kind, Callable[[int, Event, Clock], None]] = {
            Kind.READ: self._read,
            Kind.WRITE: self._write,
            Kind.ALLOCATE: self._write,
            Kind.FREE: self._write,
            Kind.FENCE: self._fence,
            Kind.LOAD: self._load,
            Kind.STORE: self._queued_read,
            Kind.DOT: self._queued_read,
            Kind.COPY: self._copy,
            Kind.COMMIT: self._commit,
            Kind.STORE_WAIT: self._wait_queue,
            Kind.DOT_WAIT: self._wait_queue,
            Kind.COPY_WAIT: self._wait_queue,
            Kind.INIT: self._initialize,
            Kind.INVALIDATE: self._invalidate,
            Kind.EXPECT: self._arrive,
            Kind.ARRIVE: self._arrive,
            Kind.WAIT: self._wait,
            Kind.FORK: self._fork,
            Kind.JOIN: self._join,
        }

    def start(self) -> None:
        """What comes before the first operation on a barrier. Raises ProtocolFault."""
        self._run(0)

    def next_event(self, thread: int) -> Event | None:
        """What a thread does next, None at its end."""
        events = self.threads[thread].events
        position = self.positions[thread]
        return events[position] if position < len(events) else None

    def can_go_on(self, thread: int) -> bool:
        """Whether a thread has something to do and need not wait."""
        event = self.next_event(thread)
        if event is None or not self.started[thread]:
            return False
        if event.kind is Kind.WAIT:
            barrier = self._barrier(event)
            return not barrier.valid or barrier.passes(event.amount)
        if event.kind is Kind.JOIN:
            return all(self.next_event(other) is None for other in event.threads)
        return True

    def ready(self) -> list[int]:
        """The threads that can go on."""
        return [thread for thread in range(len(self.threads)) if self.can_go_on(thread)]

    @property
    def done(self) -> bool:
        return self.next_event(0) is None

    def advance(self, thread: int) -> None:
        """One operation on a barrier, and what follows until the next one. Raises ProtocolFault."""
        self._one(thread)
        self._run(thread)

    def land(self, landing: Landing) -> None:
        """A copy completes. Raises ProtocolFault."""
        self.landings.remove(landing)
        barrier, event = self._barrier(landing.event), landing.event
        self.trace.append((COPIES, event))
        time = barrier.base + barrier.phase + 1
        finish([landing.access], barrier.number, time)
        barrier.complete(event, landing.clock)

    def conclude(self) -> None:
        """The checks at the end, or where nothing can go on. Raises ProtocolFault."""
        if not self.done:
            raise self._stuck()
        known = self._clock()
        for clock in self.clocks:
            join(known, clock)
        for access in self.loads:
            if not access.over_for(known):
                raise WorkPending("nobody waits for this copy", access.event)
        for barrier in self.barriers:
            if barrier.valid and (barrier.bytes or barrier.pending != barrier.count):
                raise WorkPending(f"the last phase of {barrier.region} has not ended: "
                                  f"{_missing(barrier)}", self._last_use(barrier))  # fmt: skip

    def _last_use(self, barrier: Barrier) -> Event | None:
        used = [event for _, event in self.trace if event.barrier == barrier.region]
        return used[-1] if used else None

    def _clock(self) -> Clock:
        return [0] * self.size

    def _barrier(self, event: Event) -> Barrier:
        return self.barriers[event.number]

    def _run(self, thread: int) -> None:
        events = self.threads[thread].events
        while (position := self.positions[thread]) < len(events):
            if events[position].kind in STOPS:
                return
            self._one(thread)
        self._finish_thread(thread)

    def _one(self, thread: int) -> None:
        event = self.threads[thread].events[self.positions[thread]]
        self.positions[thread] += 1
        self.trace.append((thread, event))
        clock = self.clocks[thread]
        clock[thread] += 1
        self._act[event.kind](thread, event, clock)

    def _finish_thread(self, thread: int) -> None:
        for kind, queue in self._queues[thread].items():
            left = [access for group in queue.groups for access in group] + queue.open
            if left:
                name = self.threads[thread].name
                raise WorkPending(f"{name} ends and does not wait for this {_QUEUES[kind]}",
                                  left[-1].event)  # fmt: skip

    def _access(self, thread: int, event: Event, time: int | None) -> Access:
        return Access(event, self.threads[thread].name, thread, time)

    def _read(self, thread: int, event: Event, clock: Clock) -> None:
        self.memory.read(self._access(thread, event, clock[thread]), clock, thread)

    def _write(self, thread: int, event: Event, clock: Clock) -> None:
        self.memory.write(self._access(thread, event, clock[thread]), clock, thread)

    def _queued_read(self, thread: int, event: Event, clock: Clock) -> None:
        access = self._access(thread, event, None)
        self.memory.read(access, clock, thread)
        self._queues[thread][event.kind].groups.append([access])

    def _copy(self, thread: int, event: Event, clock: Clock) -> None:
        access = self._access(thread, event, None)
        self.memory.write(access, clock, thread)
        self._queues[thread][Kind.COPY].open.append(access)

    def _commit(self, thread: int, event: Event, clock: Clock) -> None:
        self._queues[thread][Kind.COPY].close()

    def _fence(self, thread: int, event: Event, clock: Clock) -> None:
        self.memory.fence(thread, clock)

    def _wait_queue(self, thread: int, event: Event, clock: Clock) -> None:
        queue = self._queues[thread][_WAITS[event.kind]]
        queue.wait(event.amount, thread, clock[thread])

    def _load(self, thread: int, event: Event, clock: Clock) -> None:
        self._barrier(event).use(event, clock, thread)
        access = self._access(thread, event, None)
        self.memory.write(access, clock, thread)
        self.loads.append(access)
        self.landings.append(Landing(event, access, list(clock), thread))

    def _initialize(self, thread: int, event: Event, clock: Clock) -> None:
        self._barrier(event).initialize(event, clock, thread)

    def _invalidate(self, thread: int, event: Event, clock: Clock) -> None:
        self._barrier(event).invalidate(event, clock, thread)

    def _arrive(self, thread: int, event: Event, clock: Clock) -> None:
        barrier = self._barrier(event)
        barrier.use(event, clock, thread)
        barrier.arrive(event, clock)

    def _wait(self, thread: int, event: Event, clock: Clock) -> None:
        barrier = self._barrier(event)
        barrier.use(event, clock, thread)
        barrier.wait(event, clock, thread)

    def _fork(self, thread: int, event: Event, clock: Clock) -> None:
        for child in event.threads:
            join(self.clocks[child], clock)
            self.started[child] = True
            self._run(child)

    def _join(self, _: int, event: Event, clock: Clock) -> None:
        for child in event.threads:
            join(clock, self.clocks[child])

    def _stuck(self) -> ProtocolFault:
        waiting = [
            (index, event)
            for index in range(len(self.threads))
            if self.started[index] and (event := self.next_event(index)) is not None
        ]
        on_barriers = [event for _, event in waiting if event.kind is Kind.WAIT]
        fault = (
            self._missed(waiting)
            or self._wrong_bytes(on_barriers)
            or Stuck("all partitions wait", on_barriers[0])
        )
        for index, event in waiting:
            fault.note(f"{self.threads[index].name} waits {self._reason(event)}")
        return fault

    def _missed(self, waiting: Sequence[tuple[int, Event]]) -> ProtocolFault | None:
        for thread, event in waiting:
            if event.kind is not Kind.WAIT:
                continue
            barrier = self._barrier(event)
            seen = self.clocks[thread][barrier.number] - barrier.base
            if barrier.phase >= 2 and seen < barrier.phase - 1:
                return ParityAliasing(
                    f"this wait has missed phase {barrier.phase - 2} of {barrier.region}, which "
                    "has the same parity as the one under way, and all partitions wait",
                    event,
                )
        return None

    def _wrong_bytes(self, waits: Sequence[Event]) -> ProtocolFault | None:
        for event in waits:
            barrier = self._barrier(event)
            if barrier.bytes > 0:
                return WrongBytes(f"{barrier.bytes} bytes that {barrier.region} expects never "
                                  "arrive, and all partitions wait", event)  # fmt: skip
            if barrier.bytes < 0:
                return WrongBytes(f"{-barrier.bytes} bytes more than it expects arrive at "
                                  f"{barrier.region}, and all partitions wait", event)  # fmt: skip
        return None

    def _reason(self, event: Event) -> str:
        if event.kind is Kind.JOIN:
            return "for the other partitions to end"
        barrier = self._barrier(event)
        return (
            f"for parity {event.amount} of {barrier.region} at {event.place.location}: "
            f"phase {barrier.phase} is under way, {_missing(barrier)}"
        )


def _missing(barrier: Barrier) -> str:
    said = f"{barrier.pending} of {barrier.count} arrivals to come"
    return said + (f" and {barrier.bytes} bytes" if barrier.bytes else "")
