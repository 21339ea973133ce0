"""The textual form of a pipeline: `a{x=1,y=2},b@after:triton-pass`, `builtin.module(a,b{x=1})`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tilepass.core.anchor import Anchor
from tilepass.core.errors import AnchorError, PipelineSyntaxError

_NAME = re.compile(r"[A-Za-z][\w.-]*")
_ANCHOR_TEXT = re.compile(r"[\w.:#+*?-]+")
_KEY = re.compile(r"[A-Za-z][\w-]*")
_QUOTED = re.compile(r"""(["'])((?:(?!\1)[^\\]|\\.)*)\1""", re.DOTALL)
_ESCAPED = re.compile(r"""\\([\\"'])""")
_CLOSING = {"{": "}", "(": ")", "[": "]", "<": ">"}


@dataclass(frozen=True)
class PipelineItem:
    """One pass of a pipeline: its name, its options as text, and an anchor if one was given."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    anchor: Anchor | None = None

    def __str__(self) -> str:
        options = ",".join(f"{key}={spell_value(text)}" for key, text in self.options.items())
        anchor = f"@{self.anchor}" if self.anchor else ""
        return self.name + (f"{{{options}}}" if options else "") + anchor


@dataclass(frozen=True)
class Pipeline:
    """Passes in the order in which they run where their anchors coincide."""

    items: tuple[PipelineItem, ...] = ()

    def __str__(self) -> str:
        return ",".join(map(str, self.items))

    def __iter__(self) -> Iterator[PipelineItem]:
        return iter(self.items)

    def __bool__(self) -> bool:
        return bool(self.items)


def parse_pipeline(text: str) -> Pipeline:
    """Parse a pipeline. Raises PipelineSyntaxError with a caret under the offending character.

    Options are separated by commas or, as MLIR does, by blanks; a value may be in quotes.
    `builtin.module(...)` may wrap the whole list.
    """
    return _Parser(text).pipeline()


def spell_value(text: str) -> str:
    """An option value as a pipeline writes it: in quotes where it would not be read as it is."""
    if _Parser(f"{text}}}").reads_bare(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def is_pass_name(text: object) -> bool:
    """Whether a pipeline can name a pass so."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


class _Parser:
    """A cursor over the text; every method consumes what it names."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def pipeline(self) -> Pipeline:
        items = self._items(end="")
        return Pipeline(tuple(items))

    def _items(self, end: str) -> list[PipelineItem]:
        items: list[PipelineItem] = []
        self._blanks()
        if self._peek() == end:
            return items
        while True:
            items.extend(self._element())
            self._blanks()
            if self._peek() == end:
                return items
            self._take(",", "',' between passes" if not end else f"',' or '{end}'")

    def _element(self) -> list[PipelineItem]:
        self._blanks()
        start = self.at
        name = self._match(_NAME, "a pass name")
        if self._peek() == "(":
            if name != "builtin.module":
                self.at = start
                raise self._error(
                    f"'{name}(...)': only builtin.module(...) can hold passes; every pass runs on "
                    "the whole module"
                )
            self.at += 1
            nested = self._items(end=")")
            self._take(")", "')'")
            return nested
        options = self._options() if self._peek() == "{" else {}
        return [PipelineItem(name, MappingProxyType(options), self._anchor())]

    def _anchor(self) -> Anchor | None:
        if self._peek() != "@":
            return None
        self.at += 1
        start = self.at
        try:
            return Anchor.parse(self._match(_ANCHOR_TEXT, "an anchor"))
        except AnchorError as error:
            self.at = start
            raise self._error(str(error)) from error

    def _options(self) -> dict[str, str]:
        self.at += 1
        options: dict[str, str] = {}
        while True:
            self._blanks(extra=",")
            if self._peek() == "}":
                self.at += 1
                return options
            start = self.at
            key = self._match(_KEY, "an option name or '}'")
            if key in options:
                self.at = start
                raise self._error(f"option '{key}' is given twice")
            # MLIR writes a flag without a value.
            options[key] = self._value() if self._peek() == "=" else "true"

    def _value(self) -> str:
        self.at += 1
        if self._peek() in ('"', "'"):
            return self._quoted()
        start = self.at
        self._skip_bare()
        if self.at == start:
            raise self._error("expected a value after '='")
        return self.text[start : self.at]

    def _quoted(self) -> str:
        quoted = _QUOTED.match(self.text, self.at)
        if quoted is None:
            raise self._error("this quote is not closed")
        self.at = quoted.end()
        if self._peek() not in (",", "}") and not self._peek().isspace():
            raise self._error("expected ',' or '}' after the quoted value")
        return _ESCAPED.sub(r"\1", quoted[2])

    def reads_bare(self, value: str) -> bool:
        """Whether `value`, with which the text begins, would be read whole without quotes."""
        self._skip_bare()
        return bool(value) and value[0] not in "\"'" and self.at == len(value)

    def _skip_bare(self) -> None:
        closing = list[str]()
        while self.at < len(self.text):
            character = self.text[self.at]
            if closing and character == closing[-1]:
                closing.pop()
            elif character in _CLOSING:
                closing.append(_CLOSING[character])
            elif not closing and (character in ",}" or character.isspace()):
                break
            self.at += 1

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _blanks(self, extra: str = "") -> None:
        while self._peek() and (self._peek().isspace() or self._peek() in extra):
            self.at += 1

    def _take(self, character: str, expected: str) -> None:
        if self._peek() != character:
            raise self._error(f"expected {expected}")
        self.at += 1

    def _match(self, pattern: re.Pattern[str], expected: str) -> str:
        match = pattern.match(self.text, self.at)
        if not match:
            raise self._error(f"expected {expected}")
        self.at = match.end()
        return match[0]

    def _error(self, message: str) -> PipelineSyntaxError:
        return PipelineSyntaxError(f"pipeline: {message}\n  {self.text}\n  {' ' * self.at}^")
