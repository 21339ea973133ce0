"""Code at another tile shape: windows, layouts, descriptors, which axis a value runs along."""

from __future__ import annotations

import pytest

from tests.protocol_support import module_of
from tests.ws_split_kernels import Nest
from tilepass.core.errors import ParseError
from tilepass.core.pass_base import Target
from tilepass.core.refusal import Refusal
from tilepass.frontends.triton import bridge
from tilepass.ir import engine
from tilepass.ir.build import Builder
from tilepass.ir.layouts import (
    Blocked,
    NvidiaMma,
    NvmmaShared,
    Slice,
    TensorDescType,
    TensorType,
)
from tilepass.ir.loops import outermost_loops
from tilepass.passes.triton.epilogue_warp_specialize.axes import TileSlice, slice_of
from tilepass.passes.triton.epilogue_warp_specialize.match import match
from tilepass.passes.triton.epilogue_warp_specialize.options import (
    Limits,
    limits_of,
    requested_registers,
)
from tilepass.passes.triton.epilogue_warp_specialize.windows import (
    LayoutError,
    Layouts,
    Window,
    column_parts,
    descriptor_of_box,
    fitted_blocked,
    fitted_mma,
)

HOPPER = Target("cuda", 90)


def blocked(size: tuple[int, ...], threads: tuple[int, ...], warps: tuple[int, ...]) -> Blocked:
    order = tuple(reversed(range(len(size))))
    return Blocked(size_per_thread=size, threads_per_warp=threads, warps_per_cta=warps, order=order)


def mma(warps: tuple[int, int], columns: int) -> NvidiaMma:
    return NvidiaMma(
        version_major=3, version_minor=0, warps_per_cta=warps, instr_shape=(16, columns, 16)
    )


def test_window_is_cut_into_parts_that_cover_it() -> None:
    halves = Window.whole((128, 256)).split(0, 2)
    assert [half.offset for half in halves] == [(0, 0), (64, 0)]
    pieces = halves[1].split(1, 4)
    assert [piece.offset for piece in pieces] == [(64, 0), (64, 64), (64, 128), (64, 192)]
    assert {piece.size for piece in pieces} == {(64, 64)}
    assert pieces[1].shape((128, 1), (0, None)) == (64, 1)
    assert pieces[1].start((1, 0)) == (64, 64)


@pytest.mark.parametrize(
    ("layout", "shape", "warps", "fitted"),
    [
        # Half of the warps, half of the rows: nothing else changes.
        (blocked((1, 8), (1, 32), (8, 1)), (64, 256), 4, blocked((1, 8), (1, 32), (4, 1))),
        # A row is shorter than a warp: lanes go to other rows, so that no two hold the same.
        (blocked((1, 8), (1, 32), (8, 1)), (64, 64), 4, blocked((1, 8), (4, 8), (4, 1))),
        (blocked((4, 4), (1, 32), (4, 2)), (64, 256), 4, blocked((4, 4), (1, 32), (2, 2))),
        (blocked((1,), (32,), (8,)), (64,), 4, blocked((1,), (32,), (4,))),
        (blocked((1, 8), (1, 32), (4, 1)), (1, 4), 4, blocked((1, 4), (32, 1), (4, 1))),
    ],
    ids=("rows", "short-row", "two-dims", "line", "tiny"),
)
def test_blocked_layout(
    layout: Blocked, shape: tuple[int, ...], warps: int, fitted: Blocked
) -> None:
    assert fitted_blocked(layout, shape, warps) == fitted


def test_wgmma_layout() -> None:
    assert fitted_mma(mma((8, 1), 256), (64, 256), 4) == mma((4, 1), 256)
    assert fitted_mma(mma((8, 1), 256), (128, 64), 8) == mma((8, 1), 64)
    assert fitted_mma(mma((4, 2), 128), (64, 256), 4) == mma((4, 1), 256)
    with pytest.raises(LayoutError, match="32 rows and 4 warps"):
        fitted_mma(mma((8, 1), 256), (32, 256), 4)


def test_equal_layouts_stay_equal() -> None:
    """A slice's parent is fitted to the largest of the tensors that have it."""
    plane = blocked((1, 8), (1, 32), (8, 1))
    row, whole = TensorType((256,), "f32", Slice(dim=0, parent=plane)), (128, 256)
    types = [(row, (1,)), (TensorType(whole, "f32", plane), (0, 1))]
    layouts = Layouts(types, Window((0, 64), (64, 64)), 4)
    narrow = layouts.type(row, (1,))
    assert narrow.shape == (64,)
    parent = layouts.type(TensorType(whole, "i1", plane), (0, 1)).encoding
    assert narrow.encoding == Slice(dim=0, parent=parent) if parent else False


def test_unchanged_shape_keeps_its_layout() -> None:
    plane = blocked((4, 4), (1, 32), (8, 1))
    type_ = TensorType((128, 256), "f32", plane)
    assert Layouts([(type_, (0, 1))], Window.whole((128, 256)), 8).type(type_, (0, 1)) == type_


@pytest.mark.parametrize(("columns", "width"), [(128, 128), (64, 128), (32, 64), (16, 32), (8, 0)])
def test_box_is_swizzled_no_wider_than_its_rows(columns: int, width: int) -> None:
    encoding = NvmmaShared(swizzling_byte_width=128, transposed=False, element_bit_width=16)
    whole = TensorDescType(TensorType((128, 256), "bf16", encoding))
    box = descriptor_of_box(whole, (64, columns)).block
    assert box.shape == (64, columns)
    assert isinstance(box.encoding, NvmmaShared)
    assert box.encoding.swizzling_byte_width == width


@pytest.mark.parametrize(
    ("shape", "warps", "instruction", "parts"),
    [((64, 256), 4, 256, 4), ((128, 128), 4, 64, 2), ((256, 64), 8, 64, 2), ((64, 16), 4, 16, 2)],
    ids=str,
)
def test_columns_are_cut_in_layouts_that_triton_infers(
    shape: tuple[int, int], warps: int, instruction: int, parts: int
) -> None:
    module, builder, value = _accumulator(shape, warps, instruction)
    found = column_parts(builder, value, parts)
    assert len(found) == parts
    again = bridge.to_engine(bridge.load(engine.print_generic(module), "cut"))
    assert "tt.split" in engine.operation_names(again)


def test_triton_rejects_a_cut_in_another_layout() -> None:
    """What the test above relies on: the verifier compares with what it infers."""
    module, builder, value = _accumulator((64, 256), 4, 256)
    column_parts(builder, value, 2)
    right = engine.print_generic(module)
    wrong = right.replace("[0, 0, 1], [8, 0, 0]", "[8, 0, 0], [0, 0, 1]")
    assert wrong != right
    with pytest.raises(ParseError):
        bridge.load(wrong, "cut")


def test_too_few_columns() -> None:
    _, builder, value = _accumulator((64, 8), 4, 8)
    with pytest.raises(LayoutError, match="8 columns are too few"):
        column_parts(builder, value, 2)


def test_one_range_for_rows_and_columns_stands_for_both() -> None:
    """In a square tile a `tl.arange` may number rows and columns; each is cut by its own axis."""
    text = Nest("pointers", m=128, n=128).text()
    ranges = text.replace("%ca = tt.make_range {end = 128", "%unused = tt.make_range {end = 128")
    shared = ranges.replace(
        "  %cb = tt.splat",
        "  %ca = ttg.convert_layout %ri : tensor<128xi32, #tile_rows> -> "
        "tensor<128xi32, #tile_columns>\n  %cb = tt.splat",
    )
    found = _slice_of(shared)
    assert isinstance(found, TileSlice)
    axes = [each.axes for each in found.needed if each.operation.name == "tt.make_range"]
    assert sorted(axes) == [(0,), (1,)]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "  %sum = arith.mulf %acc, %one : tensor<128x64xf32, #mma>",
            "  %sum = tt.reshape %acc allow_reorder : "
            "tensor<128x64xf32, #mma> -> tensor<128x64xf32, #mma>",
            "tt.reshape in the epilogue",
        ),
        (
            "%one = arith.constant dense<1.0> : tensor<128x64xf32, #mma>",
            '%one = arith.constant dense<"0x' + "00000000" * 8191 + '0000803F"> '
            ": tensor<128x64xf32, #mma>",
            "a constant tensor with different elements",
        ),
    ],
    ids=("reshape", "constant"),
)
def test_what_has_no_parts(old: str, new: str, reason: str) -> None:
    text = Nest().text()
    assert old in text
    found = _slice_of(text.replace(old, new))
    assert isinstance(found, Refusal)
    assert reason in found.reason


def test_registers_are_shared_out_by_what_the_target_has() -> None:
    limits = limits_of(HOPPER)
    assert limits is not None
    assert limits == Limits(shared_bytes=232448, registers=65536)
    assert requested_registers(limits, 4, [(4, True), (1, False)]) == (240, 24)
    assert requested_registers(limits, 8, [(1, False), (1, False)]) == (24, 24)
    assert requested_registers(Limits(0, 32768), 4, [(4, True), (1, False)]) == (104, 24)
    assert limits_of(Target("hip", "gfx942", 64)) is None


def _slice_of(text: str) -> TileSlice | Refusal:
    module = module_of(text)
    nest = match(outermost_loops(module)[0], HOPPER)
    assert not isinstance(nest, Refusal), nest
    return slice_of(nest)


def _accumulator(
    shape: tuple[int, int], warps: int, instruction: int
) -> tuple[engine.Module, Builder, engine.ir.Value]:
    rows, columns = shape
    layout = mma((warps, 1), instruction)
    tensor, pointers = (TensorType(shape, element, layout) for element in ("f32", "!tt.ptr<f32>"))
    module = module_of(
        f"""module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32,
        ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}} {{
        tt.func public @f(%p: {pointers}, %x: {tensor}) {{
          tt.store %p, %x : {pointers}
          tt.return
        }} }}"""
    )
    assert rows * columns > 0
    store = next(each for each in engine.operations(module) if each.name == "tt.store")
    return module, Builder.before(store), store.operands[1]
