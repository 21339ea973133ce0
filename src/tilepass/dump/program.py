"""Running a program whose compilations are dumped."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from tilepass.core.errors import TilepassError

_SECONDS_TO_END = 10.0


def run_program(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run `command` to its end; returns its exit status, 128 + N where signal N ended it.

    Ctrl-C is left to the program, which gets it from the terminal too; a second one ends it.
    Raises TilepassError where the program cannot be started.
    """
    sys.stdout.flush()
    try:
        program = subprocess.Popen(command, env=dict(environment))
    except OSError as error:
        raise TilepassError(f"cannot run '{command[0]}': {error.strerror}") from error
    with _terminated_with(program):
        status = _wait(program)
    return 128 - status if status < 0 else status


def _wait(program: subprocess.Popen[bytes]) -> int:
    try:
        return program.wait()
    except KeyboardInterrupt:
        pass
    try:
        return program.wait()
    except KeyboardInterrupt:
        program.terminate()
    try:
        return program.wait(_SECONDS_TO_END)
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        program.kill()
        return program.wait()


@contextmanager
def _terminated_with(program: subprocess.Popen[bytes]) -> Generator[None]:
    """SIGTERM goes to the program instead of ending this process."""
    previous = signal.signal(signal.SIGTERM, lambda number, frame: program.send_signal(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
