"""Child processes that hang, die, or end well: no GPU, the workers are small scripts."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tilepass.ab.events import Done, Event, Failed, KernelFact, Sampled, decode, encode
from tilepass.ab.job import Arm, Job, Point, Task, decode_job, encode_job
from tilepass.ab.report import Report
from tilepass.ab.session import Means, run_on_gpu
from tilepass.ab.subjects import OwnSubject, Subject, find_subject
from tilepass.ab.supervisor import Limits, prime, run_tasks
from tilepass.core.errors import TilepassError

ROOT = Path(__file__).parents[1]
# Longer than any test; who sleeps so long is killed.
FOR_EVER = 3600

# A worker that does with each point what the point's own `behave` setting says.
WORKER = (
    f"import sys; sys.path.append({str(ROOT)!r})"
    + """
import json, os, sys, time
from pathlib import Path
import numpy as np
from tilepass.ab.events import *
from tilepass.ab.job import decode_job
from tilepass.ab.protocol import measure
from benchmarks.simulated_device import Noise, SimulatedDevice

def emit(event):
    print(encode(event), flush=True)

def hang():
    Path(__file__).with_name(f"hung-{os.getpid()}").touch()
    time.sleep(3600)

job, tasks = decode_job(sys.stdin.readline())
emit(Found({"GPU": "simulated", "driver": "0", "triton": "0"}))
for task in tasks:
    behave = job.points[task.point].overrides.get("behave", "time")
    emit(Started(task.point, "check"))
    if behave == "hang":
        hang()
    if behave == "die":
        print("Fatal: the GPU fell off", file=sys.stderr)
        os._exit(9)
    if behave == "wrong":
        emit(Failed(task.point, "arm B is wrong: output 0: 5 of 64 elements are wrong"))
        continue
    if sys.argv[1] == "prime":
        emit(Remarked(task.point, task.arms[0], (f"remark [x] missed: {task.arms}",)))
        emit(Done(task.point, "primed"))
        continue
    same = behave == "identical"
    for arm in range(len(job.arms)):
        code = "a" if same else str(arm)
        kernel = KernelFact("matmul", code, "")
        emit(ArmReady(task.point, arm, (kernel,), "Config()", True))
    if same:
        emit(Done(task.point, "identical"))
        continue
    emit(Setup(task.point, 4, 3, 1e9, 1e6))
    emit(Started(task.point, "time"))
    device = SimulatedDevice([100.0, 102.0, 100.0], Noise(launch=0.005), task.point)
    for batch in measure(device, 2, job.plan, device.elapsed):
        emit(sampled(task.point, batch))
        if behave == "stall":
            hang()
    emit(Done(task.point, "timed"))
"""
)


@pytest.fixture
def worker(tmp_path: Path) -> Callable[[str], list[str]]:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    return lambda mode: [sys.executable, str(script), mode]


@pytest.fixture
def limits(tmp_path: Path) -> Limits:
    """No time passes for a worker, however slow the machine, until it says that it hangs."""
    return limits_of(tmp_path)


def limits_of(folder: Path) -> Limits:
    """Limits for workers that leave a file `hung-` and their process id in a folder.

    From then on ten seconds pass between one look at the clock and the next.
    """
    looks = itertools.count()

    def now(process: int) -> float:
        return 10.0 * next(looks) if (folder / f"hung-{process}").exists() else 0.0

    return Limits(start=1.0, compile=1.0, launch=1.0, now=now)


def hanging_process(folder: Path) -> int:
    """The id of the worker that says it hangs; it is just about to."""
    end = time.monotonic() + FOR_EVER / 6
    while not (found := list(folder.glob("hung-*"))):
        assert time.monotonic() < end
        time.sleep(0.02)
    return int(found[0].name.removeprefix("hung-"))


def job_of(*behaviours: str, **overrides: str) -> Job:
    points = [Point((64, 64, 64), {"behave": item, **overrides}) for item in behaviours]
    return Job("matmul", (Arm("A"), Arm("B", "flatten-loops{mode=on}")), tuple(points))


class FreeSubject(OwnSubject):
    """A subject whose kernel options are free: the worker above reads them."""

    def __init__(self) -> None:
        self.name = "matmul"
        self.default_shapes = ()

    def configure(self, point: Point, arm: Arm) -> object:
        return dict(point.overrides)


def tasks_of(job: Job) -> list[Task]:
    return [Task(index, (0, 1)) for index in range(len(job.points))]


def ends(events: Sequence[Event]) -> list[Done | Failed]:
    return [event for event in events if isinstance(event, Done | Failed)]


def test_every_point_ends_once_whatever_happens(
    worker: Callable[[str], list[str]], limits: Limits
) -> None:
    job = job_of("time", "hang", "die", "wrong", "identical", "stall", "time")
    events = list(run_tasks(worker("time"), job, tasks_of(job), limits))
    ended = ends(events)
    assert [event.point for event in ended] == list(range(7))
    outcomes = [e.outcome if isinstance(e, Done) else e.message for e in ended]
    assert outcomes[0] == outcomes[6] == "timed"
    assert "hung: no progress in 1 s" in outcomes[1]
    assert outcomes[2] == "the worker ended with exit status 9: Fatal: the GPU fell off"
    assert "5 of 64" in outcomes[3]
    assert outcomes[4] == "identical"
    assert "hung" in outcomes[5]
    assert [event.lost for event in ended if isinstance(event, Failed)] == [
        True,
        True,
        False,
        True,
    ]


def test_leaving_early_kills_the_child(worker: Callable[[str], list[str]], tmp_path: Path) -> None:
    stream = run_tasks(worker("time"), job_of("stall"), [Task(0, (0, 1))], Limits())
    for event in stream:
        if isinstance(event, Sampled):
            break
    else:
        pytest.fail("the worker ended")
    child = hanging_process(tmp_path)
    stream.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_job_that_fails_as_a_whole_ends_everything(tmp_path: Path, limits: Limits) -> None:
    script = tmp_path / "worker.py"
    script.write_text(
        "from tilepass.ab.events import *\nprint(encode(Failed(None, 'torch finds no GPU')))\n"
    )
    job = job_of("time", "time")
    events = list(run_tasks([sys.executable, str(script)], job, tasks_of(job), limits))
    assert events == [Failed(None, "torch finds no GPU")]


def test_priming_uses_several_processes_and_names_what_was_lost(
    worker: Callable[[str], list[str]], limits: Limits
) -> None:
    job = job_of("time", "hang", "time", "die", "wrong")
    seen: list[Event] = []
    lost = prime(worker("prime"), job, tasks_of(job), limits, 3, seen.append)
    assert sorted(task.point for task in lost) == [1, 3]
    assert sorted(event.point or 0 for event in ends(seen)) == [0, 1, 2, 3, 4]


def test_a_whole_run(worker: Callable[[str], list[str]], limits: Limits) -> None:
    job = job_of("time", "identical", "wrong", "hang")
    means = Means(processes=2, limits=limits, command=worker)
    report = run_on_gpu(job, FreeSubject(), means)
    assert [p.status for p in report.points] == ["timed", "identical", "failed", "failed"]
    found = report.compare(0, 1)
    assert found is not None
    assert found[0].ratio == pytest.approx(1.02, abs=0.003)
    assert str(found[1]) == "SLOWER"
    assert report.facts["GPU"] == "simulated"
    assert report.points[0].remarks == {
        0: ("remark [x] missed: (0,)",),
        1: ("remark [x] missed: (1,)",),
    }
    assert report.failed
    assert not report.partial
    assert "arm A: the kernel or its compilation hung" in report.points[3].message


def test_the_end_of_the_budget_gives_a_partial_report(
    worker: Callable[[str], list[str]],
) -> None:
    job = job_of("time", "time", "stall", "time")
    limits = Limits(FOR_EVER, FOR_EVER, FOR_EVER)
    means = Means(processes=1, budget=0.01, limits=limits, command=worker)
    report = run_on_gpu(job, FreeSubject(), means)
    assert report.partial
    assert report.to_dict()["status"] == "partial"


# `tilepass ab` on a machine that seems to have a GPU, with the worker above.
COMMAND = """
import sys
from pathlib import Path
from tilepass.ab import session
from tilepass.ab.events import Sampled
from tilepass.cli import ab
from tilepass.cli.guard import run_guarded

worker, measured, *arguments = sys.argv[1:]
note = session._note

def note_and_tell(report, event, listener):
    note(report, event, listener)
    if isinstance(event, Sampled):
        Path(measured).touch()

session._note = note_and_tell
session.gpu_count = lambda: 1
ab._means = lambda _: session.Means(1, command=lambda mode: [sys.executable, worker, mode])
sys.exit(run_guarded(ab.main, arguments))
"""

KERNEL = """
def matmul(inputs, **options): ...
def make_inputs(shape, seed): ...
def reference(inputs): ...
"""


def test_ctrl_c_keeps_what_was_measured(worker: Callable[[str], list[str]], tmp_path: Path) -> None:
    (tmp_path / "command.py").write_text(COMMAND)
    (tmp_path / "kernel.py").write_text(KERNEL)
    measured, result = tmp_path / "measured", tmp_path / "result.json"
    command = [sys.executable, str(tmp_path / "command.py"), worker("time")[1], str(measured)]
    command += [f"{tmp_path / 'kernel.py'}:matmul", "--shape", "64x64x64", "--shape", "32x32x32"]
    command += ["--config=behave=stall", "--raw", "--json", str(result)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not measured.exists():
        assert process.poll() is None
        time.sleep(0.02)
    child = hanging_process(tmp_path)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "PARTIAL: ended by Ctrl-C" in out
    data = json.loads(result.read_text())
    assert (data["status"], data["ended_by"]) == ("partial", "Ctrl-C")
    assert [point["status"] for point in data["points"]] == ["partial", "partial"]
    assert data["points"][0]["rounds_measured"] > 0
    assert len(data["points"][0]["times_us"]) > 0
    assert data["points"][1]["rounds_measured"] == 0
    with pytest.raises(ProcessLookupError):  # the worker, which sleeps on, was ended
        os.kill(child, 0)


def test_jobs_and_events_survive_the_trip() -> None:
    job = job_of("time", flag="x")
    assert decode_job(encode_job(job, tasks_of(job))) == (job, tuple(tasks_of(job)))
    event = Sampled(1, [[1.5, 2.5]], None)
    assert decode(encode(event)) == event
    assert KernelFact("k", "h", "p") == KernelFact(**{"name": "k", "code_hash": "h", "path": "p"})
    with pytest.raises(TilepassError, match="not an event"):
        decode("Segmentation fault\n")


def test_a_worker_without_a_gpu_says_so() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    job = job_of("time")
    report = run_on_gpu(job, FreeSubject(), Means(processes=1))
    assert report.failure is not None
    assert "finds no GPU" in report.failure
    assert report.failed


def test_a_report_without_events_is_partial() -> None:
    report = Report(job_of("time"))
    assert report.partial
    assert report.compare(0, 1) is None


def test_subject_names_are_checked() -> None:
    with pytest.raises(TilepassError, match=r"no kernel 'persistant.*persistent"):
        find_subject("persistant-matmul")
    subject: Subject = find_subject("persistent-matmul")
    with pytest.raises(TilepassError, match="flaten"):
        subject.configure(Point((64, 64, 64)), Arm("A", "", {"flaten": "1"}))
