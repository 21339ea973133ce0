"""Views of loop nests: bounds, carried values, and what stands around inner loops."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilepass.ir import engine
from tilepass.ir.engine import ir
from tilepass.ir.walks import ancestors

FOR = "scf.for"


@dataclass(frozen=True)
class Carried:
    """A value that a loop carries: into the first trip, inside a trip, into the next, out."""

    initial: ir.Value
    argument: ir.BlockArgument
    yielded: ir.Value
    result: ir.OpResult


@dataclass(frozen=True)
class Loop:
    """An `scf.for`. Two views of one operation are equal."""

    operation: ir.Operation

    @property
    def lower_bound(self) -> ir.Value:
        """The induction variable in the first trip."""
        return self.operation.operands[0]

    @property
    def upper_bound(self) -> ir.Value:
        """What the induction variable stays below."""
        return self.operation.operands[1]

    @property
    def step(self) -> ir.Value:
        """What each trip adds; positive by the semantics of the operation."""
        return self.operation.operands[2]

    @property
    def body(self) -> ir.Block:
        """The block of one trip."""
        return self.operation.regions[0].blocks[0]

    @property
    def induction_variable(self) -> ir.BlockArgument:
        """The first argument of the body."""
        return self.body.arguments[0]

    @property
    def terminator(self) -> ir.Operation:
        """The `scf.yield` of the body."""
        operations = self.body.operations
        return operations[len(operations) - 1].operation

    @property
    def carried(self) -> tuple[Carried, ...]:
        """The carried values in order."""
        arguments = self.body.arguments
        return tuple(
            Carried(initial, arguments[index + 1], yielded, self.operation.results[index])
            for index, (initial, yielded) in enumerate(
                zip(self.operation.operands[3:], self.terminator.operands, strict=True)
            )
        )

    @property
    def trip_count(self) -> int | None:
        """The number of trips where the bounds and the step are constants, else None.

        Bounds below zero of a loop that counts unsigned are large numbers: None, too.
        """
        lower, upper, step = map(constant_int, (self.lower_bound, self.upper_bound, self.step))
        if lower is None or upper is None or step is None or step <= 0:
            return None
        if self.attribute("unsignedCmp") is not None and min(lower, upper) < 0:
            return None
        return max(0, -((lower - upper) // step))

    @property
    def parent(self) -> Loop | None:
        """The nearest loop around this one, through any other operation."""
        around = ancestors(self.operation)
        return next((Loop(each) for each in around if each.name == FOR), None)

    @cached_property
    def inner(self) -> tuple[Loop, ...]:
        """The loops directly inside, also those in an `scf.if`, not those in another loop."""
        return tuple(loop for loop in loops_in(self.operation) if loop.parent == self)

    @property
    def depth(self) -> int:
        """The number of loops around this one."""
        return 0 if self.parent is None else self.parent.depth + 1

    def attribute(self, name: str) -> ir.Attribute | None:
        """An attribute of the operation (`tt.num_stages`, `tt.flatten`, ...), None if absent."""
        return self.operation.attributes.get(name)

    def defines(self, value: ir.Value) -> bool:
        """Whether `value` is defined inside: an argument of the body or computed in it."""
        return is_inside(value, self.operation)

    def __hash__(self) -> int:
        return hash(self.operation)


@dataclass(frozen=True)
class LoopNest:
    """A loop whose body holds one loop or more as operations of its own block.

    `sections` has one element more than `inner`: the operations before the first inner loop,
    those between two, and those after the last, the terminator left out.
    """

    outer: Loop
    inner: tuple[Loop, ...]
    sections: tuple[tuple[ir.Operation, ...], ...]

    @property
    def before(self) -> tuple[ir.Operation, ...]:
        """The operations of the outer body before its first inner loop: the prologue."""
        return self.sections[0]

    @property
    def between(self) -> tuple[ir.Operation, ...]:
        """The operations between inner loops."""
        return tuple(operation for section in self.sections[1:-1] for operation in section)

    @property
    def after(self) -> tuple[ir.Operation, ...]:
        """The operations after the last inner loop: the epilogue."""
        return self.sections[-1]


def loops_in(root: engine.Module | ir.Operation) -> list[Loop]:
    """All loops inside `root`, `root` itself excluded, outer ones before inner ones."""
    found = [op for op in engine.operations(root) if op.name == FOR]
    return [Loop(operation) for operation in found if operation != root.operation]


def outermost_loops(root: engine.Module | ir.Operation) -> list[Loop]:
    """The loops inside `root` around which there is no other."""
    return [loop for loop in loops_in(root) if loop.parent is None]


def nest_of(loop: Loop) -> LoopNest | None:
    """The nest that `loop` is the outer loop of; None if its own block holds no loop."""
    inner: list[Loop] = []
    sections: list[list[ir.Operation]] = [[]]
    for view in loop.body:
        operation = view.operation
        if operation.name == FOR:
            inner.append(Loop(operation))
            sections.append([])
        elif operation != loop.terminator:
            sections[-1].append(operation)
    return LoopNest(loop, tuple(inner), tuple(map(tuple, sections))) if inner else None


def constant_int(value: ir.Value) -> int | None:
    """The value of an integer `arith.constant`, None for anything else."""
    operation = defining_operation(value)
    if operation is None or operation.name != "arith.constant":
        return None
    attribute = operation.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def defining_operation(value: ir.Value) -> ir.Operation | None:
    """The operation that `value` is a result of, None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def is_inside(value: ir.Value, operation: ir.Operation) -> bool:
    """Whether `value` is defined in a region of `operation`, at any depth."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        around = owner.owner.operation
        return around == operation or is_inside_operation(around, operation)
    return is_inside_operation(owner.operation, operation)


def backward_slice(values: list[ir.Value], within: ir.Operation) -> list[ir.Operation]:
    """The operations inside `within` that `values` are computed from, users before definitions.

    Block arguments end the slice. An operation with regions stands for all that is inside it,
    whose operands are followed too.
    """
    found: dict[ir.Operation, None] = {}
    waiting = list(values)
    while waiting:
        operation = defining_operation(waiting.pop())
        if operation is None or operation in found or not is_inside_operation(operation, within):
            continue
        found[operation] = None
        for inner in engine.operations(operation):
            waiting.extend(inner.operands)
    return list(found)


def is_inside_operation(operation: ir.Operation, around: ir.Operation) -> bool:
    """Whether `operation` is in a region of `around`, at any depth."""
    return around in ancestors(operation)
