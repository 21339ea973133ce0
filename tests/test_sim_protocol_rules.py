"""The protocol's rules on small random programs: an mbarrier as PTX describes it, and every finding
of the machine against a search through all schedules, which judges in another way."""

from __future__ import annotations

import functools
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol_explore import explore
from tilepass.sim.protocol.barrier import Barrier
from tilepass.sim.protocol.check import run_random
from tilepass.sim.protocol.events import (
    Clock,
    Event,
    Kind,
    Memory,
    Place,
    Recording,
    Region,
    Thread,
    join,
)
from tilepass.sim.protocol.findings import (
    BarrierMisuse,
    MissingFence,
    ParityAliasing,
    ProtocolFault,
    Race,
    Stuck,
    Unwritten,
    WorkPending,
    WrongArrivals,
    WrongBytes,
)
from tilepass.sim.protocol.machine import Machine

PLACE = Place("test.event", None)
CELLS, BARRIERS = 2, 2
BUFFER = Memory("buffer", (CELLS,), "f16", PLACE, 128)
RING = Memory("ring", (BARRIERS,), "i64", PLACE, 8)
# What a clock holds of those who know everything.
EVER = 1000


def cell(place: int) -> Region:
    return Region(BUFFER, ((place, place + 1),))


def mbarrier(number: int) -> Region:
    return Region(RING, ((number, number + 1),))


def event(kind: Kind, place: int = -1, barrier: int = -1, amount: int = 0,
          threads: tuple[int, ...] = ()) -> Event:  # fmt: skip
    regions = (cell(place),) if place >= 0 else ()
    cells = (place,) if place >= 0 else ()
    where = mbarrier(barrier) if barrier >= 0 else None
    return Event(kind, PLACE, regions, where, amount, threads, cells, barrier)


def recording(*threads: list[Event], fences_to_come: bool = False) -> Recording:
    """Programs of the default partition and others."""
    named = [Thread(f"partition {index}", events) for index, events in enumerate(threads)]
    regions = [cell(place) for place in range(CELLS)]
    barriers = [mbarrier(number) for number in range(BARRIERS)]
    return Recording(named, regions, barriers, [BUFFER, RING], fences_to_come)


# ---- one mbarrier --------------------------------------------------------------------------------

NUMBER, THREAD = 2, 0


def initialized(count: int) -> tuple[Barrier, Clock]:
    """A barrier of so many arrivals, and the clock of one who knows all there is to know."""
    clock = [EVER, EVER, EVER]
    barrier = Barrier(mbarrier(0), NUMBER, [0, 0, 0], [0, 0, 0])
    barrier.initialize(event(Kind.INIT, barrier=0, amount=count), clock, THREAD)
    return barrier, clock


@given(st.integers(1, 3), st.lists(st.tuples(st.sampled_from("aec"), st.integers(1, 3))))
def test_phases_end_with_the_last_arrival_and_byte(
    count: int, steps: list[tuple[str, int]]
) -> None:
    barrier, clock = initialized(count)
    phase, pending, bytes_ = 0, count, 0
    for kind, amount in steps:
        clock[NUMBER] = EVER
        arrivals = {"a": amount, "e": 1, "c": 0}[kind]
        bytes_ += {"a": 0, "e": amount, "c": -amount}[kind]
        step = event(Kind.EXPECT if kind == "e" else Kind.ARRIVE, barrier=0, amount=amount)
        if arrivals > pending:
            with pytest.raises(WrongArrivals):
                barrier.arrive(step, clock)
            return
        if kind == "c":
            barrier.complete(step, clock)
        else:
            barrier.arrive(step, clock)
        pending -= arrivals
        if not pending and not bytes_:
            phase, pending = phase + 1, count
        assert (barrier.phase, barrier.pending, barrier.bytes) == (phase, pending, bytes_)
        # A wait for a parity goes on once the phase of that parity is over.
        assert barrier.passes(phase & 1) is False
        assert barrier.passes(1 - (phase & 1)) is True


def completed(count: int, phases: int) -> Barrier:
    """A barrier after some phases."""
    barrier, _ = initialized(count)
    for _ in range(phases * count):
        clock = [0, 0, EVER]
        barrier.arrive(event(Kind.ARRIVE, barrier=0, amount=1), clock)
    assert barrier.phase == phases
    return barrier


@pytest.mark.parametrize("phases", range(5))
def test_wait_must_know_of_the_phase_two_before(phases: int) -> None:
    for known in range(phases + 1):
        barrier = completed(1, phases)
        clock = [EVER, EVER, barrier.base + known]
        wait = event(Kind.WAIT, barrier=0, amount=1 - (phases & 1))
        if phases >= 2 and known < phases - 1:
            with pytest.raises(ParityAliasing, match=f"phase {phases - 2} has ended"):
                barrier.wait(wait, clock, THREAD)
        else:
            barrier.wait(wait, clock, THREAD)
            assert clock[NUMBER] == barrier.base + max(known, phases)


@pytest.mark.parametrize("phases", range(4))
@pytest.mark.parametrize("kind", [Kind.ARRIVE, Kind.EXPECT, Kind.LOAD])
def test_arrival_must_know_that_the_phase_before_has_ended(phases: int, kind: Kind) -> None:
    for known in range(phases + 1):
        barrier = completed(2, phases)
        clock = [EVER, EVER, barrier.base + known]
        arrive = functools.partial(
            barrier.complete if kind is Kind.LOAD else barrier.arrive,
            event(kind, barrier=0, amount=1), clock,
        )  # fmt: skip
        if phases and known < phases:
            with pytest.raises(WrongArrivals, match=f"before phase {phases - 1} has ended"):
                arrive()
        else:
            arrive()


def test_waiting_teaches_what_those_knew_that_arrived() -> None:
    barrier, _ = initialized(2)
    for clock in ([7, 1, 0], [2, 9, 0]):
        barrier.arrive(event(Kind.ARRIVE, barrier=0, amount=1), clock)
        assert clock[NUMBER] == 0
    waiting = [3, 3, 0]
    barrier.wait(event(Kind.WAIT, barrier=0), waiting, THREAD)
    assert waiting == [7, 9, barrier.base + 1]
    copied, _ = initialized(1)
    copied.arrive(event(Kind.EXPECT, barrier=0, amount=4), [1, 1, 0])
    copied.complete(event(Kind.LOAD, barrier=0, amount=4), [6, 2, 0])
    waiting = [3, 3, 0]
    copied.wait(event(Kind.WAIT, barrier=0), waiting, THREAD)
    assert waiting == [6, 3, copied.base + 1]
    assert copied.landing == copied.base + 1
    # Who arrives for all knows at once that the phase is over.
    alone, _ = initialized(2)
    clock = [5, 5, 0]
    alone.arrive(event(Kind.ARRIVE, barrier=0, amount=2), clock)
    assert clock[NUMBER] == alone.base + 1


@pytest.mark.parametrize("knows", [False, True])
def test_phase_after_the_next_must_wait_for_who_waits(knows: bool) -> None:
    barrier = completed(1, 1)
    barrier.wait(event(Kind.WAIT, barrier=0), [40, 0, EVER], THREAD)
    clock = [40 if knows else 39, 0, EVER]
    if knows:
        barrier.arrive(event(Kind.ARRIVE, barrier=0, amount=1), clock)
        assert not barrier.waits
        return
    with pytest.raises(ParityAliasing, match="a second phase"):
        barrier.arrive(event(Kind.ARRIVE, barrier=0, amount=1), clock)


@pytest.mark.parametrize("used", [("initialize", -1), ("initialize", 0), ("use", -1), ("use", 0)])
def test_barrier_is_used_behind_its_initialization(used: tuple[str, int]) -> None:
    """`use` is ordered behind the initialization, `initialize` behind uses and invalidation."""
    name, late = used
    barrier = Barrier(mbarrier(0), NUMBER, [0, 0, 0], [0, 0, 0])
    step = event(Kind.ARRIVE, barrier=0, amount=1)
    with pytest.raises(BarrierMisuse, match="not initialized"):
        barrier.use(step, [9, 9, 9], 1)
    barrier.initialize(step, [5, 0, 0], 0)
    knows = [5 + late, 3, EVER]
    if name == "use" and late:
        with pytest.raises(BarrierMisuse, match="behind its initialization"):
            barrier.use(step, knows, 1)
        return
    barrier.use(step, [5, 3, EVER], 1)
    with pytest.raises(BarrierMisuse, match="in use"):
        barrier.initialize(step, [9, 9, EVER], 0)
    with pytest.raises(BarrierMisuse, match="may be using it"):
        barrier.invalidate(step, [5, 2, EVER], 0)
    barrier.bytes = 4
    with pytest.raises(BarrierMisuse, match="copies complete"):
        barrier.invalidate(step, [5, 3, EVER], 0)
    barrier.bytes = 0
    barrier.phase, barrier.landing = 1, barrier.base + 1
    with pytest.raises(BarrierMisuse, match="copies complete"):
        barrier.invalidate(step, [5, 3, barrier.base], 0)
    barrier.users[1] = 3
    base = barrier.base
    barrier.waits.append((1, 3, step))
    barrier.invalidate(step, [6, 3, base + 1], 0)
    assert barrier.valid is False
    if late:
        with pytest.raises(BarrierMisuse, match="may be using it"):
            barrier.initialize(step, [5, 3, EVER], 1)
        return
    barrier.initialize(event(Kind.INIT, barrier=0, amount=3), [6, 3, EVER], 1)
    assert (barrier.phase, barrier.bytes, barrier.pending, barrier.count) == (0, 0, 3, 3)
    assert barrier.base > base + 1
    assert barrier.landing == 0
    assert (barrier.waits, barrier.users) == ([], {~1: 3})


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_clocks_learn_the_greater_of_each(pairs: list[tuple[int, int]]) -> None:
    mine, other = [a for a, _ in pairs], [b for _, b in pairs]
    into = list(mine)
    join(into, other)
    assert into == [max(pair) for pair in pairs]


# ---- programs ------------------------------------------------------------------------------------

Rounds = list[tuple[int, int]]


def handing_over(source: random.Random) -> tuple[list[Event], list[Event]]:
    """A producer and a consumer of one buffer, correct: by threads, copies or TMA."""
    way = source.choice(("write", "write", "copy", "load", "load"))
    use = source.choice(("read", "dot", "store"))
    turns = source.choice((1, 2, 3))
    slot = source.choice((0, 1))
    producer, consumer = list[Event](), list[Event]()
    full, empty = 0, 1
    for turn in range(turns):
        parity = turn & 1
        if turn:
            producer.append(event(Kind.WAIT, barrier=empty, amount=1 - parity))
        if way == "load":
            producer += [event(Kind.EXPECT, barrier=full, amount=8),
                         event(Kind.LOAD, slot, full, 8)]  # fmt: skip
        elif way == "copy":
            producer += [event(Kind.COPY, slot), event(Kind.COMMIT), event(Kind.COPY_WAIT)]
        else:
            producer.append(event(Kind.WRITE, slot))
        if way == "write" and use != "read":
            producer.append(event(Kind.FENCE))
        if way != "load":
            producer.append(event(Kind.ARRIVE, barrier=full, amount=1))
        consumer.append(event(Kind.WAIT, barrier=full, amount=parity))
        if use == "read":
            consumer.append(event(Kind.READ, slot))
        else:
            kinds = (Kind.DOT, Kind.DOT_WAIT) if use == "dot" else (Kind.STORE, Kind.STORE_WAIT)
            consumer += [event(kinds[0], slot), event(kinds[1])]
        if turn + 1 < turns:
            if (use, way) == ("read", "load"):
                consumer.append(event(Kind.FENCE))
            consumer.append(event(Kind.ARRIVE, barrier=empty, amount=1))
    return producer, consumer


def around(first: list[Event], second: list[Event]) -> list[list[Event]]:
    """The partitions of a kernel; the first runs in the default partition."""
    start = [event(Kind.INIT, barrier=number, amount=1) for number in range(BARRIERS)]
    start += [event(Kind.ALLOCATE, place) for place in range(CELLS)]
    end = [event(Kind.JOIN, threads=(1,))]
    end += [event(Kind.INVALIDATE, barrier=number) for number in range(BARRIERS)]
    return [[*start, event(Kind.FORK, threads=(1,)), *first, *end], second]


def mistaken(threads: list[list[Event]], source: random.Random) -> None:
    """Drop, repeat, move or change one event."""
    events = source.choice(threads)
    free = [at for at, each in enumerate(events) if each.kind not in (Kind.FORK, Kind.JOIN)]
    at = source.choice(free)
    old = events[at]
    how = source.choice(("drop", "again", "swap", "amount", "place"))
    if how == "drop":
        del events[at]
    elif how == "again":
        events.insert(at, old)
    elif how == "swap" and at + 1 in free:
        events[at], events[at + 1] = events[at + 1], old
    elif how == "amount" and old.kind in (Kind.WAIT, Kind.DOT_WAIT, Kind.STORE_WAIT):
        events[at] = event(old.kind, -1, old.number, 1 - old.amount)
    elif how == "amount" and old.kind in (Kind.INIT, Kind.ARRIVE, Kind.EXPECT, Kind.LOAD):
        place = old.cells[0] if old.cells else -1
        events[at] = event(old.kind, place, old.number, old.amount + 1)
    elif how == "place" and old.cells:
        events[at] = event(old.kind, 1 - old.cells[0], old.number, old.amount)
    elif how == "place" and old.number >= 0:
        events[at] = event(old.kind, -1, 1 - old.number, old.amount)


def fault_of(program: Recording) -> ProtocolFault | None:
    """What the machine says: where it finds anything, it does in every schedule."""
    faults = [run_random(program, seed).fault for seed in range(6)]
    assert len({fault is None for fault in faults}) == 1, faults
    return faults[0]


def program_of(seed: int, mistakes: int) -> Recording:
    source = random.Random(seed)
    pair = handing_over(source)
    threads = around(*(pair if source.choice((True, False)) else reversed(pair)))
    for _ in range(mistakes):
        mistaken(threads, source)
    return recording(*threads)


@pytest.mark.parametrize("seed", range(30))
def test_correct_programs_are_right_in_all_schedules(seed: int) -> None:
    program = program_of(seed, 0)
    fault = fault_of(program)
    assert fault is None, fault
    exploration = explore(program, 20_000)
    assert (exploration.problem, exploration.complete) == (None, True)


def test_mistakes_are_found_exactly_where_a_schedule_goes_wrong() -> None:
    """What the machine predicts happens in some schedule, and the other way round."""
    found = Counter[str]()
    for seed in range(1500):
        program = program_of(seed, 1 + seed % 2)
        fault = fault_of(program)
        if not isinstance(fault, MissingFence):
            # A search knows no fences: what they order, it has in order anyway.
            problem = explore(program, 20_000).problem
            assert bool(problem) == bool(fault), (seed, fault, problem)
        found[type(fault).__name__] += 1
    kinds = (Race, Unwritten, MissingFence, WrongArrivals, WrongBytes, ParityAliasing,
             BarrierMisuse, Stuck, WorkPending)  # fmt: skip
    assert all(found[kind.__name__] >= 5 for kind in kinds), found
    assert found["NoneType"] > 100


def stuck(*threads: list[Event]) -> str:
    fault = run_random(recording(*around(*threads)), 0).fault
    assert fault is not None
    return str(fault)


def test_wait_that_has_missed_its_phase() -> None:
    """Two phases end before another partition gets to its wait for the first."""
    arrive = event(Kind.ARRIVE, barrier=0, amount=1)
    first = [arrive, arrive, event(Kind.WAIT, barrier=1)]
    last = [event(Kind.WAIT, barrier=0), event(Kind.ARRIVE, barrier=1, amount=1)]
    machine = Machine(recording(*around(first, last)))
    machine.start()
    while 0 in machine.ready():
        machine.advance(0)
    assert machine.ready() == []
    with pytest.raises(ParityAliasing) as caught:
        machine.conclude()
    said = str(caught.value)
    assert "this wait has missed phase 0 of ring[0]" in said
    assert "partition 1 waits for parity 0 of ring[0] at None: phase 2 is under way, 1 of 1" in said
    # Who knows that both are over is stuck for another reason.
    machine.clocks[1][machine.barriers[0].number] = machine.barriers[0].base + 2
    with pytest.raises(Stuck, match="all partitions wait"):
        machine.conclude()


@pytest.mark.parametrize(("expected", "landing", "said"), [
    (8, 4, "4 bytes that ring[0] expects never arrive"),
    (4, 8, "4 bytes more than it expects arrive at ring[0]"),
])  # fmt: skip
def test_bytes_that_do_not_match(expected: int, landing: int, said: str) -> None:
    load = [event(Kind.EXPECT, barrier=0, amount=expected), event(Kind.LOAD, 0, 0, landing)]
    found = stuck(load, [event(Kind.WAIT, barrier=0)])
    assert said in found
    assert "wrong byte count" in found
    assert "partition 0 waits for the other partitions to end" in found
