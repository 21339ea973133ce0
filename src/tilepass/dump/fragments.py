"""Highlighted lines, each kept once however many listings and differences show it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from html import escape

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType]
from pygments.token import STANDARD_TYPES, Token

from tilepass.dump.mlir_lexer import MlirLexer
from tilepass.dump.sass_lexer import SassLexer

LONGEST_LINE = 400
"""Characters of a line that are shown. Modules of the LLVM dialect hold lines of many thousand."""

_LEXERS = {".ptx": "ptx", ".llir": "llvm", ".amdgcn": "gas"}
_MARK = "chg"
# Classes that no rule of the style sheet names.
_PLAIN = ("w", "n", "p", "")

_Tokens = list[tuple[str, str]]


def lexer_for(suffix: str) -> Lexer:
    """The lexer for a file of a dump, by its suffix: MLIR, PTX, LLVM IR, SASS, AMD assembly."""
    if suffix == ".sass":
        return SassLexer()
    if suffix in _LEXERS:
        return get_lexer_by_name(_LEXERS[suffix])
    return MlirLexer()


class Fragments:
    """A table of HTML fragments; a fragment's place in `table` stands for it in the page's data."""

    def __init__(self) -> None:
        self.table: list[str] = []
        self._places: dict[str, int] = {}
        self._lines: dict[tuple[str, str], int] = {}
        self._lexers: dict[str, Lexer] = {}

    @property
    def size(self) -> int:
        """Characters in the table."""
        return sum(map(len, self.table))

    def line(self, text: str, suffix: str) -> int:
        """A line of a file of that suffix."""
        key = (text, suffix)
        if key not in self._lines:
            self._lines[key] = self._place(_html(self._tokens(text, suffix)))
        return self._lines[key]

    def pair(self, left: str, right: str, suffix: str) -> tuple[int, int]:
        """Two versions of a line, what differs in them marked."""
        a, b = self._tokens(left, suffix), self._tokens(right, suffix)
        same_a, same_b = _common(a, b)
        return self._place(_html(a, same_a)), self._place(_html(b, same_b))

    def _place(self, fragment: str) -> int:
        if fragment not in self._places:
            self._places[fragment] = len(self.table)
            self.table.append(fragment)
        return self._places[fragment]

    def _tokens(self, text: str, suffix: str) -> _Tokens:
        if suffix not in self._lexers:
            self._lexers[suffix] = lexer_for(suffix)
        shown = text[:LONGEST_LINE]
        tokens = [
            (_css_class(kind), value)
            for _, kind, value in self._lexers[suffix].get_tokens_unprocessed(shown)
        ]
        if len(text) > LONGEST_LINE:
            tokens.append(("cut", f" … {len(text) - LONGEST_LINE} more characters"))
        return tokens


def _css_class(kind: object) -> str:
    while kind not in STANDARD_TYPES:
        kind = getattr(kind, "parent", Token)
    return STANDARD_TYPES[kind]  # pyright: ignore[reportArgumentType]


def _html(tokens: _Tokens, same: Sequence[bool] | None = None) -> str:
    parts: list[str] = []
    for number, (css_class, value) in enumerate(tokens):
        classes = "" if css_class in _PLAIN else css_class
        if same is not None and not same[number] and not value.isspace():
            classes = f"{classes} {_MARK}".strip()
        text = escape(value.rstrip("\n"), quote=False)
        parts.append(f"<i class={_quoted(classes)}>{text}</i>" if classes else text)
    return "".join(parts)


def _quoted(classes: str) -> str:
    return f'"{classes}"' if " " in classes else classes


def _common(left: _Tokens, right: _Tokens) -> tuple[list[bool], list[bool]]:
    """For each token of both lines whether the other line has it, too."""
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    a, b = [False] * len(left), [False] * len(right)
    for match in matcher.get_matching_blocks():
        a[match.a : match.a + match.size] = [True] * match.size
        b[match.b : match.b + match.size] = [True] * match.size
    return a, b
