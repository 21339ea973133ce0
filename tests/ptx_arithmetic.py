"""PTX instructions that compute a value from values, thread by thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ptx_matrix import from_float, to_float
from ptx_text import Instruction

Array = NDArray[Any]

_SIGNED: dict[int, Any] = {16: np.int16, 32: np.int32, 64: np.int64}
_UNSIGNED: dict[int, Any] = {16: np.uint16, 32: np.uint32, 64: np.uint64}
_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "min": np.fmin,
    "max": np.fmax,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    # Unordered comparisons hold where an operand is NaN.
    "neu": lambda a, b: ~(a == b),
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
}
_UNARY: dict[tuple[str, ...], Callable[[Array], Array]] = {
    ("ex2", "approx", "f32"): np.exp2,
    ("ex2", "approx", "ftz", "f32"): np.exp2,
    ("lg2", "approx", "f32"): np.log2,
    ("lg2", "approx", "ftz", "f32"): np.log2,
    ("rcp", "rn", "f32"): lambda a: np.float32(1) / a,
    ("rcp", "approx", "f32"): lambda a: np.float32(1) / a,
    ("rcp", "approx", "ftz", "f32"): lambda a: np.float32(1) / a,
    ("neg", "f32"): lambda a: -a,
    ("abs", "f32"): np.abs,
    ("neg", "s32"): lambda a: -a,
    ("not", "b32"): lambda a: ~a,
    ("mov", "b32"): lambda a: a,
    ("mov", "b64"): lambda a: a,
    ("mov", "u32"): lambda a: a,
    ("mov", "b16"): lambda a: a,
}


def width_of(kind: str) -> int:
    """Bits of a type such as `u32`."""
    return int(kind[1:])


def evaluate(instruction: Instruction, sources: Sequence[Array]) -> Array:
    """The result of an instruction. Raises NotImplementedError on one that is not known."""
    code = instruction.code
    with np.errstate(all="ignore"):
        if code[-1] == "pred":
            return _predicate(instruction, sources)
        if code[0] == "cvt":
            return _convert(instruction, sources)
        if code[0] == "selp":
            kind = code[1]
            return _raw(np.where(sources[2], _typed(sources[0], kind), _typed(sources[1], kind)))
        if code[0] == "setp":
            kind = code[-1]
            return _COMPARE[code[1]](_typed(sources[0], kind), _typed(sources[1], kind))
        return _raw(_arithmetic(instruction, sources))


def _predicate(instruction: Instruction, sources: Sequence[Array]) -> Array:
    match instruction.code[0]:
        case "not":
            return ~sources[0]
        case "mov":
            return sources[0] != 0
        case name:
            return _BINARY[name](sources[0], sources[1])


def _arithmetic(instruction: Instruction, sources: Sequence[Array]) -> Array:
    code, kind = instruction.code, instruction.code[-1]
    if code in _UNARY:
        return _UNARY[code](_typed(sources[0], kind))
    match code:
        case ("fma", "rn", "f32") | ("fma", "rn", "ftz", "f32"):
            # A product of two fp32 is exact in fp64; the sum is rounded twice, at worst.
            a, b, c = (_typed(source, kind).astype(np.float64) for source in sources)
            return (a * b + c).astype(np.float32)
        case ("mad", "lo", _):
            a, b, c = (_typed(source, kind) for source in sources)
            return a * b + c
        case ("mul" | "mad", "wide", _):
            a, b = (
                _typed(source, kind).astype(f"{kind[0]}8".replace("s", "i"))
                for source in sources[:2]
            )
            return a * b + (_typed(sources[2], f"{kind[0]}64") if len(sources) > 2 else 0)
        case ("shl", _):
            return _typed(sources[0], kind) << sources[1].astype(_UNSIGNED[width_of(kind)])
        case ("shr", _):
            value = _typed(sources[0], kind)
            return value >> sources[1].astype(value.dtype)
        case (name, *_) if name in _BINARY and len(sources) == 2:
            return _BINARY[name](_typed(sources[0], kind), _typed(sources[1], kind))
        case _:
            raise NotImplementedError(instruction.text)


def _convert(instruction: Instruction, sources: Sequence[Array]) -> Array:
    to, source = instruction.code[-2], instruction.code[-1]
    rounding = instruction.code[1:-2]
    match to, source, rounding:
        case (("bf16x2" | "f16x2"), "f32", ("rn",)):
            # The first operand becomes the upper half.
            upper, lower = (from_float(_typed(s, "f32"), to[:-2]) for s in sources)
            return upper.astype(np.uint32) << np.uint32(16) | lower
        case (("bf16" | "f16"), "f32", ("rn",)):
            return from_float(_typed(sources[0], "f32"), to)
        case "f32", ("bf16" | "f16"), ():
            return _raw(to_float(sources[0], source))
        case "f32", ("s32" | "u32"), ("rn",):
            return _raw(_typed(sources[0], source).astype(np.float32))
        case _ if to[0] in "su" and source[0] in "su" and not rounding:
            wide = _typed(sources[0], source).astype(_SIGNED[64] if source[0] == "s" else np.uint64)
            return wide.astype(_UNSIGNED[width_of(to)])
        case _:
            raise NotImplementedError(instruction.text)


def _typed(bits: Array, kind: str) -> Array:
    """Register bits as values of a PTX type; wider literals are cut to its width."""
    width = width_of(kind)
    if bits.dtype == np.bool_:
        raise TypeError(f"a predicate where {kind} is expected")
    word = bits.astype(_UNSIGNED[width]) if bits.dtype.itemsize * 8 != width else bits
    if kind[0] == "f":
        return word.view({32: np.float32, 64: np.float64}[width])
    return word.view(_SIGNED[width] if kind[0] == "s" else _UNSIGNED[width])


def _raw(values: Array) -> Array:
    """Values as register bits."""
    return np.ascontiguousarray(values).view(_UNSIGNED[values.dtype.itemsize * 8])
