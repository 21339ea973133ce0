"""Running the tasks of one program to completion, in turns, each until it waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilepass.sim.faults import Deadlock
from tilepass.sim.state import Blocked, Fork, Request, Task

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
