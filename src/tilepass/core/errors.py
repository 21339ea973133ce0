"""Errors that reach a user: each message names the file, line, pass or option concerned."""

from __future__ import annotations

import re
from collections.abc import Iterable


class TilepassError(Exception):
    """Base of all errors that a command prints as `error: ...` without a traceback."""


class PipelineSyntaxError(TilepassError):
    """A pipeline text that cannot be parsed; the message holds the text and a caret."""


class UnknownPassError(TilepassError):
    """No pass of this name; the message lists the nearest names."""


class OptionError(TilepassError):
    """An option that the pass does not have, or a value of the wrong type."""


class AnchorError(TilepassError):
    """An anchor that names a stage or pass which this compiler does not run."""


class ParseError(TilepassError):
    """IR text that does not parse; the message holds the diagnostics."""


class PassFailure(TilepassError):
    """A pass raised or left invalid IR; the message names the pass and the reproducer file."""


class UnsupportedVersionError(TilepassError):
    """An installed compiler that tilepass does not support."""


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'a' or 'b'?`, or an empty string where nothing is close."""
    # Here and not above: every command imports this module, and few need it.
    import difflib

    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    if not close:
        return ""
    return "; did you mean " + " or ".join(f"'{candidate}'" for candidate in close) + "?"


_DIAGNOSTIC = re.compile(r"(?:error|warning|[^'\n]+:\d+:\d+: (?:error|warning)): ")


def is_diagnostic(text: str) -> bool:
    """Whether a message begins as compilers' do: `error: ...` or `file:line:column: error: ...`."""
    return _DIAGNOSTIC.match(text) is not None


def report(error: TilepassError) -> str:
    """The error as a command prints it: `error: ...`, or as it is where it is a diagnostic."""
    return str(error) if is_diagnostic(str(error)) else f"error: {error}"
