"""A pygments lexer for what nvdisasm prints."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, Text, Whitespace


class SassLexer(RegexLexer):
    """SASS with `//## File` lines; matrix, TMA and barrier instructions stand out."""

    name = "SASS"
    url = "https://docs.nvidia.com/cuda/cuda-binary-utilities/"
    aliases = ("sass",)
    filenames = ("*.sass",)

    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"//[^\n]*|/\*.*?\*/", Comment),
            (r'"[^"\n]*"', Name.Constant),
            (r"\.L_x_\d+|\.\w[\w.]*", Name.Label),
            (r"@!?U?P\w+", Name.Decorator),
            (r"!?U?P(?:[0-9]|T)\b", Name.Decorator),
            (r"[-~|!]?U?R(?:\d+|Z)\b[\w.]*", Name.Variable),
            (r"-?0x[0-9a-f]+|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\b", Number),
            (
                r"(?:[A-Z]*MMA|WARPGROUP|UTMA\w*|BAR|SYNCS|LDSM|STSM|LDGSTS|DEPBAR)\b[\w.]*",
                Keyword,
            ),
            (r"[A-Z][A-Z0-9_]+[\w.]*", Name.Function),
            (r"[\w$]+", Text),
            (r"[-+*|&~^=]", Operator),
            (r"[^\w\s]", Punctuation),
        ]
    }
