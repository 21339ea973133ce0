"""All schedules of a small recording, by brute force.

`Machine` judges by what is ordered and needs one execution to see what any other would show. Here
every order is tried, and only what really goes wrong in one of them counts: partitions that wait
forever, an access while another one is under way, a read or a wait that finds something else in
another order. The two check each other.

Reduction: an event that no other partition can notice goes first, alone; states met before are not
entered again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tilepass.sim.protocol.events import Event, Kind, Recording

_READS = frozenset((Kind.READ, Kind.STORE, Kind.DOT))
_WRITES = frozenset((Kind.WRITE, Kind.ALLOCATE, Kind.FREE, Kind.LOAD, Kind.COPY))
_QUEUED = {Kind.DOT: 0, Kind.STORE: 1, Kind.COPY: 2}
_WAITS = {Kind.DOT_WAIT: 0, Kind.STORE_WAIT: 1, Kind.COPY_WAIT: 2}

Observed = dict[tuple[int, int, int], object]
"""What a read found, or the phase that a wait saw: by thread, event and cell (-1 for a wait)."""


class Manifest(Exception):
    """Something went wrong in an execution."""


@dataclass(frozen=True)
class Exploration:
    """The number of states met, whether those are all, and what went wrong in one of them."""

    states: int
    complete: bool
    problem: str | None = None


class _Barrier(NamedTuple):
    """`landed` is the phase that has to end for the last copy so far to count as complete, `seen`
    the last phase that a wait saw ended."""

    valid: bool = False
    takes: int = 0
    pending: int = 0
    bytes: int = 0
    phase: int = 0
    landed: int = 0
    seen: int = 0

    def changed(self, arrivals: int, expected: int) -> _Barrier:
        """After so many arrivals and bytes."""
        pending, outstanding = self.pending - arrivals, self.bytes + expected
        if pending or outstanding:
            return self._replace(pending=pending, bytes=outstanding)
        return self._replace(pending=self.takes, bytes=0, phase=self.phase + 1)


@dataclass
class _State:
    """`queues` hold, for each thread, unfinished groups of positions: dots, stores, copies."""

    positions: list[int]
    started: list[bool]
    barriers: list[_Barrier]
    written: list[object]
    landings: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    queues: list[list[list[int]]] = field(default_factory=list[list[list[int]]])

    def copy(self) -> _State:
        queues = [[list(queue) for queue in thread] for thread in self.queues]
        return _State(
            list(self.positions), list(self.started), list(self.barriers), list(self.written),
            list(self.landings), queues,
        )  # fmt: skip

    def key(self) -> tuple[object, ...]:
        return (
            tuple(self.positions),
            tuple(sorted(self.landings)),
            tuple(self.barriers),
            tuple(self.written),
        )


Move = tuple[int, int]
"""(thread, position) of the event to do, or of the load that completes, with -1 - thread."""


def explore(recording: Recording, limit: int) -> Exploration:
    """Try all schedules until something goes wrong or `limit` states were met."""
    search = _Search(recording)
    start = search.start()
    met, waiting = {start.key()}, [start]
    while waiting:
        state = waiting.pop()
        try:
            for following in search.following(state):
                if (key := following.key()) not in met:
                    met.add(key)
                    waiting.append(following)
        except Manifest as problem:
            return Exploration(len(met), False, str(problem))
        if len(met) > limit:
            return Exploration(len(met), False)
    return Exploration(len(met), True)


class _Search:
    def __init__(self, recording: Recording) -> None:
        self._threads = [thread.events for thread in recording.threads]
        self._names = [thread.name for thread in recording.threads]
        self._cells, self._barriers = len(recording.regions), len(recording.barriers)
        self._observed: Observed = {}
        users: dict[int, set[int]] = {}
        for thread, events in enumerate(self._threads):
            for event in events:
                for cell in event.cells:
                    users.setdefault(cell, set()).add(thread)
        self._shared = {cell for cell, threads in users.items() if len(threads) > 1}
        self._share_queue = [
            [self._notices(thread, kind) for kind in _QUEUED]
            for thread in range(len(self._threads))
        ]

    def start(self) -> _State:
        count = len(self._threads)
        return _State(
            [0] * count,
            [thread == 0 for thread in range(count)],
            [_Barrier() for _ in range(self._barriers)],
            [None] * self._cells,
            queues=[[[] for _ in _QUEUED] for _ in range(count)],
        )

    def following(self, state: _State) -> Iterator[_State]:
        """The states one step on. Raises Manifest."""
        ready = [thread for thread in range(len(self._threads)) if self._can_go_on(state, thread)]
        if not ready and not state.landings:
            self._conclude(state)
            return
        self._check_together(state, ready)
        alone = next((thread for thread in ready if self._unnoticed(state, thread)), None)
        for thread in ready if alone is None else [alone]:
            following = state.copy()
            self._advance(following, thread)
            yield following
        if alone is None:
            for landing in state.landings:
                following = state.copy()
                self._land(following, landing)
                yield following

    def _next(self, state: _State, thread: int) -> Event | None:
        events, position = self._threads[thread], state.positions[thread]
        return events[position] if position < len(events) else None

    def _can_go_on(self, state: _State, thread: int) -> bool:
        event = self._next(state, thread)
        if event is None or not state.started[thread]:
            return False
        if event.kind is Kind.WAIT:
            barrier = state.barriers[event.number]
            return not barrier.valid or barrier.phase & 1 != event.amount
        if event.kind is Kind.JOIN:
            return all(self._next(state, other) is None for other in event.threads)
        return True

    def _notices(self, thread: int, kind: Kind) -> bool:
        """Whether another partition touches what this one's asynchronous work of a kind does."""
        return any(
            event.kind is kind and not self._shared.isdisjoint(event.cells)
            for event in self._threads[thread]
        )

    def _unnoticed(self, state: _State, thread: int) -> bool:
        event = self._next(state, thread)
        assert event is not None
        if event.kind in _WAITS:
            return not self._share_queue[thread][_WAITS[event.kind]]
        if event.kind in (Kind.FENCE, Kind.COMMIT, Kind.FORK):
            return True
        return (
            event.number < 0
            and event.kind is not Kind.JOIN
            and self._shared.isdisjoint(event.cells)
        )

    def _check_together(self, state: _State, ready: list[int]) -> None:
        """Two partitions about to access the same memory, one of them to write."""
        touched: dict[int, tuple[int, bool]] = {}
        for thread in ready:
            event = self._next(state, thread)
            assert event is not None
            for cell in event.cells:
                writes = event.kind in _WRITES
                other = touched.setdefault(cell, (thread, writes))
                if other[0] != thread and (writes or other[1]):
                    raise Manifest(f"race: {self._names[other[0]]} and {self._names[thread]} at "
                                   f"{event.place}")  # fmt: skip

    def _advance(self, state: _State, thread: int) -> None:
        position = state.positions[thread]
        event = self._threads[thread][position]
        state.positions[thread] += 1
        if event.kind in _READS:
            self._read(state, thread, position, event)
        if event.kind in _WRITES:
            self._write(state, thread, position, event)
        if event.kind in _QUEUED:
            state.queues[thread][_QUEUED[event.kind]].append(position)
        elif event.kind in _WAITS:
            self._wait_queue(state, thread, event)
        elif event.kind is Kind.LOAD:
            self._valid(state, event)
            state.landings.append((thread, position))
        elif event.kind is Kind.FORK:
            for child in event.threads:
                state.started[child] = True
        elif event.number >= 0:
            self._on_barrier(state, thread, position, event)

    def _wait_queue(self, state: _State, thread: int, event: Event) -> None:
        queue = state.queues[thread][_WAITS[event.kind]]
        if event.kind is not Kind.COPY_WAIT:
            del queue[: max(0, len(queue) - event.amount)]
            return
        # Groups of copies end with a commit; those behind the last `amount` of them stay.
        events = self._threads[thread]
        commits = [at for at in range(state.positions[thread]) if events[at].kind is Kind.COMMIT]
        last = commits[-1 - event.amount] if len(commits) > event.amount else -1
        queue[:] = [position for position in queue if position > last]

    def _under_way(self, state: _State, kinds: frozenset[Kind]) -> Iterator[Event]:
        for thread, queues in enumerate(state.queues):
            for queue in queues:
                for position in queue:
                    event = self._threads[thread][position]
                    if event.kind in kinds:
                        yield event
        if Kind.LOAD in kinds:
            for thread, position in state.landings:
                yield self._threads[thread][position]

    def _require_free(self, state: _State, event: Event, kinds: frozenset[Kind]) -> None:
        for other in self._under_way(state, kinds):
            if not set(other.cells).isdisjoint(event.cells):
                raise Manifest(f"race: {event.place} while {other.place} is under way")

    def _read(self, state: _State, thread: int, position: int, event: Event) -> None:
        self._require_free(state, event, _WRITES)
        for cell in event.cells:
            found = state.written[cell]
            if found is None:
                raise Manifest(f"unwritten memory is read: {event.place}")
            self._observe((thread, position, cell), found, f"{event.place} reads")

    def _write(self, state: _State, thread: int, position: int, event: Event) -> None:
        self._require_free(state, event, _WRITES | _READS)
        nothing = event.kind in (Kind.ALLOCATE, Kind.FREE)
        for cell in event.cells:
            state.written[cell] = None if nothing else (thread, position)

    def _observe(self, where: tuple[int, int, int], what: object, said: str) -> None:
        if self._observed.setdefault(where, what) != what:
            raise Manifest(f"race: {said} something else in another order")

    def _valid(self, state: _State, event: Event) -> _Barrier:
        barrier = state.barriers[event.number]
        if not barrier.valid:
            raise Manifest(f"{event.place}: {event.barrier} is not initialized")
        return barrier

    def _on_barrier(self, state: _State, thread: int, position: int, event: Event) -> None:
        barrier = state.barriers[event.number]
        if event.kind is Kind.INIT:
            if barrier.valid:
                raise Manifest(f"{event.place}: {event.barrier} is initialized while in use")
            state.barriers[event.number] = _Barrier(True, event.amount, event.amount)
            return
        self._valid(state, event)
        if event.kind is Kind.INVALIDATE:
            state.barriers[event.number] = barrier._replace(valid=False)
        elif event.kind is Kind.WAIT:
            self._observe((thread, position, -1), barrier.phase, f"{event.place} sees")
            state.barriers[event.number] = barrier._replace(seen=barrier.phase)
        else:
            count = 1 if event.kind is Kind.EXPECT else event.amount
            if count > barrier.pending:
                raise Manifest(f"too many arrivals: {event.place}")
            expected = event.amount if event.kind is Kind.EXPECT else 0
            state.barriers[event.number] = barrier.changed(count, expected)

    def _land(self, state: _State, landing: tuple[int, int]) -> None:
        state.landings.remove(landing)
        event = self._threads[landing[0]][landing[1]]
        barrier = self._valid(state, event)
        landed = barrier._replace(landed=barrier.phase + 1)
        state.barriers[event.number] = landed.changed(0, -event.amount)

    def _conclude(self, state: _State) -> None:
        unfinished = [
            self._names[thread]
            for thread in range(len(self._threads))
            if state.started[thread] and self._next(state, thread) is not None
        ]
        if unfinished:
            raise Manifest(f"deadlock: {', '.join(unfinished)} wait")
        if any(queue for queues in state.queues for queue in queues):
            raise Manifest("work left pending")
        for barrier in state.barriers:
            if barrier.valid and (barrier.pending != barrier.takes or barrier.bytes):
                raise Manifest("work left pending: a barrier within a phase")
            if barrier.valid and barrier.landed > barrier.seen:
                raise Manifest("work left pending: a copy that nobody waits for")
