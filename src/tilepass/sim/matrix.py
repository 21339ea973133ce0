"""Matrix products with a fixed order of summation, and the number formats of their operands.

    acc = acc + a[:, k] * b[k, :]    for k = 0, 1, ..., K-1

with product and sum rounded to fp32 (products of bf16, fp16, fp8 and tf32 are exact). The result
depends neither on how M and N are cut into tiles nor on how K is cut into steps, so IR before and
after tiling, pipelining or warp specialization gives the same bits. Hardware adds in other orders:
against it, or numpy, compare with the bound of K roundings. fp64 is summed in fp64, integers are
exact and wrap. An fp16 accumulator is rounded once for each operation.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tilepass.sim import casts
from tilepass.sim.elements import FLOATS, Element
from tilepass.sim.poison import PartialPoison, Poison, mask_of, values_of, with_poison

Matrix = Any
"""An array [..., rows, columns], possibly partly poison."""

TF32, TF32X3 = 0, 1
"""Input precisions: fp32 operands cut to tf32; and the sum of three such products that Triton's F32
dot pass makes. The others (ieee, and the sums of bf16 products that approximate it) keep fp32."""

# Cases of ScaleDotElemType.
_E2M1 = 4
_SCALED = {0: "f8E4M3FN", 1: "f8E5M2", 5: "bf16", 6: "f16"}
SCALE_BLOCK = 32
"""Elements along K that share a scale (OCP microscaling formats)."""

_E2M1_VALUES = np.array(
    [sign * value for sign in (1, -1) for value in (0, 0.5, 1, 1.5, 2, 3, 4, 6)], np.float32
)


def dot(a: Matrix, b: Matrix, accumulator: Matrix, precision: int, result: Element) -> Matrix:
    """`accumulator + a @ b`, a new array."""
    for operand in (a, b, accumulator):
        if type(operand) is Poison:
            return operand
    values = _dot(values_of(a), values_of(b), values_of(accumulator), precision, result)
    partial = [each for each in (a, b, accumulator) if type(each) is PartialPoison]
    if not partial:
        return values
    mask = mask_of(a).any(-1)[..., :, None] | mask_of(b).any(-2)[..., None, :]
    return with_poison(values, mask | mask_of(accumulator), partial[0].cause)


def _dot(
    a: NDArray[Any], b: NDArray[Any], accumulator: NDArray[Any], precision: int, result: Element
) -> NDArray[Any]:
    if result.kind == "integer":
        return accumulator + _integer_product(a, b).astype(result.dtype)
    wide = np.float64 if result.bits == 64 else np.float32
    if a.dtype == np.float32 and result.bits == 32:
        if precision == TF32X3:
            return _three_products(a, b, accumulator, result)
        if precision == TF32:
            a, b = casts.tf32(np.ascontiguousarray(a)), casts.tf32(np.ascontiguousarray(b))
    total = accumulator.astype(wide)
    # Rows of both operands contiguous: the loop below reads one of each.
    columns = np.ascontiguousarray(np.swapaxes(a, -1, -2).astype(wide))
    rows = np.ascontiguousarray(b.astype(wide))
    product = np.empty_like(total)
    for k in range(rows.shape[-2]):
        np.multiply(columns[..., k, :, None], rows[..., k, None, :], out=product)
        np.add(total, product, out=total)
    return total.astype(result.dtype, copy=False)


def _three_products(
    a: NDArray[Any], b: NDArray[Any], accumulator: NDArray[Any], result: Element
) -> NDArray[Any]:
    """Each operand as a tf32 number and what is left, without the product of what is left."""
    a_big, b_big = casts.nearest_tf32(a), casts.nearest_tf32(b)
    total = _dot(a - a_big, b_big, np.zeros_like(accumulator), TF32, result)
    total = _dot(a_big, b - b_big, total, TF32, result)
    total[np.isnan(total)] = 0
    return _dot(a_big, b_big, total, TF32, result) + accumulator


def _integer_product(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.int64]:
    # Sums of products of bytes are exact in fp64, whose matrix product is much faster.
    if a.dtype.itemsize == 1:
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
    return a.astype(np.int64) @ b.astype(np.int64)


def unpack_e2m1(codes: NDArray[Any], axis: int) -> NDArray[np.float32]:
    """fp4 values from bytes of two along an axis, the low half first."""
    packed = np.asarray(codes).view(np.uint8)
    pairs = np.stack((packed & 15, packed >> 4), axis=axis + 1)
    shape = list(packed.shape)
    shape[axis] *= 2
    return _E2M1_VALUES[pairs].reshape(shape)


def e8m0(codes: NDArray[Any]) -> NDArray[np.float32]:
    """Powers of two from biased exponents; 255 is NaN."""
    return np.asarray(codes).view(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float32)


def scaled_operand(
    values: Matrix, scale: Matrix | None, kind: int, k_axis: int, packed_along_k: bool
) -> Matrix:
    """An operand of a scaled dot as fp32, scales [other, K / 32] applied along its K axis.

    `kind` is a case of ScaleDotElemType.
    """
    plain = _decode(values_of(values), kind, k_axis if packed_along_k else 1 - k_axis)
    if scale is not None:
        factors = np.repeat(e8m0(values_of(scale)), SCALE_BLOCK, axis=1)
        plain = plain * (factors if k_axis == 1 else factors.T)
    if type(values) is PartialPoison or type(scale) is PartialPoison:
        blame = values if type(values) is PartialPoison else scale
        assert isinstance(blame, PartialPoison)
        return PartialPoison(plain, np.ones(plain.shape, np.bool_), blame.cause)
    return plain


def _decode(values: NDArray[Any], kind: int, packed_axis: int) -> NDArray[np.float32]:
    if kind == _E2M1:
        return unpack_e2m1(values, packed_axis)
    dtype = np.dtype(FLOATS[_SCALED[kind]])
    return np.asarray(values).view(dtype).astype(np.float32)


def known_scaled_kind(kind: int) -> bool:
    """Whether a case of ScaleDotElemType can be decoded (fp6 formats cannot)."""
    return kind == _E2M1 or kind in _SCALED
