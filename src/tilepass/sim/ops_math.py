"""`math` and the elementary functions of `tt`.

fp16, bf16 and fp8 are computed in fp32 and rounded. Results are numpy's, correctly rounded or close
to it; a GPU's approximations differ in the last places.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tilepass.sim import extrema
from tilepass.sim.elements import Element
from tilepass.sim.poison import elementwise
from tilepass.sim.site import Site, operation
from tilepass.sim.state import Step

_erf: Any = np.frompyfunc(math.erf, 1, 1)
_UNARY: dict[str, Callable[[Any], Any]] = {
    "absf": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "trunc": np.trunc,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "roundeven": np.rint,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "atan": np.arctan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: np.asarray(1, np.asarray(x).dtype) / np.sqrt(x),
    "erf": lambda x: np.asarray(_erf(x)).astype(np.asarray(x).dtype),
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "powf": np.power,
    "atan2": np.arctan2,
    "copysign": np.copysign,
}
# Functions of NVIDIA's libdevice without the `f` of their fp32 forms, and of AMD's ocml.
_EXTERN = {
    "__nv_fabs": "absf",
    "__nv_fast_exp": "exp",
    "__nv_rint": "roundeven",
    "__nv_pow": "powf",
} | {f"__nv_{name}": name for name in (*_UNARY, *_BINARY)}
_OCML = re.compile(r"__ocml_(\w+?)_f(?:16|32|64)$")


def _in_fp32(function: Callable[..., Any], element: Element) -> Callable[..., Any]:
    if element.bits >= 32:
        return lambda *values: (
            element.dtype.type(function(*values))
            if not isinstance(values[0], np.ndarray)
            else function(*values)
        )

    def compute(*values: Any) -> Any:
        wide = function(*[np.asarray(value).astype(np.float32) for value in values])
        result = np.asarray(wide).astype(element.dtype)
        return result if isinstance(values[0], np.ndarray) else result[()]

    return compute


@operation(*[f"math.{name}" for name in (*_UNARY, *_BINARY)], "tt.precise_sqrt")
def elementary(site: Site) -> Step:
    name = "sqrt" if site.name == "tt.precise_sqrt" else site.name.removeprefix("math.")
    return site.compute(elementwise(_in_fp32(_UNARY.get(name) or _BINARY[name], site.element)))


@operation("tt.extern_elementwise")
def extern(site: Site) -> Step:
    symbol = site.text("symbol")
    symbol = _OCML.sub(r"__nv_\1", symbol)
    name = _EXTERN.get(symbol) or _EXTERN.get(symbol.removesuffix("f"))
    if name is None:
        raise site.refuse(f"function '{symbol}'")
    return site.compute(elementwise(_in_fp32(_UNARY.get(name) or _BINARY[name], site.element)))


@operation("math.fma")
def fma(site: Site) -> Step:
    """Rounded once up to fp16 and bf16; for fp32 the sum is rounded to fp64 before."""
    element = site.element

    def compute(a: Any, b: Any, c: Any) -> Any:
        wide = np.longdouble if element.bits == 64 else np.float64
        exact = np.asarray(a).astype(wide) * np.asarray(b).astype(wide) + np.asarray(c).astype(wide)
        result = np.asarray(exact).astype(element.dtype)
        return result if isinstance(a, np.ndarray) else result[()]

    return site.compute(elementwise(compute))


@operation("math.absi")
def absolute(site: Site) -> Step:
    element = site.element
    return site.compute(
        elementwise(lambda a: element.scalar(abs(a)) if isinstance(a, int) else np.abs(a))
    )


@operation("tt.clampf")
def clamp(site: Site) -> Step:
    """`propagateNan` 0 ignores a NaN of the first operand as fmax and fmin do."""
    larger, smaller = (
        (extrema.maximum, extrema.minimum)
        if site.integer("propagateNan", 0)
        else (extrema.maxnum, extrema.minnum)
    )
    return site.compute(elementwise(lambda x, least, most: smaller(larger(x, least), most)))


@operation("tt.mulhiui")
def high_product(site: Site) -> Step:
    """The high half of an unsigned product."""
    element = site.element
    bits, mask = element.bits, (1 << element.bits) - 1

    def scalar(a: int, b: int) -> int:
        return element.scalar((a & mask) * (b & mask) >> bits)

    def array(a: Any, b: Any) -> Any:
        if bits == 32:
            wide = a.view(np.uint32).astype(np.uint64) * b.view(np.uint32).astype(np.uint64)
            return (wide >> np.uint64(32)).astype(np.uint32).view(np.int32)
        exact = (a.astype(object) & mask) * (b.astype(object) & mask) >> bits
        return exact.astype(element.unsigned).view(element.dtype)

    return site.compute(elementwise(array if site.arrays(site.result_type) else scalar))
