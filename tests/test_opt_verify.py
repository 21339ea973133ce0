"""`expected-...` comments against diagnostics."""

from __future__ import annotations

import pytest

from tilepass.core.diagnostics import Diagnostic, Severity, SourceLocation
from tilepass.opt.source import Part
from tilepass.opt.verify_diagnostics import Produced, verify_diagnostics


def _at(line: int, message: str, severity: Severity = "error") -> Diagnostic:
    return Diagnostic(severity, message, SourceLocation("f.mlir", line, 1))


def _failures(text: str, *produced: Diagnostic, first_line: int = 1) -> list[str]:
    part = Part("f.mlir", text, first_line)
    return [one.format() for one in verify_diagnostics(part, list(map(Produced, produced)))]


@pytest.mark.parametrize(
    ("comment", "line"),
    [
        ("// expected-error {{bad}}", 2),
        ("// expected-error@+1 {{bad}}", 3),
        ("// expected-error @-1 {{bad}}", 1),
        ("// expected-error@above {{bad}}", 1),
        ("// expected-error@below {{bad}}", 3),
        ("//expected-error{{bad}}  ", 2),
        ("// expected-error-re {{b{{[a-z]}}d}}", 2),
    ],
)
def test_places(comment: str, line: int) -> None:
    text = f"first\n{comment}\nthird\n"
    assert _failures(text, _at(line, "so bad it is")) == []
    assert len(_failures(text, _at(line + 1, "so bad it is"))) == 2
    assert len(_failures(text, _at(line, "so god it is"))) == 2
    assert len(_failures(text)) == 1


def test_comments_are_skipped_by_above_and_below() -> None:
    text = "x\n// expected-error@below {{a}}\n// expected-error@below {{b}}\ny\n"
    assert _failures(text, _at(4, "a"), _at(4, "b")) == []
    text = "x\n// expected-error@above {{a}}\n// expected-error@above {{b}}\ny\n"
    assert _failures(text, _at(1, "a"), _at(1, "b")) == []


def test_lines_are_those_of_the_file() -> None:
    assert _failures("// expected-error {{bad}}\n", _at(7, "bad"), first_line=7) == []
    assert _failures("// expected-error {{bad}}\n", first_line=7) == [
        'f.mlir:7:4: error: expected error "bad" was not produced'
    ]


def test_unknown_place() -> None:
    text = "// expected-error@unknown {{bad}}\n"
    assert _failures(text, Diagnostic("error", "bad")) == []
    elsewhere = Diagnostic("error", "bad", SourceLocation("kernel.py", 1, 1))
    assert _failures(text, elsewhere) == []
    assert len(_failures(text, _at(1, "bad"))) == 2


def test_severity_must_fit() -> None:
    assert _failures("// expected-warning {{bad}}\n", _at(1, "bad")) == [
        "f.mlir:1:1: error: unexpected error: bad (a warning was expected)",
        'f.mlir:1:4: error: expected warning "bad" was not produced',
    ]


def test_equal_comments_want_a_diagnostic_each() -> None:
    text = "// expected-error@+2 {{bad}}\n// expected-error@+1 {{bad}}\nx\n"
    assert _failures(text, _at(3, "bad"), _at(3, "bad")) == []
    assert len(_failures(text, _at(3, "bad"))) == 1
    assert _failures("x // expected-error {{bad}}", _at(1, "bad"), _at(1, "bad")) == []


def test_notes_are_expected_by_themselves() -> None:
    diagnostic = Diagnostic(
        "error", "bad", SourceLocation("f.mlir", 1, 1), (_at(2, "see", "note"),)
    )
    assert _failures("x // expected-error {{bad}}\ny", diagnostic) == [
        "f.mlir:2:1: error: unexpected note: see"
    ]
    text = "x // expected-error {{bad}}\ny // expected-note {{see}}"
    assert _failures(text, diagnostic) == []


def test_optional_diagnostics_may_be_expected() -> None:
    remark = Produced(_at(1, "done", "remark"), optional=True)
    assert verify_diagnostics(Part("f.mlir", "x"), [remark]) == []
    assert verify_diagnostics(Part("f.mlir", "x // expected-remark {{done}}"), [remark]) == []


def test_literal_text_is_no_pattern() -> None:
    assert _failures("// expected-error {{a.c (x)}}", _at(1, "a.c (x)")) == []
    assert len(_failures("// expected-error {{a.c}}", _at(1, "abc"))) == 2
    assert len(_failures("// expected-error-re {{a.{{c}}}}", _at(1, "abc"))) == 2
