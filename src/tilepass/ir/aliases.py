"""Attribute and type aliases in MLIR text: their expansion, and the way back.

The bodies of types and attributes of unregistered dialects are opaque to the parser: an alias
inside one (`!ttg.memdesc<128x64xf16, #shared, #smem>`) would stay a name without a meaning.
`#loc` aliases are understood wherever they occur and stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

_DEFINITION = re.compile(r"([#!](?!loc\d* = )[A-Za-z_][\w$]*) = (.*)$")
_QUOTE_IN_COMMENT = re.compile(r'//[^\n]*"')
_STRING_OR_COMMENT = r'"(?:[^"\\\n]|\\.)*"|//[^\n]*'


@dataclass(frozen=True)
class Aliases:
    """The aliases that a text defines: name to body, as written and in order."""

    definitions: Mapping[str, str]

    @classmethod
    def split(cls, text: str) -> tuple[Aliases, str]:
        """The definitions in a text, and the text without them; locations stay in the text."""
        definitions: dict[str, str] = {}
        kept: list[str] = []
        for line in text.split("\n"):
            if line[:1] in ("#", "!") and (match := _DEFINITION.match(line)):
                definitions[match[1]] = match[2]
            else:
                kept.append(line)
        return cls(definitions), "\n".join(kept)

    def expand(self, text: str) -> str:
        """`text`, which holds no definitions, with the body in place of each name.

        String literals and comments are left alone.
        """
        if not self.definitions:
            return text
        bodies = self._bodies
        if _strings_are_inert(text):
            return self._names.sub(lambda match: bodies[match[0]], text)
        # A string may hold what looks like an alias: tell the tokens apart one by one.
        return self._tokens.sub(lambda match: bodies.get(match[0], match[0]), text)

    def restore(self, printed: str) -> str:
        """A module's text with the names in place of the bodies again, and the definitions.

        Half the length where layouts are many, and each attribute is parsed once. `printed` is
        MLIR's own output; it is returned as it is where a name or a body could also mean something
        else.
        """
        head = printed[: printed.find('"builtin.module"')]
        taken = any(f"{name} = " in head for name in self.definitions)
        if not self.definitions or taken or "#tt" in _strings(printed):
            return printed
        # A body that ends in its closing bracket cannot be the beginning of a longer one.
        bodies = {body: name for name, body in self._bodies.items() if body.endswith(">")}
        for body in sorted(bodies, key=len, reverse=True):
            printed = printed.replace(body, bodies[body])
        definitions = [f"{name} = {body}\n" for name, body in self.definitions.items()]
        return "".join(definitions) + printed

    @cached_property
    def _bodies(self) -> dict[str, str]:
        """The bodies with the names in them expanded; MLIR prints definitions before uses."""
        bodies: dict[str, str] = {}
        for name, body in self.definitions.items():
            bodies[name] = self._tokens.sub(lambda match: bodies.get(match[0], match[0]), body)
        return bodies

    @cached_property
    def _names(self) -> re.Pattern[str]:
        # Longest first: `#shared1` is not `#shared` and a digit.
        names = sorted(map(re.escape, self.definitions), key=len, reverse=True)
        return re.compile(rf"(?:{'|'.join(names)})(?![\w$.])")

    @cached_property
    def _tokens(self) -> re.Pattern[str]:
        return re.compile(f"{_STRING_OR_COMMENT}|{self._names.pattern}")


def expand_aliases(text: str) -> str:
    """`text` with every attribute and type alias replaced by its definition."""
    aliases, rest = Aliases.split(text)
    return aliases.expand(rest)


def _strings_are_inert(text: str) -> bool:
    """Whether no string and no comment can hold an alias; holds for all but a few modules."""
    if '\\"' in text or ("//" in text and _QUOTE_IN_COMMENT.search(text)):
        return False
    inside = _strings(text)
    return "#" not in inside and "!" not in inside and "// #" not in text


def _strings(text: str) -> str:
    """What stands between quotes; MLIR prints a quote in a string as a code."""
    return "".join(text.split('"')[1::2])
