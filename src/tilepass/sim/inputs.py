"""Arguments for a kernel that is known by its IR alone: random ones, moderate or at the edges."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tilepass.core.errors import OptionError, nearest
from tilepass.sim import special_values
from tilepass.sim.arguments import Argument, HostDescriptor
from tilepass.sim.compiler import Parameter
from tilepass.sim.elements import Element
from tilepass.sim.parameter_groups import Group, grouped
from tilepass.sim.roles import Role

Size = int | float | tuple[int, ...]

_ENTRY = re.compile(r"(?:([\w.$-]+)=)?(?:(\d+(?:x\d+)+)|([-+]?\d+)|([-+.\deE]+))$")

# What a kernel may reach beyond S x S elements: one tile in each direction.
_MARGIN = 256
# Of an array; its floats take eight bytes each while they are made.
_MOST_ELEMENTS = 1 << 27
# The values of larger arrays repeat after so many elements, a prime number: no two tiles are alike.
_PERIOD = (1 << 19) - 1


@dataclass(frozen=True)
class Shapes:
    """Sizes of arrays and values of numbers by parameter name; `size` is that of all the others.

    An integer parameter without an entry is `size`, rounded up to what its callers promise to be a
    divisor; so M, N, K and strides fit each other. An array without one holds `size` x `size`
    elements and a margin, a host descriptor's array `size` in each dimension.
    """

    size: int = 64
    named: Mapping[str, Size] = field(default_factory=dict[str, Size])

    def __str__(self) -> str:
        named = [f"{name}={_spelled(value)}" for name, value in self.named.items()]
        return ",".join([str(self.size), *named])


def _spelled(value: Size) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def parse_shapes(text: str) -> Shapes:
    """`64`, or `64,K=100,a_ptr=128x100`. Raises OptionError."""
    size, named = 64, dict[str, Size]()
    for part in filter(None, (each.strip() for each in text.split(","))):
        match = _ENTRY.match(part)
        try:
            if match is None:
                raise ValueError
            name, shape, whole, real = match.groups()
            value = _value(shape, whole, real)
        except ValueError as error:
            raise OptionError(
                f"shapes '{text}': '{part}' is neither SIZE, NAME=NUMBER nor NAME=128x64"
            ) from error
        if name is not None:
            named[name] = value
        elif isinstance(value, int) and value < 0:
            raise OptionError(f"shapes '{text}': the size {value} is below 0")
        elif isinstance(value, int):
            size = value
        else:
            raise OptionError(f"shapes '{text}': '{part}' lacks the name of a parameter")
    return Shapes(size, named)


def _value(shape: str | None, whole: str | None, real: str) -> Size:
    if shape:
        return tuple(map(int, shape.split("x")))
    return int(whole) if whole else float(real)


Kind = Literal["moderate", "wide", "special"]


@dataclass(frozen=True)
class Values:
    """Which values arguments have: moderate ones, of all magnitudes, or those at the edges.

    `roles` are those of the parameters: what decides where memory is accessed stays an index, and
    what is summed holds few infinities and NaN, which would be all that is left of a sum. Elements
    of the kinds named in `moderate` (float, integer) are moderate all the same.
    """

    kind: Kind = "moderate"
    roles: Mapping[str, Role] = field(default_factory=dict[str, Role])
    moderate: tuple[str, ...] = ()

    def are_moderate(self, element: Element, role: Role) -> bool:
        """Whether they are for a parameter with this role and these elements."""
        return self.kind == "moderate" or element.kind in self.moderate or Role.PLACE in role

    def __str__(self) -> str:
        return self.kind


MODERATE = Values()


def resolved(shapes: Shapes, parameters: Sequence[Parameter]) -> Shapes:
    """With `argN` for the parameter in place N replaced by its name, if it has another one."""
    real = {parameter.name for parameter in parameters}
    names = {f"arg{index}": each.name for index, each in enumerate(parameters)}
    named = {
        name if name in real else names.get(name, name): value
        for name, value in shapes.named.items()
    }
    return Shapes(shapes.size, named)


def make_arguments(
    parameters: Sequence[Parameter], shapes: Shapes, seed: int, values: Values = MODERATE
) -> dict[str, Argument]:
    """An argument for each parameter; the same seed gives the same values.

    Raises OptionError where `shapes` names no parameter or does not fit its type.
    """
    groups = grouped(parameters)
    names = [group.name for group in groups]
    for name in shapes.named:
        if name not in names:
            raise OptionError(f"the kernel has no parameter '{name}'{nearest(name, names)} "
                              f"(parameters: {', '.join(names)})")  # fmt: skip
    return {group.name: _argument(group, shapes, seed, values) for group in groups}


def _argument(group: Group, shapes: Shapes, seed: int, values: Values) -> Argument:
    parameter, type_ = group.parameter, group.parameter.type
    given = shapes.named.get(parameter.name)
    # Each parameter has its own generator: others may be added or removed by a pass.
    generator = np.random.default_rng([seed, zlib.crc32(parameter.name.encode())])
    if group.rank is not None:
        shape = given if isinstance(given, tuple) else (shapes.size,) * group.rank
        _require_moderate(parameter, shape)
        return HostDescriptor(_array(shape, group, shapes.size, generator, values))
    if type_.element is None:
        raise OptionError(f"parameter {parameter.name}: no argument can be made for type {type_}")
    if type_.of.kind == "pointer":
        shape = given if given is not None else (shapes.size + _MARGIN) ** 2
        if isinstance(shape, float):
            raise OptionError(f"parameter {parameter.name} is an array, not a number: {given}")
        extents = shape if isinstance(shape, tuple) else (shape,)
        _require_moderate(parameter, extents)
        return _array(extents, group, shapes.size, generator, values)
    return _number(parameter, given, shapes.size, generator, values)


def _array(
    shape: tuple[int, ...], group: Group, size: int, generator: np.random.Generator, values: Values
) -> NDArray[Any]:
    if math.prod(shape) > _PERIOD:
        return np.resize(_array((_PERIOD,), group, size, generator, values), shape)
    role, element = values.roles.get(group.name, Role.NONE), group.element
    moderate = random_array(shape, element, size, generator)
    if element.bits == 1 or values.are_moderate(element, role):
        return moderate
    summed = Role.SUMMED in role
    if values.kind == "wide":
        return special_values.wide(moderate, element, summed, generator)
    return special_values.special(moderate, element, summed, size, generator)


def _require_moderate(parameter: Parameter, shape: tuple[int, ...]) -> None:
    count = math.prod(shape)
    if not 0 <= count <= _MOST_ELEMENTS:
        raise OptionError(f"parameter {parameter.name}: an array of {count} elements cannot be "
                          f"made, at most {_MOST_ELEMENTS}")  # fmt: skip


def _number(
    parameter: Parameter,
    given: Size | None,
    size: int,
    generator: np.random.Generator,
    values: Values,
) -> Argument:
    element = parameter.type.of
    if isinstance(given, tuple):
        raise OptionError(f"parameter {parameter.name} is a number, not an array")
    if element.kind == "float":
        return _real(parameter, generator, values) if given is None else float(given)
    if isinstance(given, float):
        raise OptionError(f"parameter {parameter.name} is an integer of type {element}")
    if element.bits == 1:
        return bool(generator.integers(2)) if given is None else bool(given)
    if given is not None:
        return given
    if not values.are_moderate(element, values.roles.get(parameter.name, Role.PLACE)):
        chosen = special_values.integer(element, values.kind == "wide", generator)
        return chosen // parameter.divisibility * parameter.divisibility
    return -(-size // parameter.divisibility) * parameter.divisibility


def _real(parameter: Parameter, generator: np.random.Generator, values: Values) -> float:
    element = parameter.type.of
    if values.are_moderate(element, values.roles.get(parameter.name, Role.NONE)):
        return float(generator.uniform(-1, 1))
    return special_values.real(element, values.kind == "wide", generator)


def random_array(
    shape: tuple[int, ...], element: Element, size: int, generator: np.random.Generator
) -> NDArray[Any]:
    """Floats in [-1, 1]; integers that are indices below `size`, bytes near 128, so that those that
    are e8m0 scales stay near 1."""
    if element.kind == "float":
        return generator.uniform(-1, 1, shape).astype(element.dtype)
    if element.bits == 1:
        return generator.integers(0, 2, shape).astype(element.dtype)
    if element.size == 1:
        return generator.integers(112, 144, shape).astype(np.uint8).view(np.int8)
    return generator.integers(0, max(1, min(size, 1 << 15)), shape).astype(element.dtype)
