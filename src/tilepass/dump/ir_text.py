"""IR as text: locations taken off, names of values made comparable."""

from __future__ import annotations

import re

_STRING = r'"(?:[^"\\]|\\.)*"'
# Parentheses inside a location nest: `loc(callsite("f"("a.py":1:2) at #loc3))`.
_FLAT = rf"(?:[^()\"]|{_STRING})*"
_NESTED = rf"(?:[^()\"]|{_STRING}|\({_FLAT}\))*"
_DEEP = rf"(?:[^()\"]|{_STRING}|\({_NESTED}\))*"
_TOKEN = re.compile(rf"{_STRING}| loc\({_DEEP}\)")
_ALIAS_LINE = re.compile(r"^#loc\d* = loc\(.*\)\n?", re.M)

# `%12`, `%arg4`, `%acc_3`: the number counts the values printed before.
_VALUE = re.compile(r"%(?:\d+\b|(arg)\d+\b|([A-Za-z_$.][\w$.-]*?)(?:_\d+)?(?![\w$.-]))")
_BLOCK = re.compile(r"\^bb\d+")
_LLVM_METADATA = re.compile(r"!\d+\b")


def lines_of(text: str) -> list[str]:
    """The lines of a text whose last line may or may not end in a newline. Unlike `splitlines` it
    leaves form feeds and their like, which strings in IR may hold, where they are."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def without_locations(text: str) -> str:
    """MLIR text without ` loc(...)` and `#loc` aliases; string literals stay as they are."""
    without_aliases = _ALIAS_LINE.sub("", text)
    return _TOKEN.sub(lambda match: match[0] if match[0][0] == '"' else "", without_aliases)


def essence(line: str) -> str:
    """A line without its indentation, and with value names that do not depend on how many values
    were printed before it."""
    named = _VALUE.sub(lambda match: f"%{match[1] or match[2] or ''}", line)
    return _LLVM_METADATA.sub("!", _BLOCK.sub("^bb", named.lstrip()))
