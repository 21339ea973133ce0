"""The lexers on everything that a compilation prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from dump_kernels import GFX942, compile_matmul
from dump_support import finished_dump
from pygments.token import Error, Keyword, Name, Number, String

from tilepass.dump.fragments import Fragments, lexer_for
from tilepass.dump.mlir_lexer import MlirLexer
from tilepass.dump.sass_lexer import SassLexer

PASSES = Path(__file__).parents[1] / "lit_tests" / "passes"


def assert_lexes(text: str, suffix: str) -> None:
    """No error tokens, and nothing of the text is lost."""
    tokens = list(lexer_for(suffix).get_tokens_unprocessed(text))
    assert [value for _, kind, value in tokens if kind in Error] == []
    assert "".join(value for _, _, value in tokens) == text


def test_every_mlir_text_of_a_compilation() -> None:
    _, report = finished_dump()
    # Line by line, as the pages do it: most lines occur in many files.
    lines: dict[str, set[str]] = {".ttir": set(), ".ttgir": set(), ".mlir": set()}
    for step in report.steps:
        if step.is_mlir and step.file:
            path = report.folder / step.file
            lines[path.suffix].update(path.read_text().splitlines())
    for suffix, found in lines.items():
        assert len(found) > 40
        for line in found:
            assert_lexes(line, suffix)


def test_sass_of_a_compilation() -> None:
    _, report = finished_dump()
    files = [report.folder / step.file for step in report.steps if step.file]
    for path in files:
        if path.suffix == ".sass":
            assert_lexes(path.read_text(), path.suffix)


def test_ir_with_locations() -> None:
    assert_lexes(compile_matmul(GFX942).asm["ttgir"], ".ttgir")


def test_ir_written_by_hand() -> None:
    files = sorted(PASSES.rglob("*.mlir"))
    assert len(files) >= 10
    for path in files:
        assert_lexes(path.read_text(), ".mlir")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("%acc_3#1", Name.Variable),
        ("^bb12", Name.Label),
        ("@kernel", Name.Class),
        ("#blocked1", Name.Decorator),
        ("!tt.ptr", Keyword.Type),
        ("bf16", Keyword.Type),
        ("f8E4M3FN", Keyword.Type),
        ("128x64x", Number.Integer),
        ("?x4x", Number.Integer),
        ("-1.500000e+00", Number.Float),
        ("0xFF800000", Number.Hex),
        ('"a \\" b"', String.Double),
        ("tt.descriptor_load", Name.Function),
        ("iter_args", Keyword),
    ],
)
def test_mlir_tokens(text: str, kind: object) -> None:
    assert [(k, v) for _, k, v in MlirLexer().get_tokens_unprocessed(text)] == [(kind, text)]


def test_dimensions_end_where_the_element_type_begins() -> None:
    values = [value for _, _, value in MlirLexer().get_tokens_unprocessed("<128x64xbf16, #a>")]
    assert values == ["<", "128x64x", "bf16", ",", " ", "#a", ">"]


def test_the_matrix_instruction_of_sass_is_a_keyword() -> None:
    line = "        /*0a50*/              @!P1 HGMMA.64x64x16.F32 R24, gdesc[UR4], R24 ;"
    kinds = {value: kind for _, kind, value in SassLexer().get_tokens_unprocessed(line)}
    assert kinds["HGMMA.64x64x16.F32"] is Keyword
    assert kinds["@!P1"] is Name.Decorator


def test_a_line_is_kept_once_and_a_long_one_is_cut() -> None:
    fragments = Fragments()
    assert fragments.line("%0 = a.b", ".ttir") == fragments.line("%0 = a.b", ".ttir")
    place = fragments.line("%0 = a.b " + "x" * 5000, ".ttir")
    assert "more characters" in fragments.table[place]
    assert len(fragments.table[place]) < 1000


def test_a_pair_marks_what_differs() -> None:
    fragments = Fragments()
    left, right = fragments.pair("%0 = a.b %x", "%0 = a.c %x", ".ttir")
    assert fragments.table[left].replace('"nf chg"', "nf").count("chg") == 0
    assert '<i class="nf chg">a.b</i>' in fragments.table[left]
    assert '<i class="nf chg">a.c</i>' in fragments.table[right]
