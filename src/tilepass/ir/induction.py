"""Scalars that a loop carries and that are functions of its induction variable.

Before:
    %0 = scf.for %i = %lower to %upper step %step iter_args(%n = %first) -> (i32) {
      ... %n ...
      %next = arith.addi %n, %more
      scf.yield %next
    }
After:
    scf.for %i = %lower to %upper step %step {
      %trip = arith.divui (arith.subi %i, %lower), %step
      %n = arith.addi %first, (arith.muli %trip, %more)
      ... %n ...
    }

What is computed from the variable itself is one trip behind:
    scf.for %i ... iter_args(%n = %first) { ...; scf.yield (arith.addi %i, %more) }
has %n = %first where %i is %lower, and %i - %step + %more elsewhere.

Sound for integers of any width, wrapped around or not: in trip t the variable is lower + t * step
and the carried value first + t * more, both modulo their own width. Where `more` is k times `step`,
as a value or as constants, the value is first + k * (i - lower), without the division. Else, and
where the widths differ, i - lower must be t * step as it stands: it is, unsigned, as the variable
of a loop stays below a bound of its own width.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilepass.ir.build import Builder, all_attributes
from tilepass.ir.engine import Operation, ir
from tilepass.ir.loops import Carried, Loop, constant_int, defining_operation
from tilepass.ir.walks import is_used


@dataclass(frozen=True)
class Count:
    """A carried scalar: the next value is this one, or the induction variable (`is_behind`), with
    `added` less `taken`, all known before the loop. `chain` computes it, the last first."""

    carried: Carried
    is_behind: bool
    added: tuple[ir.Value, ...]
    taken: tuple[ir.Value, ...]
    chain: tuple[Operation, ...]


def counts_of(loop: Loop) -> list[Count]:
    """The counts among what a loop carries, those left out that are used behind it."""
    if not isinstance(loop.induction_variable.type, ir.IntegerType):
        return []
    found = (_count(loop, each) for each in loop.carried if not any(True for _ in each.result.uses))
    return [each for each in found if each is not None]


def without_counts(loop: Loop) -> Loop:
    """The loop with its counts computed from the induction variable; the same where it has none."""
    counts = counts_of(loop)
    if not counts:
        return loop
    begin = Builder(ir.InsertionPoint.at_block_begin(loop.body), loop.operation.location)
    for each in counts:
        each.carried.argument.replace_all_uses_with(_value(loop, each, begin))
    arguments = [each.carried.argument for each in counts]
    kept = [each for each in loop.carried if each.argument not in arguments]
    successor = _carrying(loop, kept)
    for each in (operation for count in counts for operation in count.chain):
        if not is_used(each):
            each.erase()
    return successor


def _count(loop: Loop, carried: Carried) -> Count | None:
    if not isinstance(carried.argument.type, ir.IntegerType):
        return None
    added, taken, chain = list[ir.Value](), list[ir.Value](), list[Operation]()
    value = carried.yielded
    while value not in (carried.argument, loop.induction_variable):
        operation = defining_operation(value)
        if operation is None or operation.block != loop.body:
            return None
        chain.append(operation)
        if operation.name not in ("arith.addi", "arith.subi"):
            return None
        left, right = operation.operands
        if operation.name == "arith.addi" and not loop.defines(left):
            left, right = right, left
        if loop.defines(right):
            return None
        (added if operation.name == "arith.addi" else taken).append(right)
        value = left
    is_behind = value != carried.argument
    return Count(carried, is_behind, tuple(added), tuple(taken), tuple(chain))


def _value(loop: Loop, count: Count, builder: Builder) -> ir.Value:
    """The carried value in a trip, from the loop's induction variable."""
    first, kind = count.carried.initial, count.carried.argument.type
    if count.is_behind:
        return _behind(loop, count, builder)
    factor = _factor(loop, count)
    is_variable = factor == 1 and loop.lower_bound.type == kind
    if is_variable and (value := _as_far_on(loop, first, builder)) is not None:
        return value
    gone = loop.induction_variable
    if constant_int(loop.lower_bound) != 0:
        gone = builder.integer("subi", gone, loop.lower_bound)
    if factor is None:
        trip = _resized(builder.integer("divui", gone, loop.step), kind, builder)
        return builder.integer("addi", first, builder.integer("muli", trip, _more(count, builder)))
    gone = _resized(gone, kind, builder)
    if factor != 1:
        gone = builder.integer("muli", gone, builder.constant(factor, kind))
    return builder.integer("addi", first, gone)


def _behind(loop: Loop, count: Count, builder: Builder) -> ir.Value:
    """What the trip before computed from its induction variable."""
    before = builder.integer("subi", loop.induction_variable, loop.step)
    value = builder.integer("addi", before, _more(count, builder))
    is_first = builder.compare("eq", loop.induction_variable, loop.lower_bound)
    return builder.select(is_first, count.carried.initial, value)


def _as_far_on(loop: Loop, first: ir.Value, builder: Builder) -> ir.Value | None:
    """The value from the lower bound on as far as `first` is from it, where that is seen."""
    if first == loop.lower_bound:
        return loop.induction_variable
    operation = defining_operation(first)
    if operation is None or operation.name not in ("arith.addi", "arith.subi"):
        return None
    left, right = operation.operands
    if operation.name == "arith.addi" and right == loop.lower_bound:
        left, right = right, left
    if left != loop.lower_bound:
        return None
    name = "addi" if operation.name == "arith.addi" else "subi"
    return builder.integer(name, loop.induction_variable, right)


def _factor(loop: Loop, count: Count) -> int | None:
    """How many steps of the loop each trip adds, None where that is no whole number, or not
    known."""
    step = constant_int(loop.step)
    more = 0
    for sign, values in ((1, count.added), (-1, count.taken)):
        for value in values:
            constant = constant_int(value)
            if value == loop.step:
                more += sign
            elif step is not None and step > 0 and constant is not None and constant % step == 0:
                more += sign * (constant // step)
            else:
                return None
    return more


def _more(count: Count, builder: Builder) -> ir.Value:
    """What a trip adds."""
    more = builder.constant(0, count.carried.argument.type)
    for value in count.added:
        more = builder.integer("addi", more, value)
    for value in count.taken:
        more = builder.integer("subi", more, value)
    return more


def _resized(value: ir.Value, kind: ir.Type, builder: Builder) -> ir.Value:
    """An unsigned number in another width, what does not fit cut off."""
    before, after = ir.IntegerType(value.type).width, ir.IntegerType(kind).width
    if before == after:
        return value
    return builder.cast("extui" if before < after else "trunci", value, kind)


def _carrying(loop: Loop, kept: list[Carried]) -> Loop:
    """A loop with the same body that carries these alone, in the loop's place."""
    before, terminator = loop.operation, loop.terminator
    successor = Builder.before(before).loop(
        loop.lower_bound,
        loop.upper_bound,
        loop.step,
        [each.initial for each in kept],
        all_attributes(before),
    )
    yielded = [each.yielded for each in kept]
    sources = [loop.induction_variable, *(each.argument for each in kept)]
    for source, argument in zip(sources, list(successor.body.arguments), strict=True):
        source.replace_all_uses_with(argument)
        yielded = [argument if each == source else each for each in yielded]
    for each in [view.operation for view in loop.body]:
        if each != terminator:
            successor.body.append(each)
    Builder.at_end(successor.body, terminator.location).yield_(yielded)
    for source, result in zip(kept, list(successor.operation.results), strict=True):
        source.result.replace_all_uses_with(result)
    before.erase()
    return successor
