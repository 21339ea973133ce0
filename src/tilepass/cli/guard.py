"""How every command ends: an exit status, and for an expected error one line on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Literal, TextIO

from tilepass.cli.supervise import supervised
from tilepass.core import tracebacks
from tilepass.core.errors import TilepassError, report

Command = Callable[[Sequence[str]], int]

FAILURE = 1
# What a shell reports for a command that SIGINT or SIGPIPE ended.
INTERRUPTED = 128 + 2
BROKEN_PIPE = 128 + 13


def run_guarded(command: Command, arguments: Sequence[str], *, in_child: bool = False) -> int:
    """Run `command` and return its exit status.

    A TilepassError, or an OSError (a full disk, a file that cannot be written), becomes a line
    `error: ...` and 1; `in_child`, so does a crash of native code.
    """
    _fill_closed_streams()
    if in_child:
        return supervised(lambda: _guarded(command, arguments))
    return _guarded(command, arguments)


def _guarded(command: Command, arguments: Sequence[str]) -> int:
    try:
        status = _run_and_flush(command, arguments)
    except TilepassError as error:
        tracebacks.print_if_wanted(error)
        print(report(error), file=sys.stderr)
        return FAILURE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_stdout()
        return BROKEN_PIPE
    except OSError as error:
        if error.filename is None:
            _abandon_stdout()
        place = "standard output" if error.filename is None else error.filename
        print(f"error: {place}: {error.strerror or error}", file=sys.stderr)
        return FAILURE
    return status


def _run_and_flush(command: Command, arguments: Sequence[str]) -> int:
    try:
        status = command(arguments)
    except SystemExit:
        # After `--help`, which may go to a full disk too.
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return status


def _fill_closed_streams() -> None:
    """Open the standard streams that the caller has closed (`>&-`).

    Otherwise the next file that is opened takes the number of one. Reading finds nothing, writing
    to stdout fails as it does in a program in C, and messages go nowhere.
    """
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdin = _open_nothing(0, os.O_RDONLY, "r")
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdout = _open_nothing(1, os.O_RDONLY, "w")
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = _open_nothing(2, os.O_WRONLY, "w")


def _open_nothing(number: int, flags: int, mode: Literal["r", "w"]) -> TextIO:
    opened = os.open(os.devnull, flags)
    os.dup2(opened, number)
    if opened != number:
        os.close(opened)
    return open(number, mode, encoding="utf-8", closefd=False)


def _abandon_stdout() -> None:
    """What could not be written stays in the buffer: the flush at exit must not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
