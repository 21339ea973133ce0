"""Expansion of attribute and type aliases in MLIR text.

The bodies of types and attributes of unregistered dialects are opaque to the parser: an alias
inside one (`!ttg.memdesc<128x64xf16, #shared, #smem>`) would stay a name without a meaning.
`#loc` aliases are understood wherever they occur and stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_DEFINITION = re.compile(r"^([#!][A-Za-z_][\w$]*) = (.*)\n?", re.MULTILINE)
_LOCATION = re.compile(r"#loc\d*$")
# Where a string may hold what looks like an alias, or a quote may not delimit a string, tokens
# have to be told apart one by one.
_QUOTE_IN_COMMENT = re.compile(r'//[^\n]*"')
_STRING_OR_COMMENT = r'"(?:[^"\\\n]|\\.)*"|//[^\n]*'


def expand_aliases(text: str) -> str:
    """`text` with every attribute and type alias replaced by its definition.

    String literals, comments and `#loc` aliases are left alone.
    """
    definitions = {
        name: body for name, body in _DEFINITION.findall(text) if not _LOCATION.match(name)
    }
    if not definitions:
        return text
    token = _token(definitions, with_strings=not _strings_are_inert(text))
    expand = _resolver(definitions, token)
    return token.sub(expand, _DEFINITION.sub(_keep_location, text))


def _resolver(
    definitions: dict[str, str], token: re.Pattern[str]
) -> Callable[[re.Match[str]], str]:
    """The function that maps a token to its text, definitions expanded in each other."""
    inner = _token(definitions, with_strings=True)
    resolved: dict[str, str] = {}
    # MLIR prints a definition before its uses, and so must a reader of the file write it.
    for name, body in definitions.items():
        resolved[name] = inner.sub(lambda match: resolved.get(match[0], match[0]), body)
    if '"' in token.pattern:
        return lambda match: resolved.get(match[0], match[0])
    return lambda match: resolved[match[0]]


def _token(definitions: dict[str, str], *, with_strings: bool) -> re.Pattern[str]:
    """Matches each alias as a whole name, and strings and comments if asked for."""
    # Longest first: `#shared1` is not `#shared` and a digit.
    longest_first = sorted(map(re.escape, definitions), key=len, reverse=True)
    alias = rf"(?:{'|'.join(longest_first)})(?![\w$.])"
    return re.compile(f"{_STRING_OR_COMMENT}|{alias}" if with_strings else alias)


def _strings_are_inert(text: str) -> bool:
    """Whether no string and no comment can hold an alias; holds for all but a few modules."""
    if '\\"' in text or _QUOTE_IN_COMMENT.search(text):
        return False
    inside = "".join(text.split('"')[1::2])
    return "#" not in inside and "!" not in inside and "// #" not in text


def _keep_location(match: re.Match[str]) -> str:
    return match[0] if _LOCATION.match(match[1]) else ""
