"""Arguments of a kernel: arrays, numbers, and tensor descriptors made by the host."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilepass.core.errors import nearest
from tilepass.sim.compiler import Parameter
from tilepass.sim.descriptors import Descriptor
from tilepass.sim.elements import Element
from tilepass.sim.faults import ArgumentError
from tilepass.sim.memory import Buffer, GlobalMemory
from tilepass.sim.parameter_groups import Group, grouped


@dataclass(frozen=True)
class Uninitialized:
    """An array that the kernel has to write before it reads it."""

    array: NDArray[Any]


@dataclass(frozen=True)
class HostDescriptor:
    """A tensor descriptor of a whole array; `fill` is what is read outside of it."""

    array: NDArray[Any] | Uninitialized
    fill: float = 0.0


Argument = NDArray[Any] | Uninitialized | HostDescriptor | int | float | bool | np.generic


@dataclass
class Bound:
    """The values of a kernel's parameters, and the arrays to update afterwards."""

    values: list[Any] = field(default_factory=list[Any])
    arrays: dict[int, tuple[Buffer, NDArray[Any]]] = field(
        default_factory=dict[int, tuple[Buffer, NDArray[Any]]]
    )

    def copy_back(self) -> None:
        """Write the contents of the buffers into the arrays."""
        for buffer, array in self.arrays.values():
            if array.flags.writeable:
                GlobalMemory.copy_back(buffer, array)

    def poison(self) -> dict[int, NDArray[np.bool_]]:
        """Which elements hold poison, by the `id` of the arrays that hold any."""
        found = {
            key: GlobalMemory.poisoned(buffer, array)
            for key, (buffer, array) in self.arrays.items()
        }
        return {key: mask for key, mask in found.items() if mask is not None and mask.any()}


def bind(
    parameters: Sequence[Parameter],
    arguments: Mapping[str, Argument] | Sequence[Argument],
    memory: GlobalMemory,
) -> Bound:
    """The values of all parameters. Raises ArgumentError.

    A descriptor also gives the sizes and strides that follow it among the parameters.
    """
    binder = _Binder(memory)
    groups = grouped(parameters)
    given = _by_position(groups, arguments)
    for group, argument in zip(groups, given, strict=True):
        binder.add(group, argument)
    return binder.bound


def _by_position(
    groups: Sequence[Group], arguments: Mapping[str, Argument] | Sequence[Argument]
) -> list[Argument]:
    if not isinstance(arguments, Mapping):
        if len(arguments) != len(groups):
            names = ", ".join(group.name for group in groups)
            raise ArgumentError(
                f"{len(arguments)} arguments for the {len(groups)} parameters ({names})"
            )
        return list(arguments)
    names = [group.name for group in groups]
    for name in arguments:
        if name not in names:
            raise ArgumentError(f"the kernel has no parameter '{name}'{nearest(name, names)}")
    missing = [name for name in names if name not in arguments]
    if missing:
        raise ArgumentError(f"no argument for parameter {', '.join(missing)}")
    return [arguments[name] for name in names]


class _Binder:
    def __init__(self, memory: GlobalMemory) -> None:
        self._memory = memory
        self.bound = Bound()

    def add(self, group: Group, argument: Argument) -> None:
        """Append the values of a group's parameters."""
        parameter, type_ = group.parameter, group.parameter.type
        if group.rank is not None:
            self._descriptor(group, argument, group.rank)
        elif type_.form == "scalar" and type_.of.kind == "pointer":
            self.bound.values.append(self._pointer(group, argument))
        elif type_.form == "scalar":
            self.bound.values.append(_number(parameter, argument))
        else:
            raise ArgumentError(f"parameter {parameter.name}: arguments of type {type_} cannot "
                                "be given")  # fmt: skip

    def _descriptor(self, group: Group, argument: Argument, rank: int) -> None:
        parameter = group.parameter
        if not isinstance(argument, HostDescriptor):
            raise _wrong(parameter, argument, "a HostDescriptor")
        array = _array(argument.array)
        if array.ndim != rank:
            raise ArgumentError(f"parameter {parameter.name}: the descriptor's blocks have {rank} "
                                f"dimensions, the array has shape {array.shape}")  # fmt: skip
        base = self._buffer(parameter, argument.array, group.element)
        strides = tuple(step // array.dtype.itemsize for step in array.strides)
        if group.replaced:
            flags = [math.isnan(argument.fill), False][: len(group.replaced) - 2 * rank]
            self.bound.values += [base, *array.shape, *strides, *flags]
        else:
            self.bound.values.append(
                Descriptor(base, array.shape, strides, group.element, argument.fill)
            )
        if group.sizes:
            self.bound.values += [*array.shape, *strides]

    def _pointer(self, group: Group, argument: Argument) -> int:
        if not isinstance(argument, np.ndarray | Uninitialized):
            raise _wrong(group.parameter, argument, "an array")
        return self._buffer(group.parameter, argument, group.element)

    def _buffer(
        self, parameter: Parameter, given: NDArray[Any] | Uninitialized, element: Element
    ) -> int:
        array = _array(given)
        if not _same_element(array.dtype, element):
            raise ArgumentError(
                f"parameter {parameter.name}: elements are {element}, the array's {array.dtype}"
            )
        if any(step < 0 for step in array.strides):
            raise ArgumentError(f"parameter {parameter.name}: the array has a negative stride")
        known = self.bound.arrays.get(id(array))
        if known is None:
            written = not isinstance(given, Uninitialized)
            known = self._memory.add_array(parameter.name, array, written), array
            self.bound.arrays[id(array)] = known
        return known[0].base


def _array(given: NDArray[Any] | Uninitialized) -> NDArray[Any]:
    return given.array if isinstance(given, Uninitialized) else given


def _same_element(dtype: np.dtype[Any], element: Element) -> bool:
    if element.kind == "integer":
        return dtype.kind in "iub" and dtype.itemsize == element.size
    return dtype == element.dtype


def _number(parameter: Parameter, argument: Argument) -> Any:
    element = parameter.type.of
    plain = argument.item() if isinstance(argument, np.generic) else argument
    if element.kind == "float":
        if not isinstance(plain, int | float):
            raise _wrong(parameter, argument, f"a number of type {element}")
        return element.scalar(plain)
    if not isinstance(plain, int):
        raise _wrong(parameter, argument, f"an integer of type {element}")
    if element.bits > 1 and not -(1 << (element.bits - 1)) <= plain < 1 << element.bits:
        raise ArgumentError(f"parameter {parameter.name}: {plain} does not fit {element}")
    if plain % parameter.divisibility:
        raise ArgumentError(
            f"parameter {parameter.name}: the kernel was compiled for multiples of "
            f"{parameter.divisibility}, not for {plain}"
        )
    return element.scalar(plain)


def _wrong(parameter: Parameter, argument: object, wanted: str) -> ArgumentError:
    given = type(argument).__name__
    return ArgumentError(f"parameter {parameter.name} is {wanted}, not {given}")
