"""The result of one check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tilepass.core.errors import TilepassError

# `note`: tilepass works, but something that it can use is missing.
Status = Literal["ok", "note", "FAIL"]


@dataclass(frozen=True)
class Finding:
    """What was found and, where it is not ok, what to do about it."""

    subject: str
    status: Status
    found: str
    advice: str = ""

    def format(self) -> str:
        """One line, and one more for the advice."""
        line = f"{self.status:<4}  {self.subject:<20}  {self.found}"
        return f"{line}\n{'':28}{self.advice}" if self.advice else line


Check = Callable[[], Sequence[Finding]]


def run_check(check: Check) -> Sequence[Finding]:
    """The findings of a check. One that cannot be carried out is a finding that fails."""
    try:
        return check()
    except (TilepassError, ImportError, OSError, RuntimeError) as error:
        subject = check.__name__.removeprefix("check_").replace("_", " ")
        return [Finding(subject, "FAIL", f"{type(error).__name__}: {error}")]
