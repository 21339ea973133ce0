"""The table of operations: for each name a function that makes its step at compile time, from the
operation's site: slots of operands and results, types, attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeVar

from tilepass.ir import engine
from tilepass.ir.engine import ir
from tilepass.sim.coverage import Spot
from tilepass.sim.elements import Element, ValueType, value_type
from tilepass.sim.poison import Function
from tilepass.sim.region import Body
from tilepass.sim.state import Frame, Step, Suspending

MakeStep = Callable[["Site"], Step | Suspending]
MakeStepT = TypeVar("MakeStepT", bound=MakeStep)
OPERATIONS: dict[str, MakeStep] = {}


class CannotSimulate(Exception):
    """Raised by a step maker for an operation that is known but not in this form."""


def operation(*names: str) -> Callable[[MakeStepT], MakeStepT]:
    """Enter a step maker for the operations of these names."""

    def enter(make: MakeStepT) -> MakeStepT:
        OPERATIONS.update(dict.fromkeys(names, make))
        return make

    return enter


class Callee(Protocol):
    """A function of the module, compiled or about to be."""

    body: Body
    compiled: bool
    name: str

    def frame(self, state: object) -> Frame: ...


class Compiled(Protocol):
    """The program that a function is compiled for."""

    spots: list[Spot]

    def function(self, name: str, lifted: bool = False) -> Callee: ...


class Compiler(Protocol):
    """The compilation of one function, as its step makers use it."""

    rings: dict[int, Spot]

    @property
    def program(self) -> Compiled: ...
    def slot(self, value: ir.Value) -> int: ...
    def region(self, region: ir.Region, lifted: bool) -> Body: ...


class Site:
    """One operation of a function that is being compiled.

    `lifted`: it is in a combiner, whose scalars are whole arrays at run time.
    """

    def __init__(self, compiler: Compiler, operation: engine.Operation, lifted: bool) -> None:
        self.compiler = compiler
        self.operation = operation
        self.name = operation.name
        self.lifted = lifted
        self.operands = tuple(compiler.slot(value) for value in operation.operands)
        self.results = tuple(compiler.slot(value) for value in operation.results)

    @cached_property
    def operand_types(self) -> tuple[ValueType, ...]:
        return tuple(value_type(str(value.type)) for value in self.operation.operands)

    @cached_property
    def result_types(self) -> tuple[ValueType, ...]:
        return tuple(value_type(str(value.type)) for value in self.operation.results)

    @property
    def result(self) -> int:
        """The slot of the only result."""
        (slot,) = self.results
        return slot

    @property
    def result_type(self) -> ValueType:
        """The type of the first result."""
        return self.result_types[0]

    @property
    def element(self) -> Element:
        """The element type of the first result."""
        return self.result_types[0].of

    def arrays(self, type_: ValueType) -> bool:
        """Whether values of this type are numpy arrays here."""
        return type_.form == "tensor" or self.lifted

    def attribute(self, name: str) -> Any:
        """An attribute or property, None if absent."""
        return self.operation.attributes.get(name)

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute."""
        attribute = self.attribute(name)
        if attribute is None and default is not None:
            return default
        if not isinstance(attribute, ir.IntegerAttr):
            raise CannotSimulate(f"without an integer '{name}'")
        return attribute.value

    def flag(self, name: str) -> bool:
        """A boolean or unit attribute; absent means false."""
        attribute = self.attribute(name)
        if isinstance(attribute, ir.BoolAttr):
            return bool(attribute.value)
        return attribute is not None

    def text(self, name: str) -> str:
        """A string attribute, or any other as text; absent means empty."""
        attribute = self.attribute(name)
        if isinstance(attribute, ir.StringAttr):
            return attribute.value
        return "" if attribute is None else str(attribute)

    def integers(self, name: str) -> tuple[int, ...]:
        """An array of integers."""
        return tuple(int(each) for each in self.attribute(name))

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """The slots of the operands by `operandSegmentSizes`."""
        slots, found = list(self.operands), list[tuple[int, ...]]()
        for size in self.integers("operandSegmentSizes"):
            found.append(tuple(slots[:size]))
            del slots[:size]
        return found

    def optional(self, group: int) -> int | None:
        """The slot of an operand that may be absent."""
        slots = self.groups[group]
        return slots[0] if slots else None

    def type_of(self, slot: int) -> ValueType:
        """The type of the operand in a slot."""
        return self.operand_types[self.operands.index(slot)]

    def body(self, region: int, lifted: bool = False) -> Body:
        """A region, compiled."""
        return self.compiler.region(self.operation.regions[region], lifted or self.lifted)

    def spot(self, size: int = 0) -> Spot:
        """The operation as one whose executions are counted, entered into the program's list."""
        spot = Spot.of(self.operation, size)
        self.compiler.program.spots.append(spot)
        return spot

    def compute(self, function: Function) -> Step:
        """The step that stores `function(*operands)` as the only result."""
        return computing(self.result, self.operands, function)

    def is_constant(self, operand: int) -> bool:
        """Whether an operand is a constant of the module."""
        owner: Any = self.operation.operands[operand].owner
        return not isinstance(owner, ir.Block) and owner.name == "arith.constant"

    def refuse(self, reason: str) -> CannotSimulate:
        """The exception for a form of the operation that is not simulated."""
        return CannotSimulate(reason)


def computing(result: int, operands: Sequence[int], given: Function) -> Step:
    """The step that stores a function of some slots in another."""
    function: Callable[..., Any] = given
    if len(operands) == 1:
        (a,) = operands

        def one(frame: Frame) -> None:
            frame[result] = function(frame[a])

        return one
    if len(operands) == 2:
        a, b = operands

        def two(frame: Frame) -> None:
            frame[result] = function(frame[a], frame[b])

        return two

    def many(frame: Frame) -> None:
        frame[result] = function(*[frame[slot] for slot in operands])

    return many
