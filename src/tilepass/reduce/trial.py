"""Runs the command on a candidate and says whether it fails as it did on the input.

The candidate is printed, and thereby verified, in the child too: Triton's verifier may end its
process.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tilepass.core.errors import TilepassError

_PLACES = re.compile(r"\S*?[\w.-]+:\d+:\d+")
_VARYING = re.compile(r"0x[0-9a-f]+|%[\w#.-]+|-?\d+(\.\d+)?(e[+-]?\d+)?")


@dataclass(frozen=True)
class Failing:
    """How a command fails: its status (below zero: the signal) and what it says of why."""

    status: int
    message: str


@dataclass(frozen=True)
class Command:
    """A command whose word `{}` is the file's name; `execute` runs it in its own child.

    It fails in the same way with the same status and, where `match` is given, that in its output;
    else with the same first error, numbers aside. `timeout` is in seconds.
    """

    words: Sequence[str]
    execute: Callable[[Sequence[str]], int]
    match: re.Pattern[str] | None = None
    timeout: float = 60.0

    def failing(self, status: int, output: str) -> Failing | None:
        """How it failed, None where it did not, or not in the way that `match` asks for."""
        if status == 0 or (self.match and not self.match.search(output)):
            return None
        return Failing(status, "" if self.match else _first_error(output))

    def start(self, write: Callable[[], str], folder: Path) -> Run:
        """Run the command on a text that the child makes, in its own folder; a text that it
        cannot make, since the module does not verify, is not a failure."""
        sys.stdout.flush()
        sys.stderr.flush()
        path = Path(tempfile.mkdtemp(dir=folder))
        if child := os.fork():
            return Run(self, path, child)
        status = 1
        try:
            status = self._run(write, path)
        except SystemExit as exit_:
            status = exit_.code if isinstance(exit_.code, int) else 1
        except OSError as error:
            print(f"error: {self.words[0]}: {error.strerror}")
            status = 127
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _run(self, write: Callable[[], str], path: Path) -> int:
        os.setsid()
        # A verifier that aborts is one more answer.
        faulthandler.disable()
        log = os.open(path / "log", os.O_WRONLY | os.O_CREAT)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        (path / "invalid").touch()
        candidate = path / "candidate.mlir"
        candidate.write_text(write())
        (path / "invalid").unlink()
        return self.execute([word.replace("{}", str(candidate)) for word in self.words])


@dataclass
class Run:
    """A command that was started on a candidate."""

    command: Command
    folder: Path
    process: int
    started: float = field(default_factory=time.monotonic)
    _status: int | None = None

    def result(self) -> Failing | None:
        """How the command failed; None where it did not, was too slow, or the module is invalid."""
        status = self.wait()
        if (self.folder / "invalid").exists() or status is None:
            return None
        return self.command.failing(status, self.output())

    def wait(self) -> int | None:
        """The exit status, None where the command was ended for its time."""
        while self._status is None:
            done, status = os.waitpid(self.process, os.WNOHANG)
            if done:
                self._status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() - self.started > self.command.timeout:
                self.stop()
                return None
            else:
                time.sleep(0.002)
        return self._status

    def stop(self) -> None:
        """End the command and what it started."""
        if self._status is None:
            # The child may not have got so far as to lead a group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process, signal.SIGKILL)
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            self._status = -signal.SIGKILL

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def text(self) -> str:
        """The candidate."""
        return (self.folder / "candidate.mlir").read_text()

    def output(self) -> str:
        """What it printed, on both streams."""
        log = self.folder / "log"
        return log.read_text(errors="replace") if log.exists() else ""


def require_failure(command: Command, text: str, folder: Path) -> Failing:
    """How the command fails on the input. Raises TilepassError where it does not."""
    run = command.start(lambda: text, folder)
    failing = run.result()
    if failing is None:
        said = run.output().strip().splitlines()
        last = f"; it says: {said[-1]}" if said else ""
        wanted = f" with '{command.match.pattern}' in its output" if command.match else ""
        raise TilepassError(f"the command does not fail{wanted} on the input{last}")
    return failing


def _first_error(output: str) -> str:
    """The first error that was printed, without places, names of values and numbers."""
    lines = [line for line in output.splitlines() if line.strip()]
    first = next((line for line in lines if "error:" in line), lines[-1] if lines else "")
    return _VARYING.sub("N", _PLACES.sub("PLACE", first.rpartition("error:")[2]))
