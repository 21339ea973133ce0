"""Integer arithmetic with MLIR's semantics: on Python ints (scalars) and numpy arrays.

Scalars are in two's complement: results wrap. What MLIR leaves undefined becomes poison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilepass.sim.elements import Element
from tilepass.sim.poison import Poison, with_poison

Binary = Callable[[Any, Any], Any]

BY_ZERO = "division by zero"
TOO_FAR = "a shift by the width or more"
OVERFLOW = "an overflow that a flag rules out"


def adding(bits: int) -> Binary:
    """Scalar addition."""
    half, mask = 1 << (bits - 1), (1 << bits) - 1
    return lambda a, b: (a + b + half & mask) - half


def subtracting(bits: int) -> Binary:
    """Scalar subtraction."""
    half, mask = 1 << (bits - 1), (1 << bits) - 1
    return lambda a, b: (a - b + half & mask) - half


def multiplying(bits: int) -> Binary:
    """Scalar multiplication."""
    half, mask = 1 << (bits - 1), (1 << bits) - 1
    return lambda a, b: (a * b + half & mask) - half


def unsigned(value: Any, element: Element) -> Any:
    """The same bits as an unsigned number."""
    if isinstance(value, int):
        return value & (1 << element.bits) - 1
    return value if element.bits == 1 else value.view(element.unsigned)


def signed(value: Any, element: Element) -> Any:
    """The same bits as a signed number; for i1 true is -1."""
    if element.bits > 1:
        return value
    return -int(value) if isinstance(value, int) else -value.astype(np.int8)


def truncated_division(a: Any, b: Any) -> tuple[Any, Any]:
    """(quotient, remainder), rounded toward zero; `b` is not 0."""
    if isinstance(a, int):
        quotient = abs(a) // abs(b)
        if (a < 0) != (b < 0):
            quotient = -quotient
        return quotient, a - b * quotient
    remainder = np.fmod(a, b)
    return (a - remainder) // b, remainder


def dividing(element: Element, compute: Binary, is_signed: bool) -> Binary:
    """Division by `compute`, poison where the divisor is 0 or the quotient does not fit."""
    least = -(1 << (element.bits - 1))

    def scalar(a: Any, b: Any) -> Any:
        if b == 0:
            return Poison(BY_ZERO)
        if is_signed and b == -1 and a == least:
            return Poison("a quotient that does not fit")
        if not is_signed:
            a, b = unsigned(a, element), unsigned(b, element)
        return element.scalar(compute(a, b))

    def array(a: Any, b: Any) -> Any:
        wrong = b == 0
        if is_signed:
            wrong = wrong | ((b == -1) & (a == least))
        safe = np.where(wrong, np.asarray(1, b.dtype), b)
        if not is_signed:
            a, safe = unsigned(a, element), unsigned(safe, element)
        result = np.asarray(compute(a, safe)).astype(element.dtype)
        return with_poison(result, wrong, BY_ZERO)

    return lambda a, b: scalar(a, b) if isinstance(a, int) else array(a, b)


def shifting(element: Element, kind: str) -> Binary:
    """`shli`, `shrsi` or `shrui`."""

    def scalar(a: int, b: int) -> Any:
        if not 0 <= b < element.bits:
            return Poison(TOO_FAR)
        if kind == "shli":
            return element.scalar(int(a) << b)
        return element.scalar((unsigned(a, element) if kind == "shrui" else a) >> b)

    def array(a: Any, b: Any) -> Any:
        count = unsigned(b, element)
        wrong = count >= element.bits
        safe = np.where(wrong, np.asarray(0, element.unsigned), count)
        if kind == "shrsi":
            result = a >> safe.astype(element.dtype)
        elif kind == "shrui":
            result = (unsigned(a, element) >> safe).astype(element.dtype)
        else:
            result = (unsigned(a, element) << safe).astype(element.dtype)
        return with_poison(result, wrong, TOO_FAR)

    return lambda a, b: scalar(a, b) if isinstance(a, int) else array(a, b)


def checking_overflow(
    element: Element, exact: Callable[[int, int], int], nsw: bool, nuw: bool
) -> Binary:
    """An operation that is poison where its exact result does not fit, signed or unsigned."""
    half, top = 1 << (element.bits - 1), 1 << element.bits

    def check(a: Any, b: Any) -> Any:
        one = exact(a, b)
        other = exact(unsigned(a, element), unsigned(b, element))
        if (nsw and not -half <= one < half) or (nuw and not 0 <= other < top):
            return Poison(OVERFLOW)
        return element.scalar(one)

    def array(a: Any, b: Any) -> Any:
        # Python's integers are exact at any width; the flags are rare on tensors.
        wide_a, wide_b = np.broadcast_arrays(a.astype(object), b.astype(object))
        one = exact(wide_a, wide_b)  # pyright: ignore[reportArgumentType]
        other = exact(wide_a % top, wide_b % top)  # pyright: ignore[reportArgumentType]
        wrong = np.zeros(wide_a.shape, np.bool_)
        if nsw:
            wrong |= np.asarray((one < -half) | (one >= half)).astype(np.bool_)
        if nuw:
            wrong |= np.asarray((other < 0) | (other >= top)).astype(np.bool_)
        wrapped = ((one + half) % top - half).astype(element.dtype)  # pyright: ignore
        return with_poison(wrapped, wrong, OVERFLOW)

    return lambda a, b: check(a, b) if isinstance(a, int) else array(a, b)
