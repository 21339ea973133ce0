"""Attribute and type aliases in MLIR text: their expansion, and the way back.

The bodies of types and attributes of unregistered dialects are opaque to the parser: an alias
inside one (`!ttg.memdesc<128x64xf16, #shared, #smem>`) would stay a name without a meaning.
`#loc` aliases are understood wherever they occur and stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

_DEFINITION = re.compile(r"\n([#!](?!loc\d* = )[A-Za-z_][\w$]*) = (.*)")
# An attribute of Triton's dialects that holds no other one.
_INNERMOST = re.compile(r"#ttn?g\.\w+<[^<>#]*>")
_NEW = "tilepass"
_CHUNK = 1 << 20
_QUOTE_IN_COMMENT = re.compile(r'//[^\n]*"')
# A whole name, but no location's and no dialect's: `#shared1` is not `#shared` and a digit.
_ATTRIBUTE = re.compile(r"#(?!loc\d*(?![\w$]))[A-Za-z_][\w$]*(?![\w$.])")
_TYPE = re.compile(r"![A-Za-z_][\w$]*(?![\w$.])")
_TOKEN = re.compile(rf'"(?:[^"\\\n]|\\.)*"|//[^\n]*|{_ATTRIBUTE.pattern}|{_TYPE.pattern}')


@dataclass(frozen=True)
class Aliases:
    """The aliases that a text defines: name to body, as written and in order."""

    definitions: Mapping[str, str]

    @classmethod
    def expand(cls, text: str) -> tuple[Aliases, str]:
        """The aliases of a text, and the text without their definitions and uses.

        Definitions come before uses, as MLIR wants them. String literals, comments and locations
        are left alone.
        """
        aliases, expanded = cls({}), list[str]()
        for chunk in chunks(text):
            found, rest = _without_definitions(chunk)
            if found:
                aliases = cls({**aliases.definitions, **found})
            expanded.append(aliases._expanded(rest) if aliases.definitions else rest)
        return aliases, "".join(expanded)

    def shorten(self, printed: Iterable[str]) -> Iterator[str]:
        """A text that MLIR printed, in parts that end at line ends, with aliases again.

        Half the length where layouts are many, and each attribute is parsed once. Attributes in the
        first part that are new since the aliases were defined get one too.
        """
        parts, names = iter(printed), dict(self._new_names)

        def name(body: re.Match[str]) -> str:
            text = body[0]
            if text not in names:
                names[text] = f"#{_NEW}{len(names)}"
            return names[text]

        first = next(parts, "")
        begun = first if _strings_hold_attributes(first) else _INNERMOST.sub(name, first)
        yield "".join([*(f"{short} = {body}\n" for body, short in names.items()), begun])
        for part in parts:
            # A string that holds what looks like an attribute must stay as it is.
            yield part if _strings_hold_attributes(part) else _shortened(part, names)

    def _expanded(self, text: str) -> str:
        bodies = self._bodies
        if not _strings_are_inert(text):
            # A string may hold what looks like an alias: tell the tokens apart one by one.
            return _TOKEN.sub(lambda match: bodies.get(match[0], match[0]), text)
        if any(name[0] == "!" for name in bodies):
            text = _TYPE.sub(lambda match: bodies.get(match[0], match[0]), text)
        return _ATTRIBUTE.sub(lambda match: bodies.get(match[0], match[0]), text)

    @cached_property
    def _new_names(self) -> dict[str, str]:
        """Names by body, names that no printer makes; the longest first: bodies hold others."""
        # A body that ends in its closing bracket cannot be the beginning of a longer one.
        bodies = {body for body in self._bodies.values() if body.endswith(">")}
        ordered = sorted(bodies, key=lambda body: (-len(body), body))
        return {body: f"{body[0]}{_NEW}{index}" for index, body in enumerate(ordered)}

    @cached_property
    def _bodies(self) -> dict[str, str]:
        """The bodies with the names in them expanded; MLIR prints definitions before uses."""
        bodies: dict[str, str] = {}
        for name, body in self.definitions.items():
            bodies[name] = _TOKEN.sub(lambda match: bodies.get(match[0], match[0]), body)
        return bodies


def _without_definitions(chunk: str) -> tuple[dict[str, str], str]:
    """The definitions in a part of a text, and the part without them."""
    # A pattern that begins with a character is looked for many times faster than a line's begin.
    lines = f"\n{chunk}"
    definitions = dict(_DEFINITION.findall(lines))
    return definitions, _DEFINITION.sub("", lines)[1:] if definitions else chunk


def chunks(text: str) -> Iterator[str]:
    """Parts of about 1 MB that end at line ends: what is made of them stays small."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + _CHUNK) + 1 or len(text)
        yield text[start:end]
        start = end


def expand_aliases(text: str) -> str:
    """`text` with every attribute and type alias replaced by its definition."""
    return Aliases.expand(text)[1]


def _shortened(text: str, names: Mapping[str, str]) -> str:
    for body, name in names.items():
        text = text.replace(body, name)
    return text


def _strings_hold_attributes(text: str) -> bool:
    return "#tt" in _strings(text)


def _strings_are_inert(text: str) -> bool:
    """Whether no string and no comment can hold an alias; holds for all but a few modules."""
    if '\\"' in text or ("//" in text and _QUOTE_IN_COMMENT.search(text)):
        return False
    inside = _strings(text)
    return "#" not in inside and "!" not in inside and "// #" not in text


def _strings(text: str) -> str:
    """What stands between quotes; MLIR prints a quote in a string as a code."""
    return "".join(text.split('"')[1::2])


def in_quotes(text: str) -> str:
    """The string literal that stands for `text`."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
