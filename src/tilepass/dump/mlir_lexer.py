"""A pygments lexer for MLIR: Triton's dialects, scf/arith/cf/llvm, generic form and CuTe's."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import (
    RegexLexer,
    bygroups,  # pyright: ignore[reportUnknownVariableType]
    words,
)
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)

_BUILTIN_TYPES = r"(?:[su]?i\d+|index|none|bf16|tf32|f\d+(?:E\d+M\d+\w*)?)"
_SHAPED_TYPES = ("tensor", "memref", "vector", "complex", "tuple", "opaque", "unranked")
_KEYWORDS = (
    "module", "func", "private", "public", "attributes", "loc", "unknown", "callsite", "fused",
    "at", "to", "step", "iter_args", "init", "for", "while", "do", "if", "else", "in", "dense",
    "array", "affine_map", "affine_set", "strided", "distinct", "dense_resource", "sparse",
    "ceildiv", "floordiv", "mod", "symbol", "type", "into", "as", "from", "outs", "ins",
    "partition0", "default",
)  # fmt: skip


class MlirLexer(RegexLexer):
    """MLIR as Triton prints it, in custom and in generic form. Works line by line, too: no token
    spans lines."""

    name = "MLIR"
    url = "https://mlir.llvm.org/docs/LangRef/"
    aliases = ("mlir",)
    filenames = ("*.mlir", "*.ttir", "*.ttgir")

    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"//[^\n]*", Comment.Single),
            # An operation in generic form is a string before its operands.
            (r'("[\w$.-]+")(\()', bygroups(Name.Function, Punctuation)),
            (r'"(?:[^"\\\n]|\\.)*"', String.Double),
            (r"%[\w$.-]+(?:[:#]\d+)?", Name.Variable),
            (r"\^[\w$.-]+", Name.Label),
            (r'@(?:[\w$.-]+|"(?:[^"\\\n]|\\.)*")', Name.Class),
            (r"#-\}|\{-#", Punctuation),
            (r"#[A-Za-z_][\w$.-]*", Name.Decorator),
            (r"#\d+", Number.Integer),
            (r"![A-Za-z_][\w$.-]*", Keyword.Type),
            (r"-?0x[0-9A-Fa-f]+(?![0-9A-Fa-fx])", Number.Hex),
            # Dimensions and what follows: `128x64xbf16`, `?x4x!tt.ptr<f32>`, `4x`.
            (r"(?:\d+|\?|\*)x(?:(?:\d+|\?)x)*", Number.Integer),
            (rf"{_BUILTIN_TYPES}\b", Keyword.Type),
            (words(_SHAPED_TYPES, suffix=r"(?=<)"), Keyword.Type),
            (r"-?\d+\.\d*(?:[eE][+-]?\d+)?|-?\d+[eE][+-]?\d+", Number.Float),
            (r"-?\d+", Number.Integer),
            (r"(?:true|false|unit)\b", Keyword.Constant),
            (words(_KEYWORDS, suffix=r"(?![\w$.-])"), Keyword),
            (r"[A-Za-z_][\w$]*(?:\.[\w$]+)+", Name.Function),
            (r"[A-Za-z_][\w$-]*(?=\s*=)", Name.Attribute),
            (r"[A-Za-z_][\w$-]*", Name),
            (r"->|::|==|>=|<=|\.\.\.|[=*+/|&?@;.$~^-]", Operator),
            (r"[(){}\[\]<>,:]", Punctuation),
            (r"[!#%]", Text),
        ]
    }
