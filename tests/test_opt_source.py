"""Reading and splitting the input."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Target
from tilepass.opt.contexts import target_of_module
from tilepass.opt.source import Part, read_source, split
from tilepass.opt.work import is_cute, with_file_name


def test_parts_know_where_they_begin() -> None:
    parts, warnings = split(Part("f.mlir", "a\n// -----\nb\nc\n// -----  \n"))
    assert parts == [Part("f.mlir", "a\n", 1), Part("f.mlir", "b\nc\n", 3), Part("f.mlir", "", 6)]
    assert warnings == []


@pytest.mark.parametrize("line", ["// ----", "//-----", "  // ------", "// -------- "])
def test_near_misses_are_warned_about(line: str) -> None:
    parts, (warning,) = split(Part("f.mlir", f"a\n{line}\nb"))
    assert len(parts) == 1
    assert warning.format() == (
        f"f.mlir:2:{line.index('/') + 1}: warning: near miss with the split marker '// -----'"
    )


@pytest.mark.parametrize("line", ["// -----x", "x // -----", "// --"])
def test_other_comments_do_not_split(line: str) -> None:
    assert split(Part("f.mlir", f"a\n{line}\nb")) == ([Part("f.mlir", f"a\n{line}\nb")], [])


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    secret = tmp_path / "latin1.mlir"
    secret.write_bytes(b"// ok\n// caf\xe9\n")
    with pytest.raises(TilepassError, match=r"latin1\.mlir:2: not MLIR text"):
        read_source(str(secret))
    secret.write_bytes(b"\xef\xbb\xbf//\n\xe9\n")
    with pytest.raises(TilepassError, match=r"latin1\.mlir:2: not MLIR text"):
        read_source(str(secret))


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "marked.mlir"
    file.write_text("module {}\n", encoding="utf-8-sig")
    assert read_source(str(file)).text == "module {}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("func.func @f(%p: !cute.ptr<f32, gmem>) { return }", True),
        ('"cute_nvgpu.arch.mma"() : () -> ()', True),
        ("tt.func @f() { tt.return }", False),
        ("tt.func @f(%p: !cute.ptr<f32>) { tt.return }", False),
        ("// cute.copy\nfunc.func @f() { return }", False),
        ("func.func @execute.x() { call @cute.y() : () -> () }", False),
    ],
)
def test_cute_modules_are_recognized(text: str, expected: bool) -> None:
    assert is_cute(text) is expected


def test_only_locations_take_the_file_name() -> None:
    text = '"x"() {a = "loc(-:1:2)"} : () -> () loc("-":1:2)'
    assert with_file_name(text, 'a"b.mlir') == (
        '"x"() {a = "loc(-:1:2)"} : () -> () loc("a\\"b.mlir":1:2)'
    )


def test_lines_are_those_that_mlir_counts() -> None:
    text = "// \f and \u2028\r\n// -----\r\ntt.func @f()\n\n"
    parts, _ = split(Part("f.mlir", text))
    assert [(part.first_line, part.text) for part in parts] == [
        (1, "// \f and \u2028\r\n"),
        (3, "tt.func @f()\n\n"),
    ]


def test_the_target_of_a_module_is_found_outside_comments() -> None:
    text = '// ttg.target = "cuda:80"\nmodule attributes {ttg.target = "cuda:90"} {}\n'
    assert target_of_module(Part("f.mlir", text)) == Target("cuda", 90)
    wrong = Part("f.mlir", text.replace("cuda:90", "cuda:x"), first_line=11)
    with pytest.raises(
        TilepassError, match=r"^f\.mlir:12: ttg\.target 'cuda:x': expected cuda:NUM"
    ):
        target_of_module(wrong)
