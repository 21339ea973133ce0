"""The simulator's tensor operations against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tilepass.core.versions import triton_version
from tilepass.sim.arguments import HostDescriptor
from tilepass.sim.faults import OutOfBounds, UndefinedBehaviour, UnsupportedOperationsError
from tilepass.sim.values import run
from tilepass.testing import program_of

Array = NDArray[Any]
FLAT = triton_version().version >= (3, 8)
DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "i32": np.int32,
    "i8": np.int8,
}


def text_of(shapes: dict[str, str], lines: str, result: str) -> str:
    """A kernel that loads its arguments (tensors by name, `4x8xf32`) and stores `%r`."""
    body: list[str] = []
    for name, shape in shapes.items():
        body += _access(f"%{name}_ptr", name, shape)
        element = shape.rpartition("x")[2]
        pointer = shape.removesuffix(element) + f"!tt.ptr<{element}>"
        body.append(f"%{name} = tt.load %{name}_at : tensor<{pointer}>")
    element = result.rpartition("x")[2]
    pointer = result.removesuffix(element) + f"!tt.ptr<{element}>"
    tail = [*_access("%out", "out", result), f"tt.store %out_at, %r : tensor<{pointer}>"]
    parameters = [
        f"%{name}_ptr: !tt.ptr<{shape.rpartition('x')[2]}>" for name, shape in shapes.items()
    ]
    signature = ", ".join([*parameters, f"%out: !tt.ptr<{element}>"])
    inner = "\n  ".join([*body, lines, *tail])
    return f"tt.func @kernel({signature}) {{\n  {inner}\n  tt.return\n}}"


def _access(pointer: str, name: str, shape: str) -> list[str]:
    """Lines that define %NAME_at, pointers to a row-major array."""
    *sizes, element = shape.split("x")
    count, dims = int(np.prod([int(size) for size in sizes])), "x".join(sizes)
    flat, kind = f"{count}xi32", f"!tt.ptr<{element}>"
    return [
        f"%{name}_n = tt.make_range {{start = 0 : i32, end = {count} : i32}} : tensor<{flat}>",
        f"%{name}_i = tt.reshape %{name}_n : tensor<{flat}> -> tensor<{dims}xi32>",
        f"%{name}_p = tt.splat {pointer} : {kind} -> tensor<{dims}x{kind}>",
        f"%{name}_at = tt.addptr %{name}_p, %{name}_i : tensor<{dims}x{kind}>, tensor<{dims}xi32>",
    ]


def shape_of(text: str) -> tuple[tuple[int, ...], Any]:
    *sizes, element = text.split("x")
    return tuple(map(int, sizes)), DTYPES[element]


def compute(lines: str, result: str, **operands: tuple[str, Array]) -> Array:
    """Execute `lines`, which define %r from the operands."""
    text = text_of({name: shape for name, (shape, _) in operands.items()}, lines, result)
    out = np.zeros(*shape_of(result))
    run(program_of(text), [*[array for _, array in operands.values()], out])
    return out


def floats(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-3, 3, shape).astype(dtype)


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(
    ("operation", "function"),
    [
        ("addf", np.add),
        ("subf", np.subtract),
        ("mulf", np.multiply),
        ("divf", np.divide),
        ("maxnumf", np.fmax),
        ("minimumf", np.minimum),
    ],
)
def test_float_arithmetic_rounds_to_the_type(
    operation: str, function: Callable[[Array, Array], Array], kind: str
) -> None:
    a, b = floats((4, 8), DTYPES[kind]), floats((4, 8), DTYPES[kind], 1)
    a[0, 0] = np.nan
    type_ = f"tensor<4x8x{kind}>"
    lines = f"%r = arith.{operation} %a, %b : {type_}"
    found = compute(lines, f"4x8x{kind}", a=(f"4x8x{kind}", a), b=(f"4x8x{kind}", b))
    assert found.tobytes() == function(a, b).tobytes()


def test_fp8_saturates_and_keeps_nan() -> None:
    values = np.array([1e9, -1e9, np.inf, np.nan, 0.1, 449, 2**-10, 1.0625], np.float32)
    for kind, largest in (("f8E4M3FN", 448), ("f8E5M2", 57344)):
        lines = f"%r = tt.fp_to_fp %a, rounding = rtne : tensor<8xf32> -> tensor<8x{kind}>"
        found = compute(lines, f"8x{kind}", a=("8xf32", values)).astype(np.float32)
        assert found[:3].tolist() == [largest, -largest, largest]
        assert np.isnan(found[3])
        assert found[4] == np.float32(0.1).astype(DTYPES[kind]).astype(np.float32)


def test_rounding_toward_zero() -> None:
    values = np.array([1.0039, -1.0039, 1.0079, 3.0, 0.0, -0.0, 65504.0, 1e-3], np.float32)
    lines = "%r = tt.fp_to_fp %a, rounding = rtz : tensor<8xf32> -> tensor<8xbf16>"
    found = compute(lines, "8xbf16", a=("8xf32", values))
    expected = (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    assert found.astype(np.float32).tobytes() == expected.tobytes()


@pytest.mark.parametrize("k", [16, 32])
@pytest.mark.parametrize("kind", ["bf16", "f16", "f8E4M3FN", "f8E5M2"])
def test_dot_adds_one_product_after_the_other(kind: str, k: int) -> None:
    a, b = floats((16, k), DTYPES[kind]), floats((k, 16), DTYPES[kind], 1)
    c = floats((16, 16), np.float32, 2)
    lines = (
        f"%r = tt.dot %a, %b, %c : tensor<16x{k}x{kind}> * tensor<{k}x16x{kind}> -> "
        "tensor<16x16xf32>"
    )
    found = compute(
        lines, "16x16xf32", a=(f"16x{k}x{kind}", a), b=(f"{k}x16x{kind}", b), c=("16x16xf32", c)
    )
    expected: Array = c.copy()
    wide, tall = a.astype(np.float32), b.astype(np.float32)
    for index in range(k):
        expected += wide[:, index, None] * tall[None, index]
    assert found.tobytes() == expected.tobytes()


def test_dot_of_bytes_is_exact() -> None:
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-128, 128, (16, 16)).astype(np.int8) for _ in range(2))
    c = np.full((16, 16), 2**31 - 1, np.int32)
    lines = "%r = tt.dot %a, %b, %c : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi32>"
    found = compute(lines, "16x16xi32", a=("16x16xi8", a), b=("16x16xi8", b), c=("16x16xi32", c))
    exact = c.astype(np.int64) + a.astype(np.int64) @ b.astype(np.int64)
    assert (found == exact.astype(np.int32)).all()


@pytest.mark.parametrize("precision", ["tf32", "tf32x3", "ieee"])
def test_fp32_dots_by_input_precision(precision: str) -> None:
    a, b = floats((16, 32)), floats((32, 16), seed=1)
    zero = np.zeros((16, 16), np.float32)
    lines = (
        f"%r = tt.dot %a, %b, %c, inputPrecision = {precision} : tensor<16x32xf32> * "
        "tensor<32x16xf32> -> tensor<16x16xf32>"
    )
    found = compute(
        lines, "16x16xf32", a=("16x32xf32", a), b=("32x16xf32", b), c=("16x16xf32", zero)
    )
    error = np.abs(found - a.astype(np.float64) @ b.astype(np.float64)).max()
    least, most = {"tf32": (1e-3, 0.2), "tf32x3": (0, 1e-4), "ieee": (0, 1e-4)}[precision]
    assert least <= error <= most


def test_scaled_dot_decodes_mxfp4_and_e8m0() -> None:
    generator = np.random.default_rng(0)
    a = floats((128, 64), ml_dtypes.float8_e4m3fn)
    codes = generator.integers(0, 256, (32, 128)).astype(np.uint8)
    scales = [generator.integers(120, 134, (128, 2)).astype(np.uint8) for _ in range(2)]
    zero = np.zeros((128, 128), np.float32)
    lines = (
        "%r = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e2m1 "
        "{fastMath = false} : tensor<128x64xf8E4M3FN>, tensor<128x2xi8> * tensor<32x128xi8>, "
        "tensor<128x2xi8> -> tensor<128x128xf32>"
    )
    found = compute(
        lines,
        "128x128xf32",
        a=("128x64xf8E4M3FN", a),
        sa=("128x2xi8", scales[0].view(np.int8)),
        b=("32x128xi8", codes.view(np.int8)),
        sb=("128x2xi8", scales[1].view(np.int8)),
        c=("128x128xf32", zero),
    )
    values = np.stack((codes & 15, codes >> 4), axis=1).reshape(64, 128)
    weights = values.view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    left, right = (np.repeat(2.0 ** (s.astype(int) - 127), 32, axis=1) for s in scales)
    expected = (a.astype(np.float64) * left) @ (weights * right.T)
    assert np.abs(found - expected).max() <= 64 * 2**-23 * np.abs(expected).max()


REDUCE = """%r = "tt.reduce"(%a) <{{axis = {axis} : i32}}> ({{
  ^bb0(%x: {kind}, %y: {kind}):
    %z = {combine} : {kind}
    tt.reduce.return %z : {kind}
  }}) : (tensor<4x8x{kind}>) -> tensor<{length}x{kind}>"""


def test_reductions_along_either_axis() -> None:
    a = floats((4, 8))
    for axis, length in ((0, 8), (1, 4)):
        lines = REDUCE.format(axis=axis, length=length, kind="f32", combine="arith.maxnumf %x, %y")
        found = compute(lines, f"{length}xf32", a=("4x8xf32", a))
        assert (found == a.max(axis)).all()
    lines = REDUCE.format(axis=1, length=4, kind="f32", combine="arith.addf %x, %y")
    pairs = a
    while pairs.shape[1] > 1:
        pairs = pairs[:, 0::2] + pairs[:, 1::2]
    assert (compute(lines, "4xf32", a=("4x8xf32", a)) == pairs[:, 0]).all()


@pytest.mark.parametrize("backward", [False, True])
def test_scans_keep_the_order_of_operands(backward: bool) -> None:
    a = np.arange(32, dtype=np.int32).reshape(4, 8)
    lines = f"""%r = "tt.scan"(%a) <{{axis = 1 : i32, reverse = {str(backward).lower()}}}> ({{
      ^bb0(%x: i32, %y: i32):
        %c2 = arith.constant 2 : i32
        %z = arith.muli %x, %c2 : i32
        %w = arith.addi %z, %y : i32
        tt.scan.return %w : i32
      }}) : (tensor<4x8xi32>) -> tensor<4x8xi32>"""
    source = a[:, ::-1] if backward else a
    expected = source.copy()
    for index in range(1, 8):
        expected[:, index] = 2 * expected[:, index - 1] + source[:, index]
    expected = expected[:, ::-1] if backward else expected
    assert (compute(lines, "4x8xi32", a=("4x8xi32", a)) == expected).all()


def test_moving_elements() -> None:
    a = np.arange(32, dtype=np.int32).reshape(4, 8)
    lines = """%t = tt.trans %a {order = array<i32: 1, 0>} : tensor<4x8xi32> -> tensor<8x4xi32>
      %j = tt.join %t, %t : tensor<8x4xi32> -> tensor<8x4x2xi32>
      %l, %h = tt.split %j : tensor<8x4x2xi32> -> tensor<8x4xi32>
      %s = tt.reshape %l : tensor<8x4xi32> -> tensor<32xi32>
      %e = tt.expand_dims %s {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
      %r = tt.broadcast %e : tensor<1x32xi32> -> tensor<2x32xi32>"""
    found = compute(lines, "2x32xi32", a=("4x8xi32", a))
    assert (found == np.broadcast_to(a.T.reshape(1, 32), (2, 32))).all()


MASKED = """
tt.func @kernel(%in: !tt.ptr<f32> loc("in"), %out: !tt.ptr<f32> loc("out"), %n: i32) {
  %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %limit = tt.splat %n : i32 -> tensor<16xi32>
  %mask = arith.cmpi slt, %i, %limit : tensor<16xi32>
  %p = tt.splat %in : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %at = tt.addptr %p, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  OTHER
  %x = tt.load %at LOAD : tensor<16x!tt.ptr<f32>>
  %y = arith.addf %x, %x : tensor<16xf32>
  %q = tt.splat %out : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %to = tt.addptr %q, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %to, %y STORE : tensor<16x!tt.ptr<f32>>
  tt.return
}
"""


def masked(load: str, store: str, other: str = "") -> Array:
    text = MASKED.replace("OTHER", other).replace("LOAD", load).replace("STORE", store)
    out = np.zeros(16, np.float32)
    run(program_of(text), [np.arange(10, dtype=np.float32), out, 10])
    return out


def test_masks_guard_bounds() -> None:
    assert masked(", %mask", ", %mask").tolist() == [2.0 * n for n in range(10)] + [0.0] * 6
    one = "%one = arith.constant dense<1.0> : tensor<16xf32>"
    assert masked(", %mask, %one", "", one)[10:].tolist() == [2.0] * 6
    with pytest.raises(OutOfBounds, match="reads element 10 of in, which holds 10 of type f32"):
        masked("", ", %mask")


def test_elements_that_a_load_leaves_undefined_must_not_be_stored() -> None:
    with pytest.raises(UndefinedBehaviour, match=r"stored value is poison at \[10\] .*masked off"):
        masked(", %mask", "")


def descriptor_text(element: str) -> str:
    block = f"8x16x{element}" if FLAT else f"tensor<8x16x{element}>"
    return f"""
    tt.func @kernel(%a: !tt.tensordesc<{block}>, %b: !tt.tensordesc<{block}>, %y: i32, %x: i32) {{
      %v = tt.descriptor_load %a[%y, %x] : !tt.tensordesc<{block}> -> tensor<8x16x{element}>
      tt.descriptor_store %b[%y, %x], %v : !tt.tensordesc<{block}>, tensor<8x16x{element}>
      tt.return
    }}"""


@pytest.mark.parametrize("at", [(0, 0), (-3, -5), (6, 24), (40, 0), (2, -16)])
def test_descriptors_clip_and_fill(at: tuple[int, int]) -> None:
    source = floats((10, 30))
    target = np.full((12, 40), 7, np.float32)
    run(program_of(descriptor_text("f32")), [HostDescriptor(source), HostDescriptor(target), *at])
    expected = np.full((12, 40), 7, np.float32)
    for row in range(max(at[0], 0), min(at[0] + 8, 12)):
        for column in range(max(at[1], 0), min(at[1] + 16, 40)):
            inside = row < 10 and column < 30
            expected[row, column] = source[row, column] if inside else 0
    assert (target == expected).all()


def test_a_descriptor_may_fill_with_nan() -> None:
    target = np.zeros((8, 16), np.float32)
    source = HostDescriptor(np.zeros((4, 16), np.float32), fill=float("nan"))
    run(program_of(descriptor_text("f32")), [source, HostDescriptor(target), 0, 0])
    assert np.isnan(target[4:]).all()
    assert not np.isnan(target[:4]).any()


def test_atomics_return_what_was_there() -> None:
    lines = """%p = tt.splat %a_ptr : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
      %ones = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
      %all = arith.constant dense<true> : tensor<4xi1>
      %r = tt.atomic_rmw add, acq_rel, gpu, %p, %ones, %all :
        (tensor<4x!tt.ptr<i32>>, tensor<4xi32>, tensor<4xi1>) -> tensor<4xi32>"""
    a = np.array([10, 0, 0, 0], np.int32)
    assert compute(lines, "4xi32", a=("4xi32", a)).tolist() == [10, 11, 13, 16]
    assert a[0] == 20


def test_inline_assembly_that_is_known() -> None:
    a = np.array([0x12345678, -1, 0, 7], np.int32)
    lines = """%r = tt.elementwise_inline_asm "{ prmt.b32 $0, $1, 0, 0x0123; }"
      {constraints = "=r,r", packed_element = 1 : i32, pure = true} %a :
      tensor<4xi32> -> tensor<4xi32>"""
    found = compute(lines, "4xi32", a=("4xi32", a))
    assert found.tolist() == a.byteswap().tolist()


@pytest.mark.skipif(triton_version().version < (3, 9), reason="ttg.warp_id is newer")
def test_code_that_depends_on_the_warp_is_refused() -> None:
    text = """
    module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
      tt.func @kernel() {
        %x = ttg.warp_id
        tt.return
      }
    }"""
    with pytest.raises(UnsupportedOperationsError, match="depends on the warp"):
        program_of(text)
