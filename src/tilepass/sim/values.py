"""Executing a kernel for a grid of programs over numpy arrays.

    program = Program(module)
    run(program, {"x_ptr": x, "n": 1000}, grid=(4,))

Programs run one after the other. Arrays are updated in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilepass.sim.arguments import Argument, bind
from tilepass.sim.compiler import Program
from tilepass.sim.coverage import Goal
from tilepass.sim.effects import Effects
from tilepass.sim.faults import Deadlock, Fault
from tilepass.sim.memory import GlobalMemory
from tilepass.sim.races import Watch
from tilepass.sim.state import Blocked, Fork, Request, State, Task

Driver = Callable[[Task], Any]
"""Runs a task and all that it forks; returns its result. Raises Deadlock."""


class _Running:
    """A task, what it waits for, and what comes of it."""

    def __init__(self, name: str, task: Task) -> None:
        self.name = name
        self.task = task
        self.waits_for: Blocked | None = None
        self.children: list[_Running] = []
        self.result: Any = None
        self.done = False

    @property
    def ready(self) -> bool:
        if self.done:
            return False
        if self.waits_for is not None:
            return self.waits_for.ready()
        return all(child.done for child in self.children)

    def go_on(self) -> list[_Running]:
        """Run until the task waits, forks or ends; returns what it forked."""
        sent = [child.result for child in self.children] if self.children else None
        self.waits_for, self.children = None, []
        try:
            while True:
                request: Request = self.task.send(sent)
                sent = None
                if isinstance(request, Fork):
                    pairs = zip(request.names, request.tasks, strict=True)
                    self.children = [_Running(name, task) for name, task in pairs]
                    return self.children
                if isinstance(request, Blocked) and not request.ready():
                    self.waits_for = request
                    return []
        except StopIteration as end:
            self.result, self.done = end.value, True
            return []


def run_to_completion(task: Task) -> Any:
    """The driver that gives every task a turn in order of creation."""
    root = _Running("the program", task)
    running = [root]
    while not root.done:
        progressed = False
        for each in list(running):
            if each.ready:
                running.extend(each.go_on())
                progressed = True
        running = [each for each in running if not each.done]
        if not progressed:
            raise _deadlock(running)
    return root.result


def _deadlock(running: list[_Running]) -> Deadlock:
    fault = Deadlock("every partition waits")
    for each in running:
        if each.waits_for is not None:
            fault.note(f"{each.name} waits for {each.waits_for.what}")
    return fault


STEP_LIMIT = 20_000_000
"""Operations that a launch may execute."""

Place = tuple[int, int, int]


def places(grid: Place) -> list[Place]:
    """All programs of a grid, the first dimension fastest."""
    x, y, z = map(range, grid)
    return [(i, j, k) for k in z for j in y for i in x]


@dataclass
class Outcome:
    """What a launch left besides the arrays.

    `printed` holds the lines of `tt.print`; `poison` which elements of an array are poison, by the
    array's `id`, and `cause` why; `races` where programs meet without being ordered; `reached` what
    of loops and branches its programs reached.
    """

    printed: list[str] = field(default_factory=list[str])
    steps: int = 0
    poison: dict[int, NDArray[np.bool_]] = field(default_factory=dict[int, NDArray[np.bool_]])
    cause: str = ""
    races: list[str] = field(default_factory=list[str])
    reached: set[Goal] = field(default_factory=set[Goal])


def run(
    program: Program,
    arguments: Mapping[str, Argument] | Sequence[Argument],
    grid: Sequence[int] = (1,),
    *,
    programs: Sequence[Place] | None = None,
    effects: Effects | None = None,
    driver: Driver = run_to_completion,
    step_limit: int = STEP_LIMIT,
    keeps_poison: bool = False,
    watch: bool = False,
) -> Outcome:
    """Execute all programs of a grid of up to three dimensions, or some.

    With `keeps_poison` a value that is poison may be stored; with `watch` races between programs
    are looked for.

    Raises ArgumentError for arguments that do not fit, Fault for what the program does wrong.
    """
    width, height, depth, *_ = (*grid, 1, 1, 1)
    sizes = (width, height, depth)
    watching = Watch() if watch else None
    memory = GlobalMemory(keeps_poison=keeps_poison, watch=watching)
    bound = bind(program.parameters, arguments, memory)
    outcome = Outcome()
    budget = step_limit
    body = program.entry.body
    with np.errstate(all="ignore"):
        for place in places(sizes) if programs is None else programs:
            state = State(memory, effects or Effects(), place, sizes, budget)
            frame = program.entry.frame(state)
            for slot, value in zip(body.arguments, bound.values, strict=True):
                frame[slot] = value
            try:
                if body.suspends:
                    driver(body.resume(frame))
                else:
                    body.run(frame)
            except Fault as fault:
                fault.note(f"in program {place} of grid {sizes}")
                raise
            if watching is not None:
                watching.end_program(place)
            budget = state.budget
            outcome.printed += state.printed
            outcome.reached |= state.coverage.reached()
    outcome.steps = step_limit - budget
    bound.copy_back()
    outcome.poison = bound.poison()
    outcome.cause = next((each.cause for each in memory.buffers if each.cause), "")
    outcome.races = watching.races if watching is not None else []
    return outcome
