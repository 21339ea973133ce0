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
    """Run `command` and return its exit status; a TilepassError becomes `error: ...` and 1."""
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
        # The reader is gone; the interpreter's own flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return status
