"""Source locations and diagnostics in the form that compilers print them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "remark", "note"]


@dataclass(frozen=True)
class SourceLocation:
    """A place in a source file; line and column count from 1, 0 where unknown."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Diagnostic:
    """One message of a parser, verifier or pass, with the notes attached to it."""

    severity: Severity
    message: str
    location: SourceLocation | None = None
    notes: tuple[Diagnostic, ...] = ()

    def format(self) -> str:
        """`file:line:column: severity: message`, each note on its own line."""
        place = f"{self.location}: " if self.location else ""
        own = f"{place}{self.severity}: {self.message}"
        return "\n".join([own, *(note.format() for note in self.notes)])
