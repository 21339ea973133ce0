"""How every command ends: an exit status, and for an expected error one line on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from tilepass.core.errors import TilepassError, report

Command = Callable[[Sequence[str]], int]

FAILURE = 1
# What a shell reports for a command that SIGINT or SIGPIPE ended.
INTERRUPTED = 128 + 2
BROKEN_PIPE = 128 + 13


def run_guarded(command: Command, arguments: Sequence[str]) -> int:
    """Run `command` and return its exit status.

    A TilepassError, or an OSError (a full disk, a file that cannot be written), becomes a line
    `error: ...` and 1.
    """
    try:
        status = command(arguments)
        sys.stdout.flush()
    except TilepassError as error:
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


def _abandon_stdout() -> None:
    """What could not be written stays in the buffer: the flush at exit must not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
