"""Control flow: `scf`, calls, and the terminators of functions."""

from __future__ import annotations

import itertools
from typing import Any

from tilepass.sim.coverage import Spot
from tilepass.sim.faults import MemoryMisuse, StepLimit
from tilepass.sim.region import Body
from tilepass.sim.site import Site, operation
from tilepass.sim.state import Frame, Step, Suspending, Task


def _set(frame: Frame, slots: tuple[int, ...], values: Any) -> None:
    for slot, value in zip(slots, values, strict=True):
        frame[slot] = value


@operation("scf.for")
def for_loop(site: Site) -> Step | Suspending:
    """Trips are counted before the first one: an induction variable that would wrap ends the loop,
    as it does in MLIR. The comparison is unsigned with the attribute `unsignedCmp`."""
    lower, upper, increment, *initial = site.operands
    body, results = site.body(0), site.results
    induction, *carried = body.arguments
    arguments, cost = tuple(carried), body.cost
    bits = site.operand_types[0].of.bits
    mask = (1 << bits) - 1 if site.flag("unsignedCmp") else None
    element = site.operand_types[0].of
    fixed = all(site.is_constant(operand) for operand in range(3))
    spot = Spot.of(site.operation) if fixed else site.spot()

    def trips(frame: Frame) -> Any:
        first, last, by = frame[lower], frame[upper], frame[increment]
        if mask is not None:
            first, last, by = first & mask, last & mask, by & mask
        if by <= 0:
            raise MemoryMisuse(f"a loop with step {by}, which must be positive")
        every = range(first, last, by)
        frame[0].coverage.loop(spot, max(0, -(-(last - first) // by)))
        return map(element.scalar, every) if mask is not None else every

    def step(frame: Frame) -> None:
        values: Any = [frame[slot] for slot in initial]
        state, run = frame[0], body.run
        for index in trips(frame):
            state.budget -= cost
            if state.budget < 0:
                raise StepLimit("the step limit is reached in this loop")
            frame[induction] = index
            for slot, value in zip(arguments, values, strict=True):
                frame[slot] = value
            values = run(frame)
        for slot, value in zip(results, values, strict=True):
            frame[slot] = value

    def task(frame: Frame) -> Task:
        values: Any = [frame[slot] for slot in initial]
        for index in trips(frame):
            frame[0].spend(cost)
            frame[induction] = index
            _set(frame, arguments, values)
            values = yield from body.resume(frame)
        _set(frame, results, values)

    return Suspending(task) if body.suspends else step


@operation("scf.if")
def branch(site: Site) -> Step | Suspending:
    (condition,), results = site.operands, site.results
    bodies = [site.body(index) for index in range(2)]
    yes, no = bodies
    spot = Spot.of(site.operation)

    def chosen(frame: Frame) -> Body:
        taken = bool(frame[condition])
        frame[0].coverage.branches[spot, taken] += 1
        return yes if taken else no

    def step(frame: Frame) -> None:
        body = chosen(frame)
        if body.blocks:
            values = body.run(frame)
            for slot, value in zip(results, values, strict=True):
                frame[slot] = value

    def task(frame: Frame) -> Task:
        body = chosen(frame)
        if body.blocks:
            _set(frame, results, (yield from body.resume(frame)))

    return Suspending(task) if any(body.suspends for body in bodies) else step


@operation("scf.while")
def while_loop(site: Site) -> Step | Suspending:
    before, after = site.body(0), site.body(1)
    initial, results, cost = site.operands, site.results, before.cost + after.cost
    spot = site.spot()

    def step(frame: Frame) -> None:
        values: Any = [frame[slot] for slot in initial]
        for trips in itertools.count():
            frame[0].spend(cost)
            going, *values = before.enter(frame, values)
            if not going:
                frame[0].coverage.loop(spot, trips)
                break
            values = after.enter(frame, values)
        _set(frame, results, values)

    def task(frame: Frame) -> Task:
        values: Any = [frame[slot] for slot in initial]
        for trips in itertools.count():
            frame[0].spend(cost)
            _set(frame, before.arguments, values)
            going, *values = yield from before.resume(frame)
            if not going:
                frame[0].coverage.loop(spot, trips)
                break
            _set(frame, after.arguments, values)
            values = yield from after.resume(frame)
        _set(frame, results, values)

    return Suspending(task) if before.suspends or after.suspends else step


@operation("scf.execute_region")
def execute_region(site: Site) -> Step | Suspending:
    body, results = site.body(0), site.results

    def step(frame: Frame) -> None:
        _set(frame, results, body.run(frame))

    def task(frame: Frame) -> Task:
        _set(frame, results, (yield from body.resume(frame)))

    return Suspending(task) if body.suspends else step


@operation("tt.call")
def call(site: Site) -> Step | Suspending:
    function = site.compiler.program.function(site.attribute("callee").value, site.lifted)
    if not function.compiled:
        raise site.refuse(f"a recursive call of {function.name}")
    operands, results = site.operands, site.results

    def prepare(frame: Frame) -> tuple[Body, Frame]:
        body, inner = function.body, function.frame(frame[0])
        _set(inner, body.arguments, [frame[slot] for slot in operands])
        return body, inner

    def step(frame: Frame) -> None:
        body, inner = prepare(frame)
        _set(frame, results, body.run(inner))

    def task(frame: Frame) -> Task:
        body, inner = prepare(frame)
        _set(frame, results, (yield from body.resume(inner)))

    return Suspending(task) if function.body.suspends else step
