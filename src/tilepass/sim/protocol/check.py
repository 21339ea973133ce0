"""Checking the protocol of a kernel on its own: sizes, programs, schedules."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tilepass.sim.faults import Fault
from tilepass.sim.protocol.compiler import ProtocolProgram, record
from tilepass.sim.protocol.events import Event, Kind, Recording
from tilepass.sim.protocol.findings import ProtocolFault
from tilepass.sim.protocol.machine import COPIES, Machine
from tilepass.sim.protocol.problems import Problem
from tilepass.sim.protocol.recorder import TooLong


@dataclass(frozen=True)
class Finding:
    """What is wrong, and the schedule that shows it; `seed` is None where every schedule does."""

    fault: Fault
    problem: Problem
    seed: int | None = None
    trace: Sequence[str] = ()
    legend: Sequence[str] = ()

    @property
    def headline(self) -> str:
        """Without the schedule."""
        return f"{self.fault}\nnote: in {self.problem}"

    def __str__(self) -> str:
        lines = [self.headline]
        if self.seed is not None:
            lines.append(f"note: schedule of seed {self.seed}, its last steps:")
            lines += self.trace
            lines.append("note: shared memory:")
            lines += self.legend
        return "\n".join(lines)


@dataclass
class Outcome:
    """What a check did: the first finding of each kind at each place, and how much was tried."""

    findings: list[Finding] = field(default_factory=list[Finding])
    problems: list[Problem] = field(default_factory=list[Problem])
    schedules: int = 0
    asynchronous: bool = False
    """Whether there was anything that could happen in another order."""

    def add(self, finding: Finding) -> None:
        """Keep a finding that is not known."""
        known = {(type(each.fault), each.fault.location) for each in self.findings}
        if (type(finding.fault), finding.fault.location) not in known:
            self.findings.append(finding)


def check(program: ProtocolProgram, problems: Sequence[Problem], seeds: int) -> Outcome:
    """Execute every problem with `seeds` schedules.

    Raises CannotFollow; TooLong only where all problems are.
    """
    outcome, too_long = Outcome(), None
    for problem in problems:
        try:
            recording, finding = _record(program, problem)
        except TooLong as error:
            too_long = error
            continue
        outcome.problems.append(problem)
        if finding:
            outcome.add(finding)
        if recording:
            _execute_all(recording, problem, seeds, outcome)
    if too_long and not outcome.problems:
        raise too_long
    return outcome


def _execute_all(recording: Recording, problem: Problem, seeds: int, outcome: Outcome) -> None:
    asynchronous = any(
        event.kind is not Kind.ALLOCATE for thread in recording.threads for event in thread.events
    )
    outcome.asynchronous |= asynchronous
    for seed in range(seeds if asynchronous else 1):
        outcome.schedules += 1
        if finding := execute(recording, problem, seed):
            outcome.add(finding)


def find(program: ProtocolProgram, problem: Problem, seeds: Iterable[int]) -> Finding | None:
    """The first finding of a problem in the schedules of these seeds. Raises CannotFollow."""
    recording, finding = _record(program, problem)
    if recording is None:
        return finding
    found = (execute(recording, problem, seed) for seed in seeds)
    return next((finding for finding in found if finding), None)


def execute(recording: Recording, problem: Problem, seed: int) -> Finding | None:
    """What is wrong in the schedule of one seed."""
    execution = run_random(recording, seed)
    if execution.fault is None:
        return None
    lines = trace_lines(execution.machine)
    return Finding(execution.fault, problem, seed, lines, legend(recording))


def _record(program: ProtocolProgram, problem: Problem) -> tuple[Recording | None, Finding | None]:
    try:
        return record(program, problem), None
    except Fault as fault:
        return None, Finding(fault, problem)


_LINES = 24


def trace_lines(machine: Machine) -> list[str]:
    """The last steps up to the fault, one a line: number, who, what, where."""
    trace = machine.trace
    first = max(0, len(trace) - _LINES)
    lines = [f"  ... {first} steps before"] if first else []
    width = max(len(thread.name) for thread in machine.threads)
    for number, (thread, event) in enumerate(trace[first:], first + 1):
        who = "(copy)" if thread == COPIES else machine.threads[thread].name
        lines.append(f"  {number:4} {who:{width}}  {_said(thread, event)}")
    return lines


def _said(thread: int, event: Event) -> str:
    where = f"  [{event.place.location}]" if event.place.location else ""
    if thread == COPIES:
        regions = ", ".join(map(str, event.regions))
        return f"{event.amount} bytes land in {regions}, complete at {event.barrier}{where}"
    return f"{event}{where}"


def legend(recording: Recording) -> list[str]:
    """The names of allocations that a trace uses."""
    return [f"  {memory}" for memory in recording.memories]


# How readily copies complete while partitions can go on: at once, late, or as late as possible.
_EAGERNESS = (1.0, 0.3, 0.05, 0.0)


@dataclass(frozen=True)
class Execution:
    """One execution: the machine as it ended or stopped, and what is wrong."""

    machine: Machine
    fault: ProtocolFault | None = None


def run_random(recording: Recording, seed: int) -> Execution:
    """One execution in an order drawn with `seed`."""
    choose = random.Random(seed)
    eagerness = choose.choice(_EAGERNESS)
    machine = Machine(recording)
    try:
        machine.start()
        while not machine.done:
            if not _step(machine, choose, eagerness):
                break
        while machine.landings:
            machine.land(choose.choice(machine.landings))
        machine.conclude()
    except ProtocolFault as fault:
        return Execution(machine, fault)
    return Execution(machine)


def _step(machine: Machine, choose: random.Random, eagerness: float) -> bool:
    ready, landings = machine.ready(), machine.landings
    if not ready and not landings:
        return False
    if landings and (not ready or choose.random() < eagerness / 2):
        machine.land(choose.choice(landings))
    else:
        machine.advance(choose.choice(ready))
    return True
