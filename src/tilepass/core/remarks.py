"""Remarks: what a pass did, what it could not do and why, and what it found."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, cast

from tilepass.core.diagnostics import Diagnostic, SourceLocation

RemarkKind = Literal["passed", "missed", "analysis"]


@dataclass(frozen=True)
class Remark:
    """One remark of one pass; `location` is the source line that the operation came from."""

    kind: RemarkKind
    pass_name: str
    message: str
    location: SourceLocation | None = None

    def format(self) -> str:
        """`file:line:column: remark: [pass-name] kind: message`."""
        text = f"[{self.pass_name}] {self.kind}: {self.message}"
        return Diagnostic("remark", text, self.location).format()


_FORMATTED = re.compile(
    r"(?:(?P<file>.*?):(?P<line>\d+):(?P<column>\d+): )?remark: "
    r"\[(?P<name>[^\]]*)\] (?P<kind>passed|missed|analysis): (?P<message>.*)",
    re.DOTALL,
)


def parse_remark(text: str) -> Remark:
    """The remark that `Remark.format` made the text of. Raises ValueError for another text."""
    match = _FORMATTED.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not a remark")
    location = None
    if match["file"] is not None:
        location = SourceLocation(match["file"], int(match["line"]), int(match["column"]))
    return Remark(cast("RemarkKind", match["kind"]), match["name"], match["message"], location)


RemarkListener = Callable[[Remark], None]


@dataclass
class RemarkSink:
    """Collects the remarks of one pass run and hands each to the listeners."""

    pass_name: str
    locate: Callable[[object], SourceLocation | None]
    listeners: tuple[RemarkListener, ...] = ()
    remarks: list[Remark] = field(default_factory=list[Remark])

    def passed(self, where: object, message: str) -> None:
        """A rewrite happened at `where` (an operation, a SourceLocation, or None)."""
        self._emit("passed", where, message)

    def missed(self, where: object, message: str) -> None:
        """A rewrite did not happen; the message says why and, if possible, what would help."""
        self._emit("missed", where, message)

    def analysis(self, where: object, message: str) -> None:
        """A fact that an analysis found."""
        self._emit("analysis", where, message)

    def _emit(self, kind: RemarkKind, where: object, message: str) -> None:
        self.repeat(Remark(kind, self.pass_name, message, self.place(where)))

    def place(self, where: object) -> SourceLocation | None:
        """The source line of an operation, a SourceLocation, or None."""
        if where is None or isinstance(where, SourceLocation):
            return where
        return self.locate(where)

    def repeat(self, remark: Remark) -> None:
        """Collect a remark, new or of an earlier run of the pass that had the same outcome."""
        self.remarks.append(remark)
        for listener in self.listeners:
            listener(remark)
