"""Child processes and their time limits: the parent never touches the GPU itself.

A child that says nothing for too long is killed, one that dies is noticed; either way its current
point fails with the reason, and a fresh child goes on with the points that are left.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import IO, Self

from tilepass.ab.events import (
    ArmReady,
    Done,
    Event,
    Failed,
    Loaded,
    Sampled,
    Setup,
    Started,
    decode,
)
from tilepass.ab.job import Job, Task, encode_job

Command = Sequence[str]
_POLL_SECONDS = 0.2


def _wall_clock(process: int) -> float:
    del process
    return time.monotonic()


@dataclass(frozen=True)
class Limits:
    """Seconds of silence after which a child counts as hung, by what it is doing.

    `now` is the clock by which the child of a process id is judged.
    """

    start: float = 120.0
    compile: float = 180.0
    launch: float = 60.0
    now: Callable[[int], float] = _wall_clock

    def after(self, event: Event) -> float:
        """How long to wait for the event that follows this one."""
        if isinstance(event, Loaded | Setup | Sampled):
            return self.launch
        if isinstance(event, Started):
            return self.launch if event.step in ("estimate", "time") else self.compile
        return self.compile if isinstance(event, ArmReady) else self.start


def worker_command(mode: str) -> list[str]:
    """The command line of a worker: `mode` is `time` or `prime`."""
    return [sys.executable, "-m", "tilepass.ab.worker", mode]


def worker_environment() -> dict[str, str]:
    """The environment without what would activate passes: the arms alone decide on those.

    Triton's default for contracting a * b + c changes between versions, so it is pinned.
    """
    pinned = {"TRITON_DEFAULT_FP_FUSION": "1"}
    return pinned | {name: value for name, value in os.environ.items() if name != "TILEPASS"}


def run_tasks(
    command: Command,
    job: Job,
    tasks: Sequence[Task],
    limits: Limits,
    stop: threading.Event | None = None,
) -> Generator[Event]:
    """Events of all tasks, whatever happens to the processes that run them.

    Every task ends in exactly one Done or Failed. A job that fails as a whole (Failed with no
    point) ends the iteration, and so does setting `stop`. Leaving the iterator early kills the
    child.
    """
    stop = stop or threading.Event()
    left = list(tasks)
    while left and not stop.is_set():
        ended = 0
        fatal = False
        with _Child(command, encode_job(job, left)) as child:
            for event in child.events(limits, stop):
                if isinstance(event, Failed) and event.point is None:
                    fatal = True
                ended += isinstance(event, Done | Failed)
                yield event
            if fatal or stop.is_set():
                return
            reason = child.epitaph()
        if ended < len(left):
            # A child that failed before its first point would fail again and again.
            yield Failed(left[ended].point, reason, lost=True)
            ended += 1
        left = left[ended:]


def prime(
    command: Command,
    job: Job,
    tasks: Sequence[Task],
    limits: Limits,
    processes: int,
    seen: Callable[[Event], None],
) -> dict[Task, str]:
    """Run tasks spread over child processes, so that compilation uses every core.

    `seen` is called in the calling thread, with the events as they come. Returns the tasks whose
    process hung or died over them, with the reason; where the job keeps going without an arm that
    fails, those that failed otherwise too.
    """
    shares = [list(tasks[offset::processes]) for offset in range(min(processes, len(tasks)))]
    events: queue.Queue[Event | None] = queue.Queue()
    stop = threading.Event()
    lost: dict[Task, str] = {}

    def run(share: Sequence[Task]) -> None:
        ended = 0
        try:
            for event in run_tasks(command, job, share, limits, stop):
                events.put(event)
                if isinstance(event, Failed) and (event.lost or job.keep_going):
                    lost[share[ended]] = event.message
                ended += isinstance(event, Done | Failed)
        finally:
            events.put(None)

    threads = [threading.Thread(target=run, args=(share,), daemon=True) for share in shares]
    for thread in threads:
        thread.start()
    running = len(threads)
    try:
        while running:
            event = events.get()
            if event is None:
                running -= 1
            else:
                seen(event)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return lost


class _Child:
    """One worker process; its standard error is kept for the message about its death."""

    def __init__(self, command: Command, job_line: str) -> None:
        with contextlib.ExitStack() as files:
            self._log: IO[bytes] = files.enter_context(tempfile.TemporaryFile())
            self._files = files.pop_all()
        # A separate session: Ctrl-C reaches the parent alone, which then writes what there is.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=worker_environment(),
            start_new_session=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._hung: float | None = None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(job_line + "\n")
            self._process.stdin.close()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()
        self._files.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def events(self, limits: Limits, stop: threading.Event) -> Generator[Event]:
        """Events until the child ends or falls silent, or `stop` is set."""
        limit, heard = limits.start, limits.now(self._process.pid)
        while not stop.is_set():
            try:
                line = self._lines.get(timeout=min(limit, _POLL_SECONDS))
            except queue.Empty:
                if limits.now(self._process.pid) - heard < limit:
                    continue
                self._hung = limit
                return
            if line is None:
                return
            event = decode(line)
            limit, heard = limits.after(event), limits.now(self._process.pid)
            yield event

    def epitaph(self) -> str:
        """Why the child ended, with the end of what it wrote to standard error."""
        if self._hung is not None:
            return f"the kernel or its compilation hung: no progress in {self._hung:.0f} s"
        status = self._process.wait()
        self._log.seek(0)
        said = self._log.read().decode(errors="replace").strip().splitlines()[-3:]
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"the worker ended with {how}" + (f": {' | '.join(said)}" if said else "")

    def _kill(self) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
