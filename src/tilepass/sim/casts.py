"""Conversions between element types, for scalars and arrays.

Floats round to nearest even. To fp8 they saturate, as `cvt.rn.satfinite` does: infinities and all
that is too large become the largest finite number; NaN stays NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tilepass.sim import integers
from tilepass.sim.elements import Element
from tilepass.sim.poison import Poison, where, with_poison

Convert = Callable[[Any], Any]


def sign_extension(source: Element, target: Element) -> Convert:
    """`arith.extsi`, `arith.index_cast`."""

    def convert(value: Any) -> Any:
        value = integers.signed(value, source)
        return target.scalar(value) if isinstance(value, int) else value.astype(target.dtype)

    return convert


def zero_extension(source: Element, target: Element) -> Convert:
    """`arith.extui`."""

    def convert(value: Any) -> Any:
        value = integers.unsigned(value, source)
        return target.scalar(value) if isinstance(value, int) else value.astype(target.dtype)

    return convert


def truncation(source: Element, target: Element) -> Convert:
    """`arith.trunci`: the low bits."""

    def convert(value: Any) -> Any:
        if isinstance(value, int):
            return target.scalar(value)
        return (value & 1).astype(np.bool_) if target.bits == 1 else value.astype(target.dtype)

    return convert


def from_signed(source: Element, target: Element) -> Convert:
    """`arith.sitofp`."""
    return lambda value: _to_float(integers.signed(value, source), target)


def from_unsigned(source: Element, target: Element) -> Convert:
    """`arith.uitofp`."""
    return lambda value: _to_float(integers.unsigned(value, source), target)


def _to_float(value: Any, target: Element) -> Any:
    if isinstance(value, int):
        return target.dtype.type(value)
    return value.astype(target.dtype)


def to_signed(source: Element, target: Element) -> Convert:
    """`arith.fptosi`: toward zero; poison for NaN and what does not fit."""
    half = 1 << (target.bits - 1)
    return _to_integer(target, -half, half - 1)


def to_unsigned(source: Element, target: Element) -> Convert:
    """`arith.fptoui`."""
    return _to_integer(target, 0, (1 << target.bits) - 1)


def _to_integer(target: Element, least: int, most: int) -> Convert:
    cause = "a float that does not fit the integer"

    def convert(value: Any) -> Any:
        whole = np.trunc(np.asarray(value, np.float64))
        wrong = ~((whole >= least) & (whole < float(most) + 1))
        if not isinstance(value, np.ndarray):
            return Poison(cause) if wrong else target.scalar(int(whole))
        kind = target.unsigned if least == 0 and target.bits > 1 else target.dtype
        result = np.where(wrong, 0, whole).astype(kind).view(target.dtype)
        return with_poison(result, wrong, cause)

    return convert


def float_to_float(source: Element, target: Element) -> Convert:
    """`arith.extf`, `arith.truncf`, `tt.fp_to_fp` to nearest even."""
    if target.bits > 8:
        return lambda value: value.astype(target.dtype)
    finfo: Any = ml_dtypes.finfo
    largest = float(finfo(target.dtype).max)

    def convert(value: Any) -> Any:
        return np.clip(value.astype(np.float32), -largest, largest).astype(target.dtype)

    return convert


def float_toward_zero(source: Element, target: Element) -> Convert:
    """`tt.fp_to_fp` that cuts off."""

    def convert(value: Any) -> Any:
        wide = np.asarray(value, np.float64)
        near: Any = float_to_float(source, target)(np.asarray(value))
        # The neighbour toward zero has the next smaller magnitude as bits.
        bits = near.view(target.unsigned)
        lower = (bits - np.asarray(1, target.unsigned)).view(target.dtype)
        too_large = np.abs(near.astype(np.float64)) > np.abs(wide)
        result = where(too_large, lower, near)
        return result if isinstance(value, np.ndarray) else result[()]

    return convert


def same_bits(source: Element, target: Element) -> Convert:
    """`arith.bitcast` and its kin."""
    if source.kind == target.kind or {source.kind, target.kind} == {"integer", "pointer"}:
        return lambda value: value

    def convert(value: Any) -> Any:
        if isinstance(value, int):
            return source.dtype.type(value).view(target.dtype)
        viewed = np.ascontiguousarray(value).reshape(np.shape(value)).view(target.dtype)
        is_array = isinstance(value, np.ndarray)
        return viewed if is_array else target.scalar(viewed[()])

    return convert


def nearest_tf32(values: Any) -> Any:
    """fp32 by `cvt.rna.tf32.f32`: to nearest, ties away from zero; NaN stays as it is."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = (bits + np.uint32(0x1000) & np.uint32(0xFFFFE000)).view(np.float32)
    return where(np.isnan(values), values, rounded)


def tf32(values: Any) -> Any:
    """fp32 as the tensor cores read it for tf32: the low 13 bits cut off."""
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
