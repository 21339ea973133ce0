"""Compiling functions into steps: each value gets a slot of the frame, each operation a step."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

from tilepass.core.diagnostics import Diagnostic
from tilepass.core.errors import ParseError, TilepassError
from tilepass.ir import engine
from tilepass.ir.engine import ir
from tilepass.ir.values import plain_values
from tilepass.sim.coverage import Spot
from tilepass.sim.elements import ValueType, value_type
from tilepass.sim.faults import UnsupportedOperationsError, raise_blaming
from tilepass.sim.region import Block, Body, Exit
from tilepass.sim.roles import Role, roles_of
from tilepass.sim.site import OPERATIONS, CannotSimulate, Site
from tilepass.sim.state import Frame, Step, Suspending

for _family in (
    "arith", "math", "scf", "tt_memory", "tt_shape", "tt_reduce", "tt_other", "descriptors",
    "dot", "ttg", "ttng", "amd",
):  # fmt: skip
    import_module(f"tilepass.sim.ops_{_family}")

ENDS = frozenset(
    ("scf.yield", "scf.condition", "tt.return", "tt.reduce.return", "tt.scan.return",
     "tt.map_elementwise.return", "ttg.warp_yield", "ttg.warp_return")
)  # fmt: skip
"""The terminators that hand their operands to the operation around them."""

_DIVISIBILITY = "tt.divisibility"
_ARGUMENT_NAME = re.compile(r'loc\("([^"]+)"(?:\(|\))')


@dataclass(frozen=True)
class Parameter:
    """An argument of a kernel; `divisibility` is what its callers promise, 1 for nothing."""

    name: str
    type: ValueType
    divisibility: int = 1


class Function:
    """A `tt.func`. The body is there as soon as it is `compiled`, with all that it calls."""

    body: Body

    def __init__(self, name: str) -> None:
        self.name = name
        self.slots = 1
        self.compiled = False

    def frame(self, state: object) -> Frame:
        """A frame for one call."""
        frame: Frame = [None] * self.slots
        frame[0] = state
        return frame


class Program:
    """A module with one of its functions, compiled together with all that it calls.

    Raises UnsupportedOperationsError, which lists every operation that the simulator does not
    know, and TilepassError where there is no such function. `spots`: loops whose bounds are not
    constants, and turns of rings of shared memory.
    """

    @plain_values()
    def __init__(self, module: engine.Module, kernel: str | None = None) -> None:
        self.module = module
        self.unsupported: list[Diagnostic] = []
        self.spots: list[Spot] = []
        self._operations = {
            _symbol(each): each for each in engine.operations(module) if each.name == "tt.func"
        }
        self._functions: dict[tuple[str, bool], Function] = {}
        name = kernel or self._only_kernel()
        if name not in self._operations:
            raise TilepassError(f"the module holds no function '{name}'")
        self.name = name
        self.entry = self.function(name)
        self.parameters = _parameters(self._operations[name])
        if self.unsupported:
            raise UnsupportedOperationsError(self.unsupported)

    @cached_property
    @plain_values()
    def roles(self) -> dict[str, Role]:
        """What becomes of each parameter."""
        found = roles_of(self.module, self._operations[self.name])
        return {each.name: role for each, role in zip(self.parameters, found, strict=True)}

    def function(self, name: str, lifted: bool = False) -> Function:
        """A function of the module, compiled when it is asked for first; one that a combiner calls
        is lifted as the combiner is."""
        key = name, lifted
        if key not in self._functions:
            function = self._functions[key] = Function(name)
            self._compiler(function).compile(self._operations[name], lifted)
        return self._functions[key]

    def _compiler(self, function: Function) -> FunctionCompiler:
        return FunctionCompiler(self, function)

    def _only_kernel(self) -> str:
        public = [
            name
            for name, operation in self._operations.items()
            if "private" not in str(operation.attributes.get("sym_visibility"))
        ]
        if len(public) != 1:
            raise TilepassError(
                f"the module holds {len(public)} public functions"
                + (f" ({', '.join(public)}): name the one to run" if public else "")
            )
        return public[0]


class FunctionCompiler:
    """The compilation of one function."""

    def __init__(self, program: Program, function: Function) -> None:
        self.program = program
        self._function = function
        self._slots: dict[int, int] = {}
        self.rings: dict[int, Spot] = {}

    def compile(self, operation: engine.Operation, lifted: bool) -> None:
        """Set the function's body."""
        self._function.body = self.region(operation.regions[0], lifted)
        self._function.slots = len(self._slots) + 1
        self._function.compiled = True

    def slot(self, value: ir.Value) -> int:
        """The slot of a value."""
        return self._slots.setdefault(hash(value), len(self._slots) + 1)

    def region(self, region: ir.Region, lifted: bool) -> Body:
        """All blocks of a region."""
        blocks = list(region.blocks)
        return Body([self._block(block, blocks, lifted) for block in blocks])

    def _block(self, block: ir.Block, all_blocks: list[ir.Block], lifted: bool) -> Block:
        arguments = tuple(self.slot(argument) for argument in block.arguments)
        *inner, last = [view.operation for view in block]
        steps = [self._step(each, lifted) for each in inner]
        yields = None
        if last.name in ENDS:
            yields = tuple(self.slot(operand) for operand in last.operands)
            leave = _handing_out(yields)
        else:
            leave = self._branch(last, all_blocks)
        return Block(arguments, steps, inner, leave, last, yields)

    def _step(self, operation: engine.Operation, lifted: bool) -> Step | Suspending:
        make = OPERATIONS.get(operation.name)
        if make is None:
            return self._unsupported(operation, "is not known to the simulator")
        try:
            return make(Site(self, operation, lifted))
        except (CannotSimulate, ParseError) as error:
            return self._unsupported(operation, f"cannot be simulated: {error}")
        except Exception as error:
            raise_blaming(error, operation)

    def _unsupported(self, operation: engine.Operation, why: str) -> Step:
        location = engine.location_of(operation)
        self.program.unsupported.append(Diagnostic("error", f"{operation.name} {why}", location))
        return lambda _: None

    def _branch(self, operation: engine.Operation, blocks: list[ir.Block]) -> Exit:
        targets = [blocks.index(successor) for successor in operation.successors]
        slots = [self.slot(operand) for operand in operation.operands]
        entries = [[self.slot(each) for each in blocks[at].arguments] for at in targets]
        if operation.name == "cf.br":
            return _jumping(targets[0], entries[0], slots)
        if operation.name == "cf.cond_br":
            middle = 1 + len(entries[0])
            yes = _jumping(targets[0], entries[0], slots[1:middle])
            no = _jumping(targets[1], entries[1], slots[middle:])
            condition = slots[0]
            return lambda frame: yes(frame) if frame[condition] else no(frame)
        self._unsupported(operation, "is not known to the simulator")
        return lambda _: (-1, [])


def _handing_out(slots: tuple[int, ...]) -> Exit:
    return lambda frame: (-1, [frame[slot] for slot in slots])


def _jumping(target: int, arguments: Sequence[int], slots: Sequence[int]) -> Exit:
    def jump(frame: Frame) -> tuple[int, list[Any]]:
        values = [frame[slot] for slot in slots]
        for argument, value in zip(arguments, values, strict=True):
            frame[argument] = value
        return target, values

    return jump


def _unique(name: str, taken: set[str]) -> str:
    """The name, numbered where others have it: elements of a tuple share one."""
    numbers = itertools.count(1)
    found = name
    while found in taken:
        found = f"{name}.{next(numbers)}"
    return found


def _symbol(operation: engine.Operation) -> str:
    return str(operation.attributes["sym_name"]).strip('"')


def _parameters(operation: engine.Operation) -> tuple[Parameter, ...]:
    block = operation.regions[0].blocks[0]
    attributes: Any = operation.attributes.get("arg_attrs")
    found: list[Parameter] = []
    for index, argument in enumerate(block.arguments):
        named = _ARGUMENT_NAME.match(str(argument.location))
        name = _unique(named[1] if named else f"arg{index}", {each.name for each in found})
        own: Any = attributes[index] if attributes is not None else {}
        divisibility = int(own[_DIVISIBILITY].value) if _DIVISIBILITY in own else 1
        found.append(Parameter(name, value_type(str(argument.type)), divisibility))
    return tuple(found)
