"""What `epilogue-warp-specialize` makes, on a GPU: every point against its fp32 reference, outputs
poisoned before each launch, 20 launches compared bit by bit, two seeds.

Each test process has a worker that launches, so that a kernel that hangs or faults fails its
point, and the next point gets a fresh worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ws_cases import PAIRS, Case, cases_of

WORKER = Path(__file__).with_name("ws_gpu_worker.py")
START_SECONDS = 120.0
POINT_SECONDS = 60.0
"""For compiling and 2 x 21 launches, all of which take a few seconds."""


class Worker:
    """A process that runs cases, started when it is needed."""

    def __init__(self, *arguments: str, seconds: float = POINT_SECONDS) -> None:
        self._command = [sys.executable, str(WORKER), *arguments]
        self._seconds = seconds
        self.process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()

    def run(self, case: Case) -> str | None:
        """What is wrong with a case, or None."""
        process = self.process or self._start()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died meanwhile, as the answer will say
            process.stdin.write(json.dumps(case.to_json()) + "\n")
            process.stdin.flush()
        answer = self._answer(self._seconds)
        return answer if isinstance(answer, str) else json.loads(answer[0])

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.process, self._lines = process, queue.Queue()
        threading.Thread(target=_read, args=(process, self._lines), daemon=True).start()
        started = self._answer(START_SECONDS)
        assert started == ["ready\n"], f"the worker did not start: {started}"
        return process

    def _answer(self, seconds: float) -> str | list[str]:
        """The next line, in a list; or why there is none: the worker is then gone."""
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            self.stop()
            return f"no answer in {seconds:.0f} s: the kernel or its compilation hangs"
        if line:
            return [line]
        self.stop()
        return "the worker died"

    def stop(self) -> None:
        """End the worker, whatever it is doing."""
        if self.process is None:
            return
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None


def _read(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put("")


@pytest.fixture(scope="session")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.stop()


@pytest.mark.gpu
@pytest.mark.parametrize(("variant", "scheme"), PAIRS)
def test_points_are_right_and_repeat(variant: str, scheme: str, worker: Worker) -> None:
    problems = [
        f"{'x'.join(map(str, case.shape))} {case.fields}: {problem}"
        for case in cases_of(variant, scheme)
        if (problem := worker.run(case)) is not None
    ]
    assert not problems, "\n".join(problems)


def test_there_are_enough_points() -> None:
    points = sum(1 for pair in PAIRS for _ in cases_of(*pair))
    assert points >= 200


def test_a_worker_that_hangs_or_dies_fails_its_point_alone() -> None:
    """On a machine without a GPU too: the worker compiles only."""
    (good, *_) = cases_of("bf16-128", "cooperative")
    worker = Worker("compile", seconds=0.02)
    try:
        assert "no answer in 0 s" in str(worker.run(good))
        worker = Worker("compile", seconds=3600.0)
        assert worker.run(good) is None
        assert "no kernel 'missing'" in str(worker.run(replace(good, kernel="missing")))
        assert worker.process is not None
        os.kill(worker.process.pid, signal.SIGKILL)
        assert worker.run(good) == "the worker died"
        assert worker.run(good) is None
    finally:
        worker.stop()
