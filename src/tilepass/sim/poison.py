"""Poison: results that no rule defines, such as a quotient by zero.

Poison spreads through computations and is reported where it decides something: a branch, a bound,
the address of an access that happens, or a value in memory. Division by zero is immediate undefined
behaviour in MLIR; here it makes poison, since Triton computes the coordinates of tiles ahead that
may not exist and then does not use them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tilepass.sim.faults import UndefinedBehaviour


class Poison:
    """A value that is poison as a whole. Arithmetic on it gives it back."""

    __slots__ = ("cause",)
    __array_ufunc__ = None

    def __init__(self, cause: str) -> None:
        self.cause = cause

    def _same(self, *_: object) -> Poison:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _same
    __lt__ = __le__ = __gt__ = __ge__ = _same
    __eq__ = __ne__ = _same  # pyright: ignore[reportAssignmentType]
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise UndefinedBehaviour(f"a poison value is used ({self.cause})")

    def __index__(self) -> int:
        raise UndefinedBehaviour(f"a poison value is used ({self.cause})")

    def __repr__(self) -> str:
        return f"poison ({self.cause})"


class PartialPoison:
    """A tensor of which the elements in `mask` are poison."""

    __slots__ = ("cause", "mask", "values")
    __array_ufunc__ = None

    def __init__(self, values: NDArray[Any], mask: NDArray[np.bool_], cause: str) -> None:
        self.values = values
        self.mask = mask
        self.cause = cause

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __repr__(self) -> str:
        return f"partly poison ({self.cause})"


Function = Callable[[Any], Any] | Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]
"""Of one to three operands mostly; the union lets lambdas be written without types."""


where: Callable[[Any, Any, Any], Any] = np.where
"""`numpy.where` of three arguments."""


def with_poison(values: Any, mask: Any, cause: str) -> Any:
    """`values` with poison where `mask` is true; either both arrays or both scalars."""
    if not isinstance(mask, np.ndarray) or mask.ndim == 0:
        return Poison(cause) if mask else values
    if not mask.any():
        return values
    return PartialPoison(np.asarray(values), cast("Any", mask), cause)


def first_poison(operands: Iterable[Any]) -> Poison | PartialPoison | None:
    """The first operand that is poison in whole or part."""
    for operand in operands:
        if type(operand) is Poison or type(operand) is PartialPoison:
            return operand
    return None


def elementwise(function: Function) -> Callable[..., Any]:
    """`function`, each element of whose result depends on that element of the operands."""

    def call(*operands: Any) -> Any:
        for operand in operands:
            if type(operand) is Poison or type(operand) is PartialPoison:
                return _elementwise(function, operands)
        return function(*operands)

    return call


def _elementwise(function: Function, operands: tuple[Any, ...]) -> Any:
    masks: list[Any] = []
    cause = ""
    for operand in operands:
        if type(operand) is Poison:
            return operand
        if type(operand) is PartialPoison:
            masks.append(operand.mask)
            cause = cause or operand.cause
    result = function(*map(values_of, operands))
    if type(result) is Poison:
        return result
    if type(result) is PartialPoison:
        masks.append(result.mask)
        result = result.values
    mask = masks[0]
    for other in masks[1:]:
        mask = mask | other
    return PartialPoison(result, np.broadcast_to(mask, result.shape), cause)


def movement(function: Function) -> Callable[..., Any]:
    """`function`, which moves elements of its tensor operands and computes nothing."""

    def call(*operands: Any) -> Any:
        special = first_poison(operands)
        if special is None:
            return function(*operands)
        if any(type(operand) is Poison for operand in operands):
            return special
        moved = function(*map(values_of, operands))
        masks = function(*map(mask_of, operands))
        if type(moved) is tuple:
            pairs = zip(cast("Any", moved), masks, strict=True)
            return tuple(with_poison(each, mask, special.cause) for each, mask in pairs)
        return with_poison(moved, masks, special.cause)

    return call


def values_of(value: Any) -> Any:
    """The values, those of poison elements arbitrary."""
    return value.values if type(value) is PartialPoison else value


def mask_of(value: Any) -> Any:
    """Which elements are poison."""
    if type(value) is PartialPoison:
        return value.mask
    return np.zeros(np.shape(value), np.bool_)


def require_defined(value: Any, what: str, mask: Any = True) -> Any:
    """The value without poison; UndefinedBehaviour if it is poison anywhere in the mask.

    `what` says what the value is for.
    """
    if type(value) is Poison:
        if np.any(mask):
            raise UndefinedBehaviour(f"{what} is poison ({value.cause})")
        return 0
    if type(value) is PartialPoison:
        wrong = value.mask & mask
        if wrong.any():
            at = ", ".join(str(int(index[0])) for index in np.nonzero(wrong))
            raise UndefinedBehaviour(f"{what} is poison at [{at}] ({value.cause})")
        return value.values
    return value
