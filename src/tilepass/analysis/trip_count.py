"""What is known of an `scf.for`'s trip count without running it."""

from __future__ import annotations

from typing import Literal

from tilepass.analysis.bounds import Bounds, bounds_of
from tilepass.ir.engine import Operation, ir
from tilepass.ir.loops import Loop, constant_int, defining_operation
from tilepass.ir.walks import dominates, users

Order = Literal["above", "not-below", "unknown"]
"""How an upper bound relates to the lower one: `above` is at least one trip, `not-below` is none
or more, `unknown` includes an upper bound below the lower one."""

# Predicates of arith.cmpi by whether the loop counts unsigned, and what says so of swapped
# operands.
_ABOVE = {False: 4, True: 8}  # sgt, ugt
_NOT_BELOW = {False: 5, True: 9}  # sge, uge
_MIRRORED = {2: 4, 3: 5, 6: 8, 7: 9}


def counts_unsigned(loop: Loop) -> bool:
    """Whether the loop compares its bounds as unsigned numbers."""
    return loop.attribute("unsignedCmp") is not None


def proven_order(loop: Loop) -> Order:
    """What constants, `max` and the assumptions in force at the loop prove of its bounds."""
    if loop.trip_count:
        return "above"
    assumed = [
        order for order, assumption in assumptions(loop) if dominates(assumption, loop.operation)
    ]
    if "above" in assumed:
        return "above"
    if "not-below" in assumed:
        return "not-below"
    return _order_by_max(loop)


def count_bounds(loop: Loop) -> Bounds:
    """Between which numbers a loop's trip count is, whatever the width that it is computed in."""
    lower, upper, step = (
        bounds_of(each, loop.operation) for each in (loop.lower_bound, loop.upper_bound, loop.step)
    )
    least = -((lower.greatest - upper.least) // max(1, step.greatest))
    greatest = -((lower.least - upper.greatest) // max(1, step.least))
    return Bounds(max(0, least), max(0, greatest))


def never_below(loop: Loop) -> bool:
    """Whether the upper bound is sure not to be below the lower one, or to be so close that
    dividing their distance by the step gives zero."""
    if proven_order(loop) != "unknown":
        return True
    lower, upper = (
        bounds_of(each, loop.operation) for each in (loop.lower_bound, loop.upper_bound)
    )
    return upper.least >= (0 if _shares_the_grid(loop) else lower.greatest)


def _shares_the_grid(loop: Loop) -> bool:
    """Whether a loop goes from a program's id in steps of the number of programs."""
    one, all_of_them = defining_operation(loop.lower_bound), defining_operation(loop.step)
    return (
        one is not None
        and all_of_them is not None
        and (one.name, all_of_them.name) == ("tt.get_program_id", "tt.get_num_programs")
        and one.attributes["axis"] == all_of_them.attributes["axis"]
    )


def assumptions(loop: Loop) -> list[tuple[Order, Operation]]:
    """The `llvm.intr.assume`s that compare the loop's upper bound with its lower one, anywhere."""
    lower, upper = loop.lower_bound, loop.upper_bound
    found: list[tuple[Order, Operation]] = []
    for compare in users(upper):
        if compare.name != "arith.cmpi":
            continue
        order = _compared(compare, lower, upper, counts_unsigned(loop))
        if order != "unknown":
            uses = users(compare.result)
            found.extend((order, use) for use in uses if use.name == "llvm.intr.assume")
    return found


def _compared(compare: Operation, lower: ir.Value, upper: ir.Value, unsigned: bool) -> Order:
    """What a comparison of the upper bound with the lower one, or with a constant, says if true."""
    predicate = compare.attributes["predicate"]
    assert isinstance(predicate, ir.IntegerAttr)
    other, code = compare.operands[1], predicate.value
    if other == upper:
        other, code = compare.operands[0], _MIRRORED.get(code)
    if code not in (_ABOVE[unsigned], _NOT_BELOW[unsigned]):
        return "unknown"
    strict = code == _ABOVE[unsigned]
    if other == lower:
        return "above" if strict else "not-below"
    least, start = constant_int(other), constant_int(lower)
    if least is None or start is None or min(least, start) < 0:
        return "unknown"
    return _order_of(least + strict, start)


def _order_of(least: int, lower: int) -> Order:
    """The order of an upper bound that is `least` or more to a constant lower bound."""
    if least > lower:
        return "above"
    return "not-below" if least == lower else "unknown"


def _order_by_max(loop: Loop) -> Order:
    """The upper bound is the maximum of something and the lower bound, or of a constant above."""
    lower, upper = loop.lower_bound, loop.upper_bound
    source = defining_operation(upper)
    if source is None or source.name != ("arith.maxui" if counts_unsigned(loop) else "arith.maxsi"):
        return "unknown"
    start = constant_int(lower)
    for operand in source.operands:
        constant = constant_int(operand)
        if operand == lower:
            return "not-below"
        if start is not None and constant is not None and min(start, constant) >= 0:
            order = _order_of(constant, start)
            if order != "unknown":
                return order
    return "unknown"
