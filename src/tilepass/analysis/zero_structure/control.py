"""Structured control flow: branches by thread, loops trip by trip or joined until stable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilepass.analysis.zero_structure import private
from tilepass.analysis.zero_structure.integers import negated, refine
from tilepass.analysis.zero_structure.intervals import Interval
from tilepass.analysis.zero_structure.machine import Effect, Machine, OutOfReach
from tilepass.analysis.zero_structure.ops_numbers import element_of
from tilepass.analysis.zero_structure.private import Registers
from tilepass.analysis.zero_structure.program import Block, Instruction, Program
from tilepass.analysis.zero_structure.types import Scalar, Type
from tilepass.analysis.zero_structure.values import Mask, Pointer, Value

# From this run of a loop's body on, bounds that still move go to the ends of their type.
_WIDEN_AFTER = 3
# How far conditions are followed from a branch to what they are made of.
_DEPTH = 6


def branch(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> None:
    """scf.if."""
    condition = machine.domain.as_interval(values[0], 1)
    true, false = machine.domain.split(condition, mask)
    then, other = item.regions
    if not false.any:
        results = _side(machine, item, then, condition, True, state, true)
    elif not true.any:
        results = _side(machine, item, other, condition, False, state, false)
    else:
        other_state = state.copy()
        one = _side(machine, item, then, condition, True, state, true)
        two = _side(machine, item, other, condition, False, other_state, false)
        state.become(private.pick(machine.domain, condition, state, other_state))
        results = tuple(
            machine.domain.pick(condition, first, second)
            for first, second in zip(one, two, strict=True)
        )
    for number, result in zip(item.results, results, strict=True):
        machine.env[number] = result


def _side(
    machine: Machine,
    item: Instruction,
    block: Block,
    condition: Interval,
    truth: bool,
    state: Registers,
    mask: Mask,
) -> tuple[Value, ...]:
    if not mask.any:
        # No thread comes here; `branch` leaves out a side that nobody takes.
        return tuple(machine.domain.top(kind) for kind in item.types)
    undo = list[tuple[int, Value]]()
    _assume(machine, item.operands[0], truth, undo, _DEPTH)
    results = machine.execute(block, state, mask)
    for number, value in reversed(undo):
        machine.env[number] = value
    return results


def _assume(
    machine: Machine, number: int, truth: bool, undo: list[tuple[int, Value]], depth: int
) -> None:
    """Note that an i1 is `truth` in all threads that take a branch, and what follows from it."""
    env, intervals = machine.env, machine.domain.intervals
    undo.append((number, env[number]))
    env[number] = intervals.constant(int(truth))
    definition = machine.program.definitions.get(number)
    if definition is None or depth == 0:
        return
    if definition.name in ("arith.andi", "arith.ori"):
        _assume_parts(machine, definition, truth, undo, depth - 1)
    elif definition.name == "arith.cmpi":
        _assume_comparison(machine, definition, truth, undo)


def _assume_parts(
    machine: Machine,
    definition: Instruction,
    truth: bool,
    undo: list[tuple[int, Value]],
    depth: int,
) -> None:
    """Both parts of an and that holds hold; where one is certain, the other decides."""
    decisive = definition.name == "arith.andi"
    if truth == decisive:
        for number in definition.operands:
            _assume(machine, number, truth, undo, depth)
        return
    first, second = definition.operands
    for number, other in ((first, second), (second, first)):
        value, part = machine.env[other], machine.env[number]
        if not isinstance(value, Interval) or not isinstance(part, Interval):
            continue
        certain = (value.low == int(decisive)) & (value.high == int(decisive))
        if certain.all():
            _assume(machine, number, truth, undo, depth)
        elif certain.any():
            # By thread: `not (a and b)` says not a where b is certain.
            undo.append((number, part))
            machine.env[number] = machine.domain.intervals.of(
                np.where(certain, int(truth), part.low), np.where(certain, int(truth), part.high)
            )


def _assume_comparison(
    machine: Machine, definition: Instruction, truth: bool, undo: list[tuple[int, Value]]
) -> None:
    first, second = definition.operands
    one, other = machine.env[first], machine.env[second]
    kind = definition.operand_types[0]
    usable = isinstance(one, Interval) and isinstance(other, Interval)
    if not usable or not isinstance(kind, Scalar) or first == second:
        return
    predicate = definition.detail if truth else negated(definition.detail)
    refined = refine(machine.domain.intervals, predicate, one, other, kind.width)
    for number, old, new in ((first, one, refined[0]), (second, other, refined[1])):
        if new is not old:
            undo.append((number, old))
            machine.env[number] = new


def refining_select(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> Value:
    """arith.select on a comparison of one of its values: `x == n ? 0 : x` is not n."""
    condition = machine.domain.as_interval(values[0], 1)
    sides = [values[1], values[2]]
    comparison = machine.program.definitions[item.operands[0]]
    one, other = (machine.env[number] for number in comparison.operands)
    kind = comparison.operand_types[0]
    if isinstance(one, Interval) and isinstance(other, Interval) and isinstance(kind, Scalar):
        key = (condition, *sides, one, other)
        found = item.memo.get(key)
        if found is not None:
            return found
        for place, predicate in ((0, comparison.detail), (1, negated(comparison.detail))):
            refined = refine(machine.domain.intervals, predicate, one, other, kind.width)
            for number, value in zip(comparison.operands, refined, strict=True):
                if item.operands[place + 1] == number:
                    sides[place] = value
        item.memo[key] = machine.domain.pick(condition, sides[0], sides[1])
        return item.memo[key]
    return machine.domain.pick(condition, sides[0], sides[1])


def refines(item: Instruction, program: Program) -> bool:
    """Whether a select chooses between values of the comparison that it depends on."""
    comparison = program.definitions.get(item.operands[0])
    return (
        comparison is not None
        and comparison.name == "arith.cmpi"
        and isinstance(comparison.operand_types[0], Scalar)
        and not set(comparison.operands).isdisjoint(item.operands[1:])
    )


# ---- loops ---------------------------------------------------------------------------------


def counted_loop(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> None:
    """scf.for."""
    bounds = [machine.domain.as_interval(value, 64) for value in values[:3]]
    carried = values[3:]
    body = item.regions[0]
    trips = _trips(bounds)
    if trips is not None and len(trips) <= machine.limits.unroll:
        for trip in trips:
            machine.env[body.arguments[0]] = machine.domain.intervals.constant(trip)
            _bind(machine, body.arguments[1:], carried)
            carried = machine.execute(body, state, mask)
    else:
        counter = _counter(machine, bounds, element_of(body.types[0]).width)

        def once(current: tuple[Value, ...], inner: Registers) -> tuple[Value, ...]:
            machine.env[body.arguments[0]] = counter
            _bind(machine, body.arguments[1:], current)
            return machine.execute(body, inner, mask)

        carried = _stable(machine, item, body.types[1:], carried, state, once)
    _bind(machine, item.results, carried)


def _trips(bounds: list[Interval]) -> range | None:
    low, high, step = bounds
    known = all(bound.uniform and bound.base is None for bound in bounds)
    return range(low.least, high.least, step.least) if known and step.least > 0 else None


def _counter(machine: Machine, bounds: list[Interval], width: int) -> Interval:
    """From the lower bound to below the upper one; scf.for counts up without wrapping."""
    low, high, _ = bounds
    if low.base is not None or high.base is not None:
        return machine.domain.intervals.top(width)
    last = np.maximum(low.low, high.high - 1)
    return machine.domain.intervals.of(np.broadcast_to(low.low, last.shape).copy(), last)


def while_loop(
    machine: Machine, item: Instruction, values: tuple[Value, ...], state: Registers, mask: Mask
) -> None:
    """scf.while: the part before the condition, then, while it holds, the part after."""
    before, after = item.regions
    last = list[tuple[Value, ...]]()

    def once(current: tuple[Value, ...], inner: Registers) -> tuple[Value, ...]:
        _bind(machine, before.arguments, current)
        ends = machine.execute(before, inner, mask)
        last.append(ends[1:])
        exits = inner.copy()
        condition = machine.domain.as_interval(ends[0], 1)
        going, _ = machine.domain.split(condition, mask)
        if going.any:
            _bind(machine, after.arguments, ends[1:])
            current = machine.execute(after, inner, going)
        # The state at the exit is the one before the second part ran.
        inner.become(private.join(machine.domain, exits, inner))
        return current

    _stable(machine, item, before.types, values, state, once)
    _bind(machine, item.results, last[-1])


def _stable(
    machine: Machine,
    item: Instruction,
    kinds: tuple[Type, ...],
    carried: tuple[Value, ...],
    state: Registers,
    once: Callable[[tuple[Value, ...], Registers], tuple[Value, ...]],
) -> tuple[Value, ...]:
    """Run a body until what it carries and what registers hold hold for any number of trips."""
    domain = machine.domain
    for count in range(machine.limits.joins):
        inner = state.copy()
        after = once(carried, inner)
        joined = tuple(map(domain.join, carried, after))
        if count >= _WIDEN_AFTER:
            joined = tuple(
                _widened(machine, kind, old, new)
                for kind, old, new in zip(kinds, carried, joined, strict=True)
            )
        merged = private.join(domain, state, inner, widen=count >= _WIDEN_AFTER)
        # Numbers are interned: equal ones are the same object.
        stable = private.same(state, merged) and carried == joined
        carried = joined
        state.become(merged)
        if stable:
            return carried
        machine.check_memory(item)
    raise OutOfReach(f"a loop is not stable after {machine.limits.joins} runs of its body", item)


def _widened(machine: Machine, kind: Type, old: Value, new: Value) -> Value:
    if isinstance(old, Interval) and isinstance(new, Interval) and isinstance(kind, Scalar):
        return machine.domain.intervals.widen(old, new, kind.width)
    if isinstance(old, Pointer) and isinstance(new, Pointer) and old != new:
        return Pointer(new.region, machine.domain.intervals.top(64))
    if isinstance(old, tuple) and isinstance(new, tuple):
        element = element_of(kind)
        return tuple(
            machine.domain.intervals.widen(first, second, element.width)
            if isinstance(first, Interval) and isinstance(second, Interval)
            else second
            for first, second in zip(old, new, strict=True)
        )
    return new


def _bind(machine: Machine, numbers: tuple[int, ...], values: tuple[Value, ...]) -> None:
    for number, value in zip(numbers, values, strict=True):
        machine.env[number] = value


CONTROL: dict[str, Effect] = {
    "arith.select": refining_select,
    "scf.if": branch,
    "scf.for": counted_loop,
    "scf.while": while_loop,
}
