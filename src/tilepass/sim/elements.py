"""Element types as numpy has them, and the shapes of values.

An integer scalar is a Python `int` in two's complement (`bool` for i1), a float scalar a numpy
scalar, a pointer the `int` of its address; a tensor is a numpy array of the element's dtype.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

import ml_dtypes
import numpy as np

from tilepass.core.errors import ParseError
from tilepass.ir.layouts import (
    MemDescType,
    PointerType,
    TensorDescType,
    TensorType,
    TypeView,
    parse_type,
)

FLOATS: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
}
_INTEGERS: dict[int, Any] = {1: np.bool_, 8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_INTEGER = re.compile(r"[su]?i(\d+)$")


@dataclass(frozen=True)
class Element:
    """The type of a scalar or of a tensor's elements. `bits` is 64 for pointers and `index`."""

    text: str
    kind: Literal["integer", "float", "pointer"]
    bits: int
    dtype: np.dtype[Any]
    pointee: str | None = None

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.dtype.itemsize

    @property
    def unsigned(self) -> np.dtype[Any]:
        """The unsigned dtype of this width."""
        return np.dtype(f"u{self.size}")

    def scalar(self, value: Any) -> Any:
        """A number as a scalar of this type, integers wrapped."""
        if self.kind == "float":
            return self.dtype.type(value)
        if self.bits == 1:
            return bool(value & 1) if isinstance(value, int) else bool(value)
        half = 1 << (self.bits - 1)
        return (int(value) + half & (1 << self.bits) - 1) - half

    def __str__(self) -> str:
        return self.text


@cache
def element_of(text: str) -> Element:
    """The element type that a text names. Raises ParseError for one that cannot be simulated."""
    if text in FLOATS:
        dtype = np.dtype(FLOATS[text])
        return Element(text, "float", dtype.itemsize * 8, dtype)
    if text == "index":
        return Element(text, "integer", 64, np.dtype(np.int64))
    if (match := _INTEGER.match(text)) and int(match[1]) in _INTEGERS:
        bits = int(match[1])
        return Element(text, "integer", bits, np.dtype(_INTEGERS[bits]))
    view = parse_type(text)
    if isinstance(view, PointerType):
        return Element(text, "pointer", 64, np.dtype(np.int64), view.pointee)
    raise ParseError(f"values of type {text} cannot be simulated")


Form = Literal["scalar", "tensor", "memdesc", "descriptor", "other"]


@dataclass(frozen=True)
class ValueType:
    """What a value is; `shape` is that of the block for a tensor descriptor."""

    text: str
    form: Form
    shape: tuple[int, ...] = ()
    element: Element | None = None
    view: TypeView | None = None

    @property
    def of(self) -> Element:
        """The element type of a type that has one."""
        if self.element is None:
            raise ParseError(f"values of type {self.text} cannot be simulated")
        return self.element

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=4096)
def value_type(text: str) -> ValueType:
    """What values of a type, given by its text, are."""
    view = parse_type(text)
    if isinstance(view, TensorType):
        return ValueType(text, "tensor", view.shape, element_of(view.element), view)
    if isinstance(view, MemDescType):
        return ValueType(text, "memdesc", view.shape, element_of(view.element), view)
    if isinstance(view, TensorDescType):
        block = view.block
        return ValueType(text, "descriptor", block.shape, element_of(block.element), view)
    try:
        return ValueType(text, "scalar", (), element_of(text), view)
    except ParseError:
        return ValueType(text, "other", view=view)
