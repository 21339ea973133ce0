"""Transfer functions of floating-point arithmetic on the facts of `zero_bytes`.

`code` arrays as in `ZeroBytes.code`. 0 * x is 0 under the FREE bits only if one factor is zero and
the other finite, which is assumed; under the STRICT bits both factors must be zero or the other one
a known finite number. A product of zeros has an unknown sign.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np

from tilepass.analysis.zero_structure.zero_bytes import (
    FREE,
    FREE_SIGN,
    SIGNS,
    STRICT,
    STRICT_SIGN,
    ByteArray,
)


class Factor(Enum):
    """What is known of a factor's range: Inf and NaN make 0 * x a NaN."""

    ANY = 0
    FINITE = 1
    UNUSUAL = 2
    """Inf or NaN for certain: nobody may assume otherwise."""


def product(
    one: ByteArray,
    other: ByteArray,
    first: Factor = Factor.ANY,
    second: Factor = Factor.ANY,
) -> ByteArray:
    """one * other, of factors of which `first` and `second` are known."""
    free, strict = np.zeros_like(one & other), one & other
    for zero, factor in ((one, second), (other, first)):
        if factor is not Factor.UNUSUAL:
            free = free | zero
        if factor is Factor.FINITE:
            strict = strict | zero
    return ((free & FREE_SIGN) | (strict & STRICT_SIGN)).astype(np.uint8)


def total(one: ByteArray, other: ByteArray) -> ByteArray:
    """one + other, rounded to nearest: +0.0 + +0.0 is +0.0."""
    return one & other


def difference(one: ByteArray, other: ByteArray) -> ByteArray:
    """one - other, rounded to nearest: +0.0 - +0.0 is +0.0."""
    return one & other


def multiply_add(one: ByteArray, other: ByteArray, addend: ByteArray) -> ByteArray:
    """one * other + addend: +0.0 plus a zero of any sign is +0.0."""
    zero = product(one, other)
    kept = ((zero & FREE_SIGN) * FREE) | ((zero & STRICT_SIGN) // STRICT_SIGN * STRICT)
    return (addend & kept).astype(np.uint8)


def negation(one: ByteArray) -> ByteArray:
    """-one."""
    return (one & SIGNS).astype(np.uint8)


def absolute(one: ByteArray) -> ByteArray:
    """|one|: +0.0 for either zero."""
    return ((one & SIGNS) * 3).astype(np.uint8)


UNARY: dict[str, Callable[[ByteArray], ByteArray]] = {
    "arith.negf": negation,
    "math.absf": absolute,
    "arith.extf": lambda one: one,
    "arith.truncf": lambda one: one,
    "math.sqrt": negation,
    "math.sin": negation,
    "math.tanh": negation,
    "math.floor": negation,
    "math.ceil": negation,
}

BINARY: dict[str, Callable[[ByteArray, ByteArray], ByteArray]] = {
    "arith.addf": total,
    "arith.subf": difference,
    # Which zero a minimum of -0.0 and +0.0 gives depends on the operation.
    "arith.maximumf": lambda one, other: one & other,
    "arith.minimumf": lambda one, other: one & other,
    "arith.maxnumf": lambda one, other: one & other,
    "arith.minnumf": lambda one, other: one & other,
}
