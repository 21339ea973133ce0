"""Views of encodings and types: exact on what Triton prints, loud on what is malformed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from corpus.compiling import run_stages
from corpus.entries import Entry, all_entries

from tilepass.core.errors import ParseError
from tilepass.core.versions import triton_version
from tilepass.frontends.triton import bridge
from tilepass.ir import engine
from tilepass.ir.layouts import (
    Blocked,
    DotOperand,
    MemDescType,
    NvidiaMma,
    NvmmaShared,
    OtherEncoding,
    OtherType,
    PointerType,
    SharedLinear,
    Slice,
    TensorDescSpellingError,
    TensorDescType,
    TensorMemory,
    TensorType,
    check_spelling,
    parse_encoding,
    parse_type,
)

WITH_LAYOUTS = ("matmul", "persistent_matmul", "matmul_scaled", "gluon_specialized", "sort_rows")
_BLOCKED = (
    "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], "
    "order = [1, 0]}>"
)


def _types_of(module: engine.Module) -> Iterator[str]:
    for operation in engine.operations(module):
        yield from (str(result.type) for result in operation.results)
        for region in operation.regions:
            for block in region:
                yield from (str(argument.type) for argument in block.arguments)


@pytest.mark.parametrize(
    "entry",
    [entry for entry in all_entries() if entry.kernel.__name__ in WITH_LAYOUTS],
    ids=lambda entry: entry.name,
)
def test_texts_come_back(entry: Entry) -> None:
    seen: set[type] = set()
    for _, module in run_stages(entry, "ttgir"):
        for text in set(_types_of(bridge.to_engine(module))):
            view = parse_type(text)
            seen.add(type(view))
            shown = (
                view.spell(triton_version().version) if isinstance(view, TensorDescType) else view
            )
            assert str(shown) == text
    assert TensorType in seen


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (_BLOCKED, Blocked),
        (_BLOCKED.replace("}>", ", CGALayout = [[1, 0]]}>"), Blocked),
        (f"#ttg.slice<{{dim = 1, parent = {_BLOCKED}}}>", Slice),
        (f"#ttg.dot_op<{{opIdx = 0, parent = {_BLOCKED}}}>", DotOperand),
        (
            "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], "
            "instrShape = [16, 64, 16]}>",
            NvidiaMma,
        ),
        (
            "#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 8, "
            "fp4Padded = true}>",
            NvmmaShared,
        ),
        (
            "#ttg.shared_linear<{offset = [[0, 1], [1, 0]], block = [[2, 0]]}, alignment = 128>",
            SharedLinear,
        ),
        ("#ttng.tensor_memory_encoding<blockM = 64, blockN = 32, twoCTAs = true>", TensorMemory),
        ("#ttg.padded_shared<[32:+4] {order = [1, 0], shape = [32, 32]}>", OtherEncoding),
    ],
)
def test_encodings_come_back(text: str, kind: type) -> None:
    view = parse_encoding(text)
    assert type(view) is kind
    assert str(view) == text


def test_parameters_of_later_tritons_are_kept() -> None:
    text = _BLOCKED.replace("}>", ", novel = [[1], [2]]}>")
    view = parse_encoding(text)
    assert isinstance(view, Blocked)
    assert view.extra == (("novel", ((1,), (2,))),)
    assert str(view) == text


def test_fields() -> None:
    view = parse_type(f"!ttg.memdesc<64x64xf16, {_BLOCKED}, #ttg.shared_memory, mutable, 3x64x64>")
    assert isinstance(view, MemDescType)
    assert (view.shape, view.element, view.mutable) == ((64, 64), "f16", True)
    assert (view.space, view.alloc_shape) == ("shared", (3, 64, 64))
    assert isinstance(view.encoding, Blocked)
    assert view.encoding.size_per_thread == (1, 8)


def test_pointers() -> None:
    assert parse_type("!tt.ptr<f32>") == PointerType("f32")
    assert parse_type("!tt.ptr<f32, 3>") == PointerType("f32", "3")
    tensor = parse_type("tensor<4x!tt.ptr<bf16>>")
    assert isinstance(tensor, TensorType)
    assert tensor.pointee == "bf16"
    assert parse_type("i32") == OtherType("i32")


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ((3, 6, 0), "!tt.tensordesc<tensor<64x32xf32>>"),
        ((3, 7, 1), "!tt.tensordesc<tensor<64x32xf32>>"),
        ((3, 8, 0), "!tt.tensordesc<64x32xf32>"),
        ((3, 9, 0), "!tt.tensordesc<64x32xf32>"),
    ],
)
def test_descriptor_spelling_follows_the_version(version: tuple[int, ...], text: str) -> None:
    for spelling in ("!tt.tensordesc<tensor<64x32xf32>>", "!tt.tensordesc<64x32xf32>"):
        view = parse_type(spelling)
        assert isinstance(view, TensorDescType)
        assert view.block.shape == (64, 32)
        assert view.spell(version) == text
    check_spelling(text, version)


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ((3, 6, 0), "!tt.tensordesc<64x32xf32>"),
        ((3, 9, 0), "!tt.tensordesc<tensor<64x32xf32>>"),
    ],
)
def test_wrong_spelling_names_the_versions(version: tuple[int, ...], text: str) -> None:
    with pytest.raises(TensorDescSpellingError, match=re.escape(".".join(map(str, version)))):
        check_spelling(text, version)


def test_a_lacking_parameter_is_named() -> None:
    with pytest.raises(ParseError, match="lacks threadsPerWarp, warpsPerCTA, order"):
        parse_encoding("#ttg.blocked<{sizePerThread = [1]}>")
    with pytest.raises(ParseError, match="memory space"):
        parse_type("!ttg.memdesc<64x64xf16>")
