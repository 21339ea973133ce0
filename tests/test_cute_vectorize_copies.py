"""`cute-vectorize-copies` on a kernel of the DSL, executed; and what coordinate types say."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from cute_copy_kernel import CopyByElements
from ptx_machine import run_grid
from ptx_memory import GlobalMemory

from tilepass.activate import enabled
from tilepass.ir.cute import coordinate_tensor, is_made_of_its_operands, static_tensor

pytestmark = pytest.mark.traces

SHAPE = (32, 24)
PASS = "cute-vectorize-copies"


@pytest.mark.parametrize("columns_first", [True, False])
@pytest.mark.parametrize(
    ("align", "vectors"), [(4, 0), (8, 12), (16, 12)], ids=["4 bytes", "8 bytes", "16 bytes"]
)
def test_pairs_are_copied_at_once_where_the_pointer_allows_it(
    tmp_path: Path, align: int, vectors: int, columns_first: bool
) -> None:
    kernel = CopyByElements(SHAPE, columns_first, align)
    with enabled(PASS, remarks="none") as session:
        ptx = kernel.compile_to_ptx(tmp_path)
    assert ptx.count("ld.global.v2.b32") == ptx.count("st.global.v2.b32") == vectors
    scalars = 24 - 2 * vectors
    assert ptx.count("ld.global.b32") == ptx.count("st.global.b32") == scalars
    verdicts = [remark.message for remark in session.remarks]
    title = "copy loop, 24 elements of 4 bytes"
    if vectors:
        assert verdicts == [f"{title}: 12 vectors of 8 bytes"] * 2
    else:
        assert verdicts == [f"{title}: in gmem the first is only known to be aligned to 4"] * 2
    given = np.arange(SHAPE[0] * SHAPE[1], dtype=np.float32).reshape(SHAPE)
    assert np.array_equal(_executed(ptx, given), given)


def _executed(ptx: str, given: np.ndarray) -> np.ndarray:
    result = np.full(SHAPE, np.nan, np.float32)
    memory = GlobalMemory()
    places = [memory.place(array) for array in (given, result)]
    run_grid(ptx, memory, [struct.pack("<q", place) for place in places], (1,))
    memory.read_back()
    return result


def test_what_a_coordinate_tensor_says() -> None:
    tensor = coordinate_tensor(
        '!cute.coord_tensor<"(?,?{div=2})", "((2,2),1,16):((1@1,8@0),0,8@1)">'
    )
    assert tensor is not None
    assert [leaf.divisor for leaf in tensor.begin] == [1, 2]
    assert tensor.size == 64
    assert [tensor.distance(at) for at in (0, 1, 2, 3, 4, 63)] == [
        (0, 0),
        (0, 1),
        (8, 0),
        (8, 1),
        (0, 8),
        (8, 121),
    ]
    constant = coordinate_tensor('!cute.coord_tensor<"(4,0)", "(8):(1@0)">')
    assert constant is not None
    assert [leaf.constant for leaf in constant.begin] == [4, 0]


@pytest.mark.parametrize(
    "text",
    [
        '!cute.coord_tensor<"(?,?{i64})", "(8):(1@0)">',
        '!cute.coord_tensor<"((?,?),?)", "(8):(1@0)">',
        '!cute.coord_tensor<"(?,?)", "(?):(1@0)">',
        '!cute.coord_tensor<"(?,?)", "(8):(?@0)">',
        '!cute.coord_tensor<"(?,?)", "(8):(1@0@1)">',
        '!cute.coord_tensor<"(?,?)", "(8):(1)">',
        '!cute.coord_tensor<"(?,?)", "(8):(1@2)">',
        '!cute.memref<f32, gmem, align<16>, "8:1">',
    ],
)
def test_coordinates_that_are_not_followed(text: str) -> None:
    assert coordinate_tensor(text) is None


@pytest.mark.parametrize(
    ("text", "count", "expected"),
    [
        ("?", 1, True),
        ("(?,?)", 2, True),
        ("(?{div=2},?{i64})", 2, True),
        ("(0,?)", 1, False),
        ("(_,?)", 1, False),
        ("((0,1),?)", 1, False),
        ("4", 0, False),
    ],
)
def test_coordinates_with_parts_of_their_own(text: str, count: int, expected: bool) -> None:
    assert is_made_of_its_operands(f'!cute.coord<"{text}">', count) is expected


def test_what_a_tensor_says() -> None:
    text = '!cute.memref<f16, smem, align<16>, S<3,4,3>, "((8,2),4):((1,64),128)">'
    tensor = static_tensor(text)
    assert tensor is not None
    assert str(tensor) == text
    part = tensor.part(68, tensor.layout.modes[1])
    assert (part.align, part.pointer) == (8, "!cute.ptr<f16, smem, align<8>, S<3,4,3>>")
    assert tensor.kept_together == 16
    assert tensor.layout.offsets()[7:10] == [7, 64, 65]
    assert static_tensor('!cute.memref<f32, gmem, align<16>, "(8,?):(1,8)">') is None
