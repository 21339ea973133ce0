"""What a kernel's protocol is checked for: sizes, and programs of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilepass.ir import engine
from tilepass.sim.arguments import bind
from tilepass.sim.compiler import Parameter, Program
from tilepass.sim.inputs import Shapes, make_arguments
from tilepass.sim.memory import GlobalMemory

# With blocks of 64 and 128: loops of 1, 2, 3, 4, 10 and 16 trips; edges; several tiles.
_SIZES = (64, 128, 192, 256, 640, 1024, 1)
# Arrays are made for kernels that read numbers from them, and hold (size + 256)^2 elements.
_SIZES_WITH_ARRAYS = (64, 256)
_POINTER_SPAN = 1 << 42

Place = tuple[int, int, int]


@dataclass(frozen=True)
class Problem:
    """Sizes, and one program of a grid."""

    shapes: Shapes
    program: Place = (0, 0, 0)
    grid: Place = (1, 1, 1)
    said: str = ""
    """The shapes without what follows from others."""

    def __str__(self) -> str:
        return f"program {self.program} of grid {self.grid}, shapes {self.said or self.shapes}"


def simple_problems(program: Program, grid: Sequence[int] | None) -> list[Problem]:
    """A few sizes, all arguments alike."""
    if reads_numbers(program):
        sizes = _SIZES_WITH_ARRAYS
    else:
        sizes = _SIZES if any(map(_is_integer, program.parameters)) else _SIZES[:1]
    return [problem for size in sizes for problem in problems_of(program, Shapes(size), grid)]


def problems_of(program: Program, shapes: Shapes, grid: Sequence[int] | None) -> list[Problem]:
    """The only program of a grid and, if the kernel asks which it is, the second of two; of a given
    grid the first and last."""
    if grid is None:
        names = engine.operation_names(program.module)
        others = [Problem(shapes, (1, 0, 0), (2, 1, 1))] if "tt.get_program_id" in names else []
        return [Problem(shapes), *others]
    x, y, z = (*grid, 1, 1, 1)[:3]
    places = dict.fromkeys([(0, 0, 0), (x - 1, y - 1, z - 1)])
    return [Problem(shapes, place, (x, y, z)) for place in places]


def reads_numbers(program: Program) -> bool:
    """Whether scalars are loaded from memory: control flow may depend on its contents."""
    return any(
        operation.name == "tt.load" and not str(operation.results[0].type).startswith("tensor")
        for operation in engine.operations(program.module)
    )


def bind_values(program: Program, shapes: Shapes) -> tuple[list[Any], GlobalMemory]:
    """The values of all parameters and the memory that they point to.

    Arrays exist only for kernels that read numbers from them. Raises OptionError.
    """
    memory = GlobalMemory()
    if reads_numbers(program):
        arguments = make_arguments(program.parameters, shapes, 0)
        return bind(program.parameters, arguments, memory).values, memory
    values = [
        _value(parameter, shapes, index + 1) for index, parameter in enumerate(program.parameters)
    ]
    return values, memory


def _value(parameter: Parameter, shapes: Shapes, index: int) -> Any:
    type_ = parameter.type
    if type_.form != "scalar":
        return None
    element = type_.of
    if element.kind == "pointer":
        return index * _POINTER_SPAN
    given = shapes.named.get(parameter.name)
    if isinstance(given, int):
        return element.scalar(rounded(given, parameter))
    if element.kind == "float":
        return element.scalar(0.5 if given is None else given)
    return element.scalar(rounded(shapes.size, parameter))


def rounded(size: int, parameter: Parameter) -> int:
    """A size as a multiple of what the parameter's callers promise."""
    return -(-size // parameter.divisibility) * parameter.divisibility


def _is_integer(parameter: Parameter) -> bool:
    type_ = parameter.type
    return type_.form == "scalar" and type_.of.kind == "integer" and type_.of.bits > 1
