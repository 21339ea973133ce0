"""The protocol's rules on programs made by hand: each side of every limit, and what is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.test_sim_protocol_rules import (
    BUFFER,
    EVER,
    RING,
    around,
    cell,
    event,
    initialized,
    mbarrier,
    recording,
)
from tilepass.core.diagnostics import SourceLocation
from tilepass.ir.engine import parse
from tilepass.sim.faults import Fault, OutOfBounds, SimulatorFailure, StepLimit, UndefinedBehaviour
from tilepass.sim.inputs import Shapes
from tilepass.sim.protocol import check as checking
from tilepass.sim.protocol import compiler as compiling
from tilepass.sim.protocol.check import Finding, Outcome, check, execute, find, run_random
from tilepass.sim.protocol.compiler import ProtocolProgram, number_cells, record
from tilepass.sim.protocol.events import Event, Kind, Memory, Place, Recording, Region, Thread
from tilepass.sim.protocol.findings import (
    BarrierMisuse,
    MissingFence,
    ParityAliasing,
    ProtocolFault,
    Race,
    Stuck,
    Unwritten,
    WorkPending,
    WrongBytes,
)
from tilepass.sim.protocol.machine import COPIES, Machine
from tilepass.sim.protocol.memory import Access, SharedMemory, finish
from tilepass.sim.protocol.problems import Problem
from tilepass.sim.protocol.recorder import UNKNOWN, CannotFollow, TooLong

# ---- shared memory -------------------------------------------------------------------------------

KNOWS = [EVER, EVER, EVER]
WRITER, READER = 0, 1


def memory(*fences_to_come: bool) -> SharedMemory:
    """Fences are asked for unless one says that they are to come."""
    return SharedMemory([cell(0), cell(1)], *fences_to_come)


def access(kind: Kind, owner: int = WRITER, time: int | None = 5, place: int = 0) -> Access:
    return Access(event(kind, place), f"partition {owner}", owner, time)


def test_reads_of_what_nobody_wrote() -> None:
    for before, said in (
        (None, "buffer[0], which nobody wrote"),
        (Kind.ALLOCATE, "buffer[0], which nobody wrote"),
        (Kind.FREE, "buffer[0] was freed at None"),
    ):
        shared = memory()
        if before:
            shared.write(access(before), KNOWS, WRITER)
        with pytest.raises(Unwritten) as caught:
            shared.read(access(Kind.READ, READER), KNOWS, READER)
        assert caught.value.message == f"read of unwritten memory: {said}"
        shared.write(access(Kind.WRITE, place=1), KNOWS, WRITER)
        with pytest.raises(Unwritten):
            shared.read(access(Kind.READ, READER), KNOWS, READER)


@pytest.mark.parametrize("time", [5, None])
@pytest.mark.parametrize("knows", [4, 5, 6])
@pytest.mark.parametrize(
    ("first", "then", "verb", "done"),
    [
        (Kind.WRITE, Kind.READ, "reads", "written"),
        (Kind.WRITE, Kind.WRITE, "writes", "written"),
        (Kind.WRITE, Kind.FREE, "frees", "written"),
        (Kind.WRITE, Kind.ALLOCATE, "allocates", "written"),
        (Kind.READ, Kind.WRITE, "writes", "read"),
        (Kind.READ, Kind.LOAD, "writes", "read"),
    ],
)
def test_accesses_that_nothing_orders(
    first: Kind, then: Kind, verb: str, done: str, knows: int, time: int | None
) -> None:
    shared = memory()
    if first is Kind.READ:
        shared.write(access(Kind.WRITE, time=1), KNOWS, WRITER)
        shared.read(access(Kind.READ, time=time), KNOWS, WRITER)
    else:
        shared.write(access(first, time=time), KNOWS, WRITER)
    clock = [knows, 9, 0]
    shared.fence(WRITER, [5, 0, 0])
    step = shared.read if then is Kind.READ else shared.write
    if time is not None and knows >= time:
        step(access(then, READER, 9), clock, READER)
        return
    with pytest.raises(Race) as caught:
        step(access(then, READER, 9), clock, READER)
    other = "test.event (partition 0)"
    how = f"which may still be {done} by {other}" if time is None else (
        f"and nothing orders that with {other}, by which it is {done}")  # fmt: skip
    assert caught.value.message == f"race: {verb} buffer[0], {how}"


def test_each_reader_and_kind_of_read_is_waited_for() -> None:
    for late in range(4):
        shared = memory()
        shared.write(access(Kind.WRITE, time=1), KNOWS, WRITER)
        shared.fence(WRITER, KNOWS)
        readers = ((WRITER, Kind.READ), (WRITER, Kind.STORE), (READER, Kind.READ),
                   (READER, Kind.STORE))  # fmt: skip
        for number, (thread, kind) in enumerate(readers):
            time = None if number == late else 3
            shared.read(access(kind, thread, time), KNOWS, thread)
        with pytest.raises(Race, match="may still be read by"):
            shared.write(access(Kind.WRITE, 2, 9), KNOWS, 2)
    # A second read of a partition takes the place of its first, a write that of all.
    shared = memory()
    shared.write(access(Kind.WRITE, time=1), KNOWS, WRITER)
    for time in (2, 3):
        shared.read(access(Kind.READ, READER, time), KNOWS, READER)
    shared.write(access(Kind.WRITE, 2, 7), [1, 3, 0], 2)
    shared.write(access(Kind.WRITE, 2, 8), [0, 0, 7], 2)


def test_write_to_what_was_freed() -> None:
    for kind in (Kind.WRITE, Kind.LOAD, Kind.COPY, Kind.FREE, Kind.ALLOCATE):
        shared = memory()
        shared.write(access(Kind.WRITE), KNOWS, WRITER)
        shared.fence(WRITER, KNOWS)
        shared.write(access(Kind.FREE), KNOWS, WRITER)
        if kind is Kind.ALLOCATE:
            shared.write(access(kind), KNOWS, WRITER)
            shared.write(access(Kind.WRITE), KNOWS, WRITER)
            continue
        with pytest.raises(Race) as caught:
            shared.write(access(kind), KNOWS, WRITER)
        assert caught.value.message == "race: writes buffer[0], which was freed at None"


_READ_FENCE = (
    "missing fence: no fence_async_shared between this read of buffer[0] and the write by "
    "test.event (partition 0)"
)


@pytest.mark.parametrize("fences_to_come", [False, True])
@pytest.mark.parametrize("kind", [Kind.DOT, Kind.STORE, Kind.READ])
@pytest.mark.parametrize("reader", [WRITER, READER])
def test_fence_between_a_write_and_an_asynchronous_read(
    fences_to_come: bool, kind: Kind, reader: int
) -> None:
    shared = memory(fences_to_come)
    shared.write(access(Kind.WRITE), KNOWS, WRITER)
    own = kind is Kind.DOT and reader == WRITER
    if kind is Kind.READ or (own and fences_to_come):
        shared.read(access(kind, reader), KNOWS, reader)
        return
    with pytest.raises(MissingFence) as caught:
        shared.read(access(kind, reader), KNOWS, reader)
    assert caught.value.message == _READ_FENCE
    assert [note.partition(" before")[0] for note in caught.value.notes] == [
        "Triton puts such fences"
    ] * own
    shared.fence(WRITER, [5, 0, 0])
    shared.read(access(kind, reader), KNOWS, reader)


def test_fences_are_asked_for() -> None:
    shared = memory()
    shared.write(access(Kind.WRITE), KNOWS, WRITER)
    with pytest.raises(MissingFence):
        shared.read(access(Kind.DOT), KNOWS, WRITER)


def test_writes_by_units_need_no_fence_before_they_are_read() -> None:
    for kind in (Kind.LOAD, Kind.COPY):
        shared = memory()
        shared.write(access(kind), KNOWS, WRITER)
        shared.read(access(Kind.STORE, READER), KNOWS, READER)


def test_fence_counts_for_who_knows_of_it_and_of_what_its_issuer_knew() -> None:
    for fence, knows, enough in (
        # (the clock of who fences: of partition 1, of which it is event 7), who reads knows so much
        ([5, 7, 0], 7, True),
        ([5, 7, 0], 8, True),
        ([5, 7, 0], 6, False),
        ([6, 7, 0], 7, True),
        ([4, 7, 0], 7, False),
    ):
        shared = memory()
        shared.write(access(Kind.WRITE), KNOWS, WRITER)
        shared.fence(1, fence)
        read = access(Kind.DOT, 2)
        if enough:
            shared.read(read, [EVER, knows, 0], 2)
        else:
            with pytest.raises(MissingFence):
                shared.read(read, [EVER, knows, 0], 2)


def test_any_of_several_fences_counts_but_the_writers_own_closes_the_matter() -> None:
    shared = memory()
    shared.write(access(Kind.WRITE), KNOWS, WRITER)
    shared.fence(1, [5, 7, 0])
    shared.fence(2, [5, 0, 9])
    for clock in ([EVER, 7, 0], [EVER, 0, 9]):
        shared.read(access(Kind.DOT, 2), clock, 2)
    with pytest.raises(MissingFence):
        shared.read(access(Kind.DOT, 2), [EVER, 6, 8], 2)
    # Another partition's write is still to be fenced when one has fenced its own.
    shared = memory()
    shared.write(access(Kind.WRITE, place=0), KNOWS, WRITER)
    shared.write(access(Kind.WRITE, READER, place=1), KNOWS, READER)
    shared.fence(WRITER, [5, 0, 0])
    shared.fence(READER, [0, 5, 0])
    shared.read(access(Kind.DOT, 2, place=0), KNOWS, 2)
    shared.read(access(Kind.DOT, 2, place=1), KNOWS, 2)


@pytest.mark.parametrize("loader", [WRITER, READER])
@pytest.mark.parametrize("fenced", [False, True])
@pytest.mark.parametrize("kind", [Kind.WRITE, Kind.READ, Kind.DOT, Kind.STORE, Kind.COPY])
def test_fence_between_accesses_by_threads_and_a_load(
    kind: Kind, fenced: bool, loader: int
) -> None:
    shared = memory()
    if kind in (Kind.WRITE, Kind.COPY):
        shared.write(access(kind), KNOWS, WRITER)
    else:
        shared.write(access(Kind.LOAD), KNOWS, WRITER)
        shared.read(access(kind), KNOWS, WRITER)
    if fenced:
        shared.fence(WRITER, [5, 0, 0])
    load = access(Kind.LOAD, loader, None)
    if kind in (Kind.WRITE, Kind.READ) and not fenced and loader != WRITER:
        with pytest.raises(MissingFence) as caught:
            shared.write(load, KNOWS, loader)
        did = "read" if kind is Kind.READ else "write"
        assert caught.value.message == (
            "missing fence: no fence_async_shared between this write of buffer[0] and the "
            f"{did} by test.event (partition 0)"
        )
    else:
        shared.write(load, KNOWS, loader)


def test_first_write_of_a_load_needs_nothing_before() -> None:
    shared = memory()
    shared.write(access(Kind.LOAD, READER, None), KNOWS, READER)
    # What is written by another kind of write than a load needs no fence.
    shared = memory()
    shared.write(access(Kind.WRITE), KNOWS, WRITER)
    shared.write(access(Kind.COPY, READER), KNOWS, READER)


def test_finished_accesses_are_over_for_who_knows() -> None:
    pending = [access(Kind.STORE, 0, None), access(Kind.DOT, 0, None)]
    assert not any(each.over_for(KNOWS) for each in pending)
    finish(pending, 2, 7)
    for each in pending:
        assert each.over_for([0, 0, 7])
        assert each.over_for([0, 0, 8])
        assert not each.over_for([9, 9, 6])


# ---- barriers ------------------------------------------------------------------------------------


def test_numbers_of_a_barrier_go_on_from_one_initialization_to_the_next() -> None:
    barrier, clock = initialized(1)
    first = barrier.base
    for _ in range(3):
        clock[barrier.number] = EVER
        barrier.arrive(event(Kind.ARRIVE, barrier=0, amount=1), clock)
    barrier.invalidate(event(Kind.INVALIDATE, barrier=0), [EVER, EVER, EVER], 0)
    barrier.initialize(event(Kind.INIT, barrier=0, amount=2), [EVER, EVER, EVER], 0)
    assert (first, barrier.base) == (2, 7)


def test_copy_counts_as_complete_with_the_phase_that_it_is_in() -> None:
    for phases in range(3):
        barrier, clock = initialized(1)
        for _ in range(phases):
            clock[barrier.number] = EVER
            barrier.arrive(event(Kind.ARRIVE, barrier=0, amount=1), clock)
        barrier.arrive(event(Kind.EXPECT, barrier=0, amount=8), [0, 0, EVER])
        assert barrier.phase == phases
        barrier.complete(event(Kind.LOAD, barrier=0, amount=8), [0, 0, EVER])
        assert barrier.landing == barrier.base + phases + 1
        assert barrier.phase == phases + 1
        assert barrier.released[barrier.number] == barrier.base + phases + 1


@pytest.mark.parametrize(
    ("count", "amounts", "kind", "known"),
    [
        (1, (1,), Kind.ARRIVE, 3),
        (2, (2,), Kind.ARRIVE, 3),
        (2, (1, 1), Kind.ARRIVE, 0),
        (1, (0,), Kind.EXPECT, 0),
    ],
)
def test_who_arrives_alone_knows_that_the_phase_has_ended(
    count: int, amounts: tuple[int, ...], kind: Kind, known: int
) -> None:
    barrier, _ = initialized(count)
    clock = [4, 4, 0]
    for amount in amounts:
        barrier.arrive(event(kind, barrier=0, amount=amount), clock)
    assert (barrier.phase, clock[barrier.number]) == (1, known)


# ---- the machine ---------------------------------------------------------------------------------


def at(line: int) -> Place:
    return Place("test.event", SourceLocation("kernel.py", line, 1))


def placed(step: Event, line: int) -> Event:
    return Event(step.kind, at(line), step.regions, step.barrier, step.amount, step.threads,
                 step.cells, step.number)  # fmt: skip


def fault_of(*threads: Sequence[Event]) -> ProtocolFault | None:
    lines = [[placed(step, 100 * index + number) for number, step in enumerate(steps)]
             for index, steps in enumerate(threads)]  # fmt: skip
    return run_random(recording(*lines), 0).fault


def said(fault: ProtocolFault | None) -> tuple[type, str, int]:
    assert fault is not None
    assert fault.location is not None
    return type(fault), fault.message.partition(": ")[2], fault.location.line


INIT = event(Kind.INIT, barrier=0, amount=2)
ARRIVE = event(Kind.ARRIVE, barrier=0, amount=1)
EXPECT = event(Kind.EXPECT, barrier=0, amount=8)
LOAD = event(Kind.LOAD, 0, 0, 8)
ALLOCATE = event(Kind.ALLOCATE, 0)
FORK, JOIN = event(Kind.FORK, threads=(1,)), event(Kind.JOIN, threads=(1,))


def wait(parity: int = 0, barrier: int = 0) -> Event:
    return event(Kind.WAIT, barrier=barrier, amount=parity)


@pytest.mark.parametrize(
    ("steps", "kind", "text", "line"),
    [
        ([INIT, ARRIVE], WorkPending,
         "the last phase of ring[0] has not ended: 1 of 2 arrivals to come", 1),
        ([INIT, event(Kind.INIT, barrier=1, amount=1), EXPECT, FORK], WorkPending,
         "the last phase of ring[0] has not ended: 1 of 2 arrivals to come and 8 bytes", 2),
        ([INIT, EXPECT, ARRIVE], WorkPending,
         "the last phase of ring[0] has not ended: 0 of 2 arrivals to come and 8 bytes", 2),
        ([ALLOCATE, INIT, ARRIVE, EXPECT, LOAD], WorkPending, "nobody waits for this copy", 4),
        ([ALLOCATE, event(Kind.COPY, 0), event(Kind.COMMIT)], WorkPending,
         "partition 0 ends and does not wait for this async copy", 1),
        ([ALLOCATE, event(Kind.COPY, 0)], WorkPending,
         "partition 0 ends and does not wait for this async copy", 1),
        ([event(Kind.WRITE, 0), event(Kind.FENCE), event(Kind.STORE, 0)], WorkPending,
         "partition 0 ends and does not wait for this TMA store", 2),
        ([event(Kind.WRITE, 0), event(Kind.FENCE), event(Kind.DOT, 0), event(Kind.DOT, 0)],
         WorkPending, "partition 0 ends and does not wait for this dot", 3),
        ([INIT, wait()], Stuck, "all partitions wait", 1),
        ([INIT, FORK, JOIN], Stuck, "all partitions wait", 100),
        ([ALLOCATE, INIT, ARRIVE, EXPECT, wait()], WrongBytes,
         "8 bytes that ring[0] expects never arrive, and all partitions wait", 4),
        ([ALLOCATE, INIT, ARRIVE, event(Kind.EXPECT, barrier=0, amount=1), wait()], WrongBytes,
         "1 bytes that ring[0] expects never arrive, and all partitions wait", 4),
        ([ALLOCATE, INIT, ARRIVE, EXPECT, event(Kind.LOAD, 0, 0, 9), wait()], WrongBytes,
         "1 bytes more than it expects arrive at ring[0], and all partitions wait", 5),
        ([ALLOCATE, INIT, ARRIVE, LOAD, wait()], WrongBytes,
         "8 bytes more than it expects arrive at ring[0], and all partitions wait", 4),
    ],
)  # fmt: skip
def test_what_is_wrong_at_the_end(
    steps: list[Event], kind: type[ProtocolFault], text: str, line: int
) -> None:
    other = [wait()] if JOIN in steps else []
    assert said(fault_of(steps, other)) == (kind, text, line)


def test_of_several_waits_the_first_is_named() -> None:
    other = event(Kind.INIT, barrier=1, amount=1)
    fault = fault_of([INIT, other, FORK, wait()], [wait(barrier=1)])
    assert said(fault) == (Stuck, "all partitions wait", 3)


def test_a_load_uses_its_barrier_behind_the_initialization() -> None:
    both = recording([ALLOCATE, FORK, INIT, ARRIVE, EXPECT, JOIN], [LOAD])
    for seed in range(20):
        assert isinstance(run_random(both, seed).fault, BarrierMisuse)


def test_what_ends_well() -> None:
    for steps in (
        [INIT, ARRIVE, ARRIVE],
        [INIT, ARRIVE, event(Kind.INIT, barrier=1, amount=1), ARRIVE],
        [ALLOCATE, INIT, ARRIVE, EXPECT, LOAD, wait()],
        [ALLOCATE, event(Kind.COPY, 0), event(Kind.COMMIT), event(Kind.COPY_WAIT)],
        [event(Kind.WRITE, 0), event(Kind.FENCE), event(Kind.STORE, 0), event(Kind.STORE_WAIT)],
        [event(Kind.WRITE, 0), event(Kind.FENCE), event(Kind.DOT, 0), event(Kind.DOT_WAIT)],
    ):
        assert fault_of(steps) is None
    # A phase that had begun does not matter once the barrier is invalid.
    done = [INIT, ARRIVE, event(Kind.INVALIDATE, barrier=0)]
    assert fault_of(done) is None


@pytest.mark.parametrize(("kind", "waits"), [
    (Kind.STORE, Kind.STORE_WAIT), (Kind.DOT, Kind.DOT_WAIT), (Kind.COPY, Kind.COPY_WAIT),
])  # fmt: skip
@pytest.mark.parametrize("pending", [0, 1, 2])
def test_waiting_leaves_the_youngest_groups_pending(kind: Kind, waits: Kind, pending: int) -> None:
    """Of two, each of its own cell: what is over may be written."""
    for place in (0, 1):
        steps = [event(Kind.WRITE, 0), event(Kind.WRITE, 1), event(Kind.FENCE)]
        for each in (0, 1):
            steps.append(event(kind, each))
            steps += [event(Kind.COMMIT)] if kind is Kind.COPY else []
        steps += [event(waits, amount=pending), event(Kind.WRITE, place), event(waits)]
        fault = fault_of(steps)
        over = place < 2 - pending
        assert (fault is None) == over, fault
        assert over or isinstance(fault, Race)


def test_partitions_that_wait_are_named() -> None:
    """Those that have not begun, and those that have ended, are not."""
    fault = fault_of([INIT, wait(), FORK], [wait(1)])
    assert fault is not None
    assert fault.notes == [
        "partition 0 waits for parity 0 of ring[0] at kernel.py:1:1: phase 0 is under way, "
        "2 of 2 arrivals to come"
    ]
    fault = fault_of([INIT, FORK, JOIN], [ARRIVE, EXPECT, wait()])
    assert fault is not None
    assert fault.notes == [
        "partition 0 waits for the other partitions to end",
        "partition 1 waits for parity 0 of ring[0] at kernel.py:102:1: phase 0 is under way, "
        "0 of 2 arrivals to come and 8 bytes",
    ]
    both = event(Kind.FORK, threads=(1, 2)), event(Kind.JOIN, threads=(1, 2))
    fault = fault_of([INIT, *both], [ARRIVE], [wait()])
    assert fault is not None
    assert [note.partition(" waits")[0] for note in fault.notes] == ["partition 0", "partition 2"]


@pytest.mark.parametrize("phase", range(5))
def test_wait_misses_the_phase_of_which_it_does_not_know(phase: int) -> None:
    for seen in range(phase + 1):
        machine = Machine(recording([INIT, wait(phase & 1)]))
        machine.start()
        machine.advance(0)
        barrier = machine.barriers[0]
        barrier.phase = phase
        machine.clocks[0][barrier.number] = barrier.base + seen
        missed = phase >= 2 and seen < phase - 1
        with pytest.raises(ParityAliasing if missed else Stuck) as caught:
            machine.conclude()
        text = f"this wait has missed phase {phase - 2} of ring[0]"
        assert caught.value.message.startswith(f"parity aliasing: {text}") == missed


def test_join_waits_for_all_and_learns_from_all() -> None:
    fork, join = event(Kind.FORK, threads=(1, 2)), event(Kind.JOIN, threads=(1, 2))
    program = recording(
        [event(Kind.WRITE, 0), INIT, fork, join, event(Kind.WRITE, 1)],
        [event(Kind.READ, 0), ARRIVE, event(Kind.WRITE, 1)],
        [ARRIVE, event(Kind.READ, 0)],
    )
    machine = Machine(program)
    assert (machine.started, machine.done) == ([True, False, False], False)
    machine.start()
    assert (machine.positions, machine.ready()) == ([1, 0, 0], [0])
    machine.advance(0)
    machine.advance(0)
    # Partitions go on up to their first operation on a barrier; joining waits for both.
    assert (machine.positions, machine.ready()) == ([3, 1, 0], [1, 2])
    machine.advance(2)
    assert (machine.positions, machine.ready()) == ([3, 1, 2], [1])
    machine.advance(1)
    assert machine.ready() == [0]
    machine.advance(0)
    assert (machine.ready(), machine.done) == ([], True)
    machine.conclude()
    assert [thread for thread, _ in machine.trace] == [0, 0, 0, 1, 2, 2, 1, 1, 0, 0]
    assert machine.clocks == [[5, 3, 2, 0, 0], [3, 3, 0, 0, 0], [3, 0, 2, 0, 0]]


def test_wait_at_a_barrier_that_is_not_valid_goes_on_and_fails() -> None:
    program = recording([wait(), event(Kind.FREE, 0)])
    machine = Machine(program)
    assert machine.ready() == [0]
    with pytest.raises(ProtocolFault, match="is not initialized"):
        machine.advance(0)
    machine = Machine(recording([INIT, wait(), wait(1)]))
    machine.start()
    machine.advance(0)
    assert machine.ready() == []
    machine.barriers[0].phase = 1
    assert machine.ready() == [0]


def test_copy_that_lands() -> None:
    machine = Machine(recording([ALLOCATE, INIT, ARRIVE, EXPECT, LOAD, wait()]))
    machine.start()
    for _ in range(3):
        machine.advance(0)
    (landing,), barrier = machine.landings, machine.barriers[0]
    assert landing.clock == [5, 0, 0]
    assert (landing.issuer, landing.access.time) == (0, None)
    assert machine.ready() == []
    machine.land(landing)
    assert (machine.landings, machine.ready()) == ([], [0])
    assert machine.trace[-1] == (COPIES, landing.event)
    assert (landing.access.owner, landing.access.time) == (barrier.number, barrier.base + 1)
    machine.advance(0)
    machine.conclude()


# ---- schedules -----------------------------------------------------------------------------------


class _Chooses:
    """Says what comes next, and what was asked."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number

    def choice(self, among: Sequence[object]) -> object:
        return among[-1]


class _Steps:
    def __init__(self, ready: list[int], landings: list[str]) -> None:
        self._ready = ready
        self.landings = landings
        self.did = ""

    def ready(self) -> list[int]:
        return self._ready

    def advance(self, thread: int) -> None:
        self.did = f"thread {thread}"

    def land(self, landing: str) -> None:
        self.did = landing


@pytest.mark.parametrize(
    ("ready", "landings", "number", "eagerness", "did"),
    [
        ([], [], 0.0, 1.0, ""),
        ([0, 1], [], 0.0, 1.0, "thread 1"),
        ([], ["a", "b"], 0.9, 0.0, "b"),
        ([0, 1], ["a", "b"], 0.49, 1.0, "b"),
        ([0, 1], ["a", "b"], 0.5, 1.0, "thread 1"),
        ([0, 1], ["a", "b"], 0.9, 1.0, "thread 1"),
        ([0, 1], ["a", "b"], 0.0, 0.0, "thread 1"),
    ],
)
def test_what_a_schedule_does_next(
    ready: list[int], landings: list[str], number: float, eagerness: float, did: str
) -> None:
    steps = _Steps(ready, landings)
    step: Callable[[Any, Any, float], bool] = vars(checking)["_step"]
    assert step(steps, _Chooses(number), eagerness) is bool(did)
    assert steps.did == did


def test_schedules_differ_in_when_copies_land() -> None:
    """At once, late, or when nothing else can go on; the last ones after all else."""
    second = [event(Kind.WAIT, barrier=0, amount=0), event(Kind.READ, 0)]
    busy = [event(Kind.ARRIVE, barrier=1, amount=1)] * 3
    first = [event(Kind.EXPECT, barrier=0, amount=8), event(Kind.LOAD, 0, 0, 8), *busy]
    program = recording(*around(first, second))
    places = set[int]()
    for seed in range(40):
        execution = run_random(program, seed)
        assert execution.fault is None
        assert execution.machine.done
        assert execution.machine.trace == run_random(program, seed).machine.trace
        places.add([thread for thread, _ in execution.machine.trace].index(COPIES))
    assert len(places) >= 3
    late = recording([ALLOCATE, INIT, ARRIVE, EXPECT, LOAD])
    execution = run_random(late, 0)
    assert execution.machine.landings == []
    assert isinstance(execution.fault, WorkPending)


# ---- what is compiled and recorded ---------------------------------------------------------------


EMPTY = parse(
    '"tt.func"() <{sym_name = "kernel", function_type = () -> (), sym_visibility = "public"}> '
    '({ "tt.return"() : () -> () }) : () -> ()'
)


def test_allocations_are_called_as_the_text_calls_them() -> None:
    text = """first line
  %b.1 = ttg.local_alloc : () -> !ttg.memdesc<8xf16>
%c = ttg.local_alloc_other
    %d = ttg.local_alloc %x : (tensor<8xf16>) -> !ttg.memdesc<8xf16>
  foo %e = ttg.local_alloc
"""
    program = ProtocolProgram(EMPTY, text=text, file="f.ttgir")

    def name(line: int, file: str = "f.ttgir") -> str | None:
        return program.name_of(Place("ttg.local_alloc", SourceLocation(file, line, 1)))

    assert [name(line) for line in range(1, 8)] == [None, "%b.1", None, "%d", None, None, None]
    assert name(2, "other.ttgir") is None
    assert program.name_of(Place("ttg.local_alloc", None)) is None


@pytest.mark.parametrize("descriptor", [False, True])
@pytest.mark.parametrize("dot", [False, True])
def test_fences_are_to_come_while_descriptors_and_a_dot_that_reads_them_are_there(
    dot: bool, descriptor: bool
) -> None:
    lines = ['"tt.descriptor_load"() : () -> ()'] * descriptor
    lines += ['"ttng.warp_group_dot"() : () -> ()'] * dot
    module = parse("module {\n" + "\n".join(lines) + "\n}")
    before = compiling._is_before_fences(module)  # pyright: ignore[reportPrivateUsage]
    assert before is (dot and descriptor)


def test_what_fails_in_the_checker_itself_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(compiling, "make_step", fail)
    fence = parse(str(EMPTY).replace('"tt.return"', '"test.fence"() : () -> () "tt.return"'))
    with pytest.raises(SimulatorFailure):
        ProtocolProgram(fence)


@pytest.mark.parametrize("located", [False, True])
@pytest.mark.parametrize("unknown", [False, True])
def test_undefined_behaviour_is_told_from_what_is_not_followed(
    monkeypatch: pytest.MonkeyPatch, unknown: bool, located: bool
) -> None:
    fault = UndefinedBehaviour(f"a poison value is used ({UNKNOWN if unknown else 'poison'})")
    fault.operation = "scf.for"
    fault.location = SourceLocation("f.ttgir", 3, 5) if located else None

    def enter(*_: object) -> None:
        raise fault

    def nothing(*_: object) -> tuple[tuple[()], None]:
        return (), None

    monkeypatch.setattr(compiling, "bind_values", nothing)
    entry = SimpleNamespace(frame=nothing, body=SimpleNamespace(enter=enter))
    program = cast("ProtocolProgram", SimpleNamespace(entry=entry))
    with pytest.raises(CannotFollow if unknown else UndefinedBehaviour) as caught:
        record(program, PROBLEM)
    if unknown:
        place = "scf.for at f.ttgir:3:5" if located else "scf.for"
        reason = "depends on what memory or a tensor holds, which is not followed"
        assert str(caught.value) == f"{place} {reason}"


def test_a_program_without_an_end_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def enter(*_: object) -> None:
        raise StepLimit("too many steps")

    def nothing(*_: object) -> tuple[tuple[()], None]:
        return (), None

    monkeypatch.setattr(compiling, "bind_values", nothing)
    entry = SimpleNamespace(frame=nothing, body=SimpleNamespace(enter=enter))
    with pytest.raises(TooLong, match="too many steps"):
        record(cast("ProtocolProgram", SimpleNamespace(entry=entry)), PROBLEM)


# ---- cells ---------------------------------------------------------------------------------------


def test_memory_is_cut_where_accesses_begin_and_end() -> None:
    plane = Memory("plane", (4, 8), "f16", at(1), 128)
    line = Memory("line", (8,), "f16", at(2), 128)
    boxes = [((0, 2), (0, 8)), ((1, 4), (2, 4)), ((0, 4), (0, 8)), ((1, 2), (2, 4))]
    regions = [Region(plane, box) for box in boxes]
    whole = Region(line, ((0, 8),))
    one, other = mbarrier(1), mbarrier(0)
    steps = [
        Event(Kind.WRITE, at(3), (regions[0],)),
        Event(Kind.WAIT, at(4), (), one),
        Event(Kind.READ, at(5), (regions[1], whole)),
        Event(Kind.LOAD, at(6), (regions[2],), other),
        Event(Kind.READ, at(7), (regions[3], whole)),
        Event(Kind.FENCE, at(8)),
    ]
    parts, barriers = number_cells([Thread("a", steps[:3]), Thread("b", steps[3:])])
    assert barriers == [one, other]
    assert [step.number for step in steps] == [-1, 0, -1, 1, -1, -1]
    # Rows are cut at 1 and 2, columns at 2 and 4.
    rows, columns = ((0, 1), (1, 2), (2, 4)), ((0, 2), (2, 4), (4, 8))
    assert len(parts) == len(set(parts)) == 10
    assert {part.box for part in parts if part.memory == plane} == {
        (row, column) for row in rows for column in columns
    }

    def covered(step: Event) -> set[Region]:
        return {parts[number] for number in step.cells}

    def inside(box: tuple[tuple[int, int], ...]) -> set[Region]:
        return {
            part
            for part in parts
            if part.memory == plane
            and all(a <= c and d <= b for (a, b), (c, d) in zip(box, part.box, strict=True))
        }

    for step, extra in zip((steps[0], steps[2], steps[3], steps[4]), (0, 1, 0, 1), strict=True):
        box = step.regions[0].box
        assert covered(step) == inside(box) | ({whole} if extra else set())
        assert len(step.cells) == len(set(step.cells))
    assert [len(step.cells) for step in steps] == [6, 0, 3, 9, 2, 0]
    # The same region has the same cells, in the same order, wherever it is used.
    again = replace_regions(steps[2], (regions[0],))
    number_cells([Thread("a", [steps[0], again])])
    assert steps[0].cells == again.cells


def replace_regions(step: Event, regions: tuple[Region, ...]) -> Event:
    return replace(step, regions=regions)


def test_regions_and_events_as_text() -> None:
    plane = Memory("plane", (4, 8), "f16", at(1), 128)
    for box, text in (
        (((0, 4), (0, 8)), "plane"),
        (((0, 4), (0, 4)), "plane[0:4]"),
        (((1, 4), (0, 8)), "plane[1:4]"),
        (((1, 2), (4, 8)), "plane[1,4:8]"),
        (((0, 1), (7, 8)), "plane[0,7]"),
    ):
        assert str(Region(plane, box)) == text
    part = Region(plane, ((0, 1), (0, 8)))
    for step, text in (
        (Event(Kind.READ, at(1), (part,)), "test.event plane[0]"),
        (Event(Kind.LOAD, at(1), (part, part), mbarrier(1), 8),
         "test.event plane[0], plane[0] of ring[1] (8 bytes)"),
        (Event(Kind.WAIT, at(1), (), mbarrier(0), 1), "test.event of ring[0] (parity 1)"),
        (Event(Kind.FENCE, at(1)), "test.event"),
    ):  # fmt: skip
        assert str(step) == text
    default = Event(Kind.FENCE, at(1))
    assert (default.amount, default.number, default.cells) == (0, -1, ())
    assert str(plane) == "plane = 4x8xf16, test.event at kernel.py:1:1"


@pytest.mark.parametrize("count", [3, 24, 25, 30])
def test_trace_shows_the_last_steps(count: int) -> None:
    steps = [ALLOCATE, INIT, ARRIVE, EXPECT, LOAD, wait()]
    more = [placed(event(Kind.FENCE), line) for line in range(count - 7)]
    program = recording([*more, *steps][:count])
    machine = run_random(program, 0).machine
    lines = checking.trace_lines(machine)
    total = len(machine.trace)
    assert total == count
    if count > 24:
        assert lines[0] == f"  ... {count - 24} steps before"
        assert lines[1].split()[0] == str(count - 23)
    else:
        assert lines[0].split()[0] == "1"
    assert len(lines) == min(total, 24) + (total > 24)
    if count > 3:
        assert lines[-2] == (
            f"  {count - 1:4} (copy)       8 bytes land in buffer[0], complete at ring[0]"
        )
    if count > 24:
        assert lines[1].endswith(f"partition 0  test.event  [kernel.py:{count - 24}:1]")


# ---- checking ------------------------------------------------------------------------------------

PROBLEM = Problem(Shapes(64), (1, 0, 0), (2, 1, 1))
PROBLEMS = [PROBLEM, Problem(Shapes(128)), Problem(Shapes(192))]
_GOOD = [ALLOCATE, INIT, ARRIVE, ARRIVE]
_BAD = [ALLOCATE, INIT, placed(wait(), 7)]


def fault_at(line: int, kind: type[Fault] = Fault) -> Fault:
    fault = kind("it fails")
    fault.location = SourceLocation("kernel.py", line, 1)
    return fault


class _Records:
    """What recording each problem in turn gives."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *results: Recording | Exception) -> None:
        self._results = list(results)
        monkeypatch.setattr(checking, "record", self._record)

    def _record(self, _program: ProtocolProgram, _problem: Problem) -> Recording:
        result = self._results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


PROGRAM = cast("ProtocolProgram", None)


def test_check_of_several_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    _Records(monkeypatch, recording(_GOOD), TooLong("long"), recording(_BAD))
    outcome = check(PROGRAM, PROBLEMS, 4)
    assert outcome.problems == [PROBLEMS[0], PROBLEMS[2]]
    assert (outcome.schedules, outcome.asynchronous) == (8, True)
    (finding,) = outcome.findings
    assert isinstance(finding.fault, Stuck)
    assert (finding.problem, finding.seed) == (PROBLEMS[2], 0)


def test_check_of_what_has_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    _Records(monkeypatch, recording([ALLOCATE]), recording([]))
    outcome = check(PROGRAM, PROBLEMS[:2], 4)
    assert (outcome.schedules, outcome.asynchronous, outcome.findings) == (2, False, [])
    _Records(monkeypatch, recording([ALLOCATE, event(Kind.WRITE, 0)]), recording([ALLOCATE]))
    outcome = check(PROGRAM, PROBLEMS[:2], 4)
    assert (outcome.schedules, outcome.asynchronous) == (5, True)


def test_check_of_what_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    _Records(monkeypatch, TooLong("one"), TooLong("other"))
    with pytest.raises(TooLong, match="other"):
        check(PROGRAM, PROBLEMS[:2], 4)
    _Records(monkeypatch)
    assert check(PROGRAM, [], 4) == Outcome()
    assert (Outcome().schedules, Outcome().asynchronous) == (0, False)
    _Records(monkeypatch, TooLong("one"), fault_at(3))
    outcome = check(PROGRAM, PROBLEMS[:2], 4)
    assert (outcome.problems, outcome.schedules) == ([PROBLEMS[1]], 0)
    assert [finding.seed for finding in outcome.findings] == [None]


def test_first_finding_of_each_kind_at_each_place_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = [fault_at(3), fault_at(4), fault_at(3), fault_at(3, OutOfBounds)]
    _Records(monkeypatch, *faults)
    outcome = check(PROGRAM, [*PROBLEMS, PROBLEM], 4)
    assert [finding.fault for finding in outcome.findings] == [faults[0], faults[1], faults[3]]


def test_find_stops_at_the_first_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    _Records(monkeypatch, recording(_GOOD), recording(_BAD), fault_at(3))
    assert find(PROGRAM, PROBLEM, range(3)) is None
    found = find(PROGRAM, PROBLEM, iter((5, 6)))
    assert found is not None
    assert found.seed == 5
    found = find(PROGRAM, PROBLEM, range(3))
    assert found is not None
    assert (found.seed, found.trace, found.legend) == (None, (), ())


def test_finding_as_text() -> None:
    found = execute(recording(_BAD), PROBLEM, 3)
    assert found is not None
    headline = """kernel.py:7:1: error: test.event: deadlock: all partitions wait
note: partition 0 waits for parity 0 of ring[0] at kernel.py:7:1: phase 0 is under way, \
2 of 2 arrivals to come
note: in program (1, 0, 0) of grid (2, 1, 1), shapes 64"""
    assert found.headline == headline
    assert str(found) == headline + """
note: schedule of seed 3, its last steps:
     1 partition 0  test.event buffer[0]
     2 partition 0  test.event of ring[0] (count 2)
note: shared memory:
  buffer = 2xf16, test.event
  ring = 2xi64, test.event"""  # fmt: skip
    assert str(Finding(found.fault, PROBLEM)) == headline
    assert execute(recording(_GOOD), PROBLEM, 3) is None
    assert (BUFFER.label, RING.label) == ("buffer", "ring")
