"""Mistakes of kinds that `tests.protocol_mutants` has not, in kernels that
epilogue-warp-specialize has built in its four schemes.

A few are none: the first wait for what is free anyway, the slot that is arrived at one trip later,
which of two slots of C comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.matmul_mutants import source_for_tma, stages
from tilepass.activate import enabled
from tilepass.ir import engine
from tilepass.ir.engine import Module, Operation, ir

SCHEMES = ("cooperative", "ping-pong", "split-consumer")
_LOOPS = ("scf.for", "scf.while")

Change = Callable[[Operation], None]


@dataclass(frozen=True)
class SchemeMutant:
    """A change of the `index`-th operation of a module."""

    name: str
    kind: str
    index: int
    change: Change

    def apply(self, module: Module) -> Module:
        """A changed copy."""
        copy = engine.parse(engine.print_generic(module))
        self.change(engine.operations(copy)[self.index])
        return copy


def built(scheme: str) -> Module:
    """A persistent matmul under a scheme, at the end of ttgir."""
    large = scheme == "split-consumer"
    block = (128, 128, 64) if large else (64, 64, 64)
    with enabled(f"epilogue-warp-specialize{{scheme={scheme}}}", remarks="none"):
        return stages(source_for_tma(block), "ttgir", 8 if large else 4)


def scheme_mutants(module: Module) -> list[SchemeMutant]:
    """All of them."""
    found: list[SchemeMutant] = []
    for index, operation in enumerate(engine.operations(module)):
        for kind, what, change in _changes(operation):
            short = operation.name.split(".")[1]
            found.append(SchemeMutant(f"{short}#{index}: {what}", kind, index, change))
    return found


def _changes(operation: Operation) -> Iterator[tuple[str, str, Change]]:
    name = operation.name
    if name == "ttng.init_barrier":
        yield "count", "count doubled", _scaled("count", 2)
        if _attribute(operation, "count") > 1:
            yield "count", "count 1", _with("count", 1)
    elif name == "ttng.barrier_expect":
        yield "bytes", "half the bytes", _halved
        yield "bytes", "twice the bytes", _scaled("size", 2)
        yield "predicate", "only in the first trip", _only_in_first_trip
        yield "predicate", "not in the first trip", _not_in_first_trip
    elif name == "ttng.arrive_barrier":
        if _loop_of(operation) is not None:
            # With a predicate that is what it means already.
            if len(operation.operands) == 1:
                yield "border", "not in the first trip", _skipped(first=True)
            yield "border", "only in the first trip", _skipped(first=False)
        yield "arrival", "at the next barrier", _shifted
    elif name == "ttng.wait_barrier":
        if _loop_of(operation) is not None:
            yield "border", "not in the first trip", _skipped(first=True)
            yield "border", "only in the first trip", _skipped(first=False)
        yield "wait", "for the next barrier", _shifted
        yield "wait", "after the next access", _later
    elif name == "ttng.async_tma_copy_global_to_local":
        yield "slot", "into the next slot", _shifted_buffer
        yield "predicate", "only in the first trip", _only_in_first_trip
    elif name in ("ttng.async_tma_store_wait", "ttng.warp_group_dot_wait"):
        yield "pendings", "waits for nothing", _with("pendings", 7)
    elif name in _LOOPS:
        yield from _carried(operation)
    elif name == "scf.if" and _steers(operation):
        yield "branch", "the other branch", _negated
        yield "branch", "always taken", _always(1)
        yield "branch", "never taken", _always(0)


def _carried(loop: Operation) -> Iterator[tuple[str, str, Change]]:
    """What a loop carries from trip to trip: slots, parities, counts."""
    if loop.name != "scf.for":
        return
    end = list(loop.regions[0].blocks[0].operations)[-1].operation
    for position, value in enumerate(end.operands):
        if str(value.type) != "i32" or not _is_of_ring(loop, position):
            continue
        yield "carried", f"value {position} begins anew", _begins_anew(position)
        yield "carried", f"value {position} begins elsewhere", _begins_elsewhere(position)


def _is_of_ring(loop: Operation, position: int) -> bool:
    """Whether a carried value leads to a barrier's slot or parity."""
    argument = loop.regions[0].blocks[0].arguments[position + 1]
    return _reaches(argument, ("ttng.wait_barrier", "ttg.memdesc_index"), 6)


def _reaches(value: ir.Value, names: tuple[str, ...], depth: int) -> bool:
    following: list[ir.Value] = []
    for use in value.uses:
        user: Any = getattr(use.owner, "operation", use.owner)
        if user.name in names:
            return True
        if user.name == "scf.for" and use.operand_number > 2:
            following.append(user.regions[0].blocks[0].arguments[use.operand_number - 2])
        elif user.name.startswith("arith."):
            following += user.results
    return depth > 0 and any(_reaches(each, names, depth - 1) for each in following)


def _steers(branch: Operation) -> bool:
    """Whether an `scf.if` holds operations on barriers; without any it only decides on values."""
    names = ("ttng.wait_barrier", "ttng.arrive_barrier", "ttng.barrier_expect")
    return any(each.name in names for each in engine.operations(branch))


def _attribute(operation: Operation, name: str) -> int:
    attribute: Any = operation.attributes[name]
    return attribute.value


def _with(name: str, value: int) -> Change:
    def change(operation: Operation) -> None:
        old: Any = operation.attributes[name]
        operation.attributes[name] = ir.IntegerAttr.get(old.type, value)

    return change


def _scaled(name: str, by: int) -> Change:
    return lambda operation: _with(name, by * _attribute(operation, name))(operation)


def _halved(operation: Operation) -> None:
    _with("size", _attribute(operation, "size") // 2)(operation)


def _constant(type_: ir.Type, value: int, before: Operation) -> ir.Value:
    return _made("arith.constant", [], type_, before, value=ir.IntegerAttr.get(type_, value))


def _made(
    name: str, operands: list[ir.Value], type_: ir.Type, before: Operation, **attributes: Any
) -> ir.Value:
    return Operation.create(
        name,
        results=[type_],
        operands=operands,
        attributes=attributes,
        loc=before.location,
        ip=ir.InsertionPoint(before),
    ).results[0]


def _loop_of(operation: Operation) -> Operation | None:
    outer = operation.parent
    while outer is not None and outer.name not in ("tt.func", "ttg.warp_specialize"):
        if outer.name == "scf.for":
            return outer.operation
        outer = outer.operation.parent
    return None


def _first_trip(operation: Operation, first: bool) -> ir.Value:
    """Whether the innermost loop around is in its first trip, or is not."""
    loop = _loop_of(operation)
    assert loop is not None
    induction = loop.regions[0].blocks[0].arguments[0]
    boolean = ir.IntegerType.get_signless(1, operation.context)
    number = ir.IntegerType.get_signless(64, operation.context)
    predicate = ir.IntegerAttr.get(number, 0 if first else 1)
    operands = [induction, loop.operands[0]]
    return _made("arith.cmpi", operands, boolean, operation, predicate=predicate)


def _skipped(first: bool) -> Change:
    """Put an operation under a condition: not in the first trip, or only there."""

    def change(operation: Operation) -> None:
        condition = _first_trip(operation, not first)
        branch = Operation.create(
            "scf.if", operands=[condition], regions=2, loc=operation.location,
            ip=ir.InsertionPoint(operation),
        )  # fmt: skip
        block = branch.regions[0].blocks.append()
        end = Operation.create("scf.yield", loc=operation.location, ip=ir.InsertionPoint(block))
        operation.move_before(end)

    return change


def _predicated(first: bool) -> Change:
    def change(operation: Operation) -> None:
        boolean = ir.IntegerType.get_signless(1, operation.context)
        condition = _first_trip(operation, first)
        at = max(i for i, v in enumerate(operation.operands) if str(v.type) == "i1")
        both = [operation.operands[at], condition]
        operation.operands[at] = _made("arith.andi", both, boolean, operation)

    return change


_only_in_first_trip, _not_in_first_trip = _predicated(True), _predicated(False)


def _shift(view: Any, before: Operation) -> None:
    """Let a view of a ring's slot be that of the next one."""
    slots = int(str(view.operands[0].type).split("<")[1].split("x")[0])
    type_ = view.operands[1].type
    one = _constant(type_, 1, view)
    more = _made("arith.addi", [view.operands[1], one], type_, view)
    view.operands[1] = _made("arith.remsi", [more, _constant(type_, slots, view)], type_, view)


def _own_view(operation: Operation, position: int) -> None:
    """Give an operand that is a slot of a ring a view of the next slot."""
    owner: Any = operation.operands[position].owner
    copy = owner.operation.clone(ir.InsertionPoint(operation))
    _shift(copy, operation)
    operation.operands[position] = copy.results[0]


def _views(operation: Operation) -> list[int]:
    return [
        at
        for at, value in enumerate(operation.operands)
        if not isinstance(value.owner, ir.Block)
        and getattr(value.owner, "name", "") == "ttg.memdesc_index"
        and not str(value.owner.operands[0].type).startswith("!ttg.memdesc<1x")
    ]


def _shifted(operation: Operation) -> None:
    _own_view(operation, _views(operation)[0])


def _shifted_buffer(operation: Operation) -> None:
    _own_view(operation, _views(operation)[-1])


def _later(operation: Operation) -> None:
    """Move a wait behind the next operation that does something."""
    following = [each.operation for each in operation.block.operations]
    rest = following[following.index(operation) + 1 :]
    target = next(each for each in rest if each.name.startswith(("ttng.", "ttg.local")))
    operation.move_after(target)


def _begins_anew(position: int) -> Change:
    def change(loop: Operation) -> None:
        end = list(loop.regions[0].blocks[0].operations)[-1].operation
        end.operands[position] = loop.operands[3 + position]

    return change


def _begins_elsewhere(position: int) -> Change:
    def change(loop: Operation) -> None:
        old = loop.operands[3 + position]
        loop.operands[3 + position] = _made(
            "arith.xori", [old, _constant(old.type, 1, loop)], old.type, loop
        )

    return change


def _negated(branch: Operation) -> None:
    old = branch.operands[0]
    branch.operands[0] = _made(
        "arith.xori", [old, _constant(old.type, 1, branch)], old.type, branch
    )


def _always(value: int) -> Change:
    def change(branch: Operation) -> None:
        branch.operands[0] = _constant(branch.operands[0].type, value, branch)

    return change
