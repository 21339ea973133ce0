"""Arms that are a library's function, and jobs that go on without an arm that fails."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from test_ab_point import FakeGpu, FakeLog, kernel
from test_ab_supervisor import ROOT, limits_of

from tilepass.ab.checks import library_tolerance, wrong_outputs
from tilepass.ab.events import ArmFailed, ArmReady, Done, Event, Failed, Setup
from tilepass.ab.job import Arm, Job, Point
from tilepass.ab.point import PointRunner
from tilepass.ab.protocol import Plan
from tilepass.ab.report import Report
from tilepass.ab.session import Means, priming_tasks, run_on_gpu, run_static
from tilepass.ab.subjects import Subject, find_library, find_subject
from tilepass.ab.table import print_report
from tilepass.ab.torch_matmul import LIBRARIES
from tilepass.core.errors import TilepassError
from tilepass.kernels import get_workload

MODULE = """
def make_inputs(shape, seed, device="cuda"):
    import torch
    return torch.rand(shape, generator=torch.Generator(device).manual_seed(seed))


def reference(inputs):
    return 2 * inputs


def double(inputs, how="right"):
    if how == "broken":
        raise ValueError("no such slot")
    return inputs + inputs if how == "right" else 3 * inputs


def library(inputs):
    return inputs * 2


def numbers(inputs):
    return 7
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "doubling_library.py"
    path.write_text(MODULE)
    return path


def job_of(module: Path, *arms: Arm, keep_going: bool = True) -> Job:
    plan = Plan(warm_up_seconds=0.0)
    return Job(f"{module}:double", arms, (Point((64,)),), plan, keep_going=keep_going)


def run(job: Job, subject: Subject) -> tuple[list[Event], Report]:
    report, events = Report(job), list[Event]()
    log = FakeLog([kernel(code) for code in "abcdef"])
    runner = PointRunner(job, subject, log, FakeGpu(microseconds=900.0), events.append)
    runner.run(0, range(len(job.arms)))
    for event in events:
        report.add(event)
    return events, report


def test_a_library_is_timed_beside_the_kernel(module: Path) -> None:
    job = job_of(module, Arm("torch", library=f"{module}:library"), Arm("mine"))
    events, report = run(job, find_subject(job.kernel))
    assert events[-1] == Done(0, "timed")
    (first, second) = (event for event in events if isinstance(event, ArmReady))
    assert (first.kernels, first.settings) == ((), f"{module}:library")
    assert (second.kernels, second.equal_bits) == ((kernel("a"),), True)
    found = report.compare(0, 1)
    assert found is not None
    assert found[0].ratio == pytest.approx(1.05, abs=0.002)
    assert report.to_dict()["points"][0]["arms"][0]["kernels"] == []


def test_an_arm_that_fails_is_left_out(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arms = [Arm(how, overrides={"how": how}) for how in ("right", "broken", "wrong")]
    job = job_of(module, *arms, Arm("torch", library=f"{module}:library"))
    events, report = run(job, find_subject(job.kernel))
    failed = {event.arm: event.message for event in events if isinstance(event, ArmFailed)}
    assert failed[1] == "ValueError: no such slot"
    assert "arm wrong (stock, how=wrong) is wrong: output 0: 64 of 64" in failed[2]
    assert report.points[0].first == {0: 0, 3: 3}
    assert report.compare(0, 1) is None
    assert report.compare(0, 3) is not None
    assert [entry["failure"] is None for entry in report.to_dict()["points"][0]["arms"]] == [
        True,
        False,
        False,
        True,
    ]
    from rich.console import Console

    print_report(report, Console(width=200))
    assert "arm broken failed: ValueError: no such slot" in capsys.readouterr().out


def test_an_arm_that_fails_fails_the_point_otherwise(module: Path) -> None:
    arms = [Arm(how, overrides={"how": how}) for how in ("right", "broken")]
    job = job_of(module, *arms, keep_going=False)
    with pytest.raises(ValueError, match="no such slot"):
        run(job, find_subject(job.kernel))
    with pytest.raises(TilepassError, match="every arm but the baseline failed"):
        run(replace(job, keep_going=True), find_subject(job.kernel))


def test_the_baseline_must_not_fail(module: Path) -> None:
    job = job_of(module, Arm("A", overrides={"how": "broken"}), Arm("B"))
    with pytest.raises(ValueError, match="no such slot"):
        run(job, find_subject(job.kernel))


def test_libraries_are_looked_up(module: Path) -> None:
    with pytest.raises(TilepassError, match="has no function 'tripled'"):
        find_library(f"{module}:tripled")
    with pytest.raises(TilepassError, match="library 'mm' is not of the form module:function"):
        find_library("mm")
    with pytest.raises(TilepassError, match=r"must return a tensor .*, not int"):
        find_library(f"{module}:numbers")(None)
    with pytest.raises(TilepassError, match="arm T is x:y, which no pass can change"):
        Arm("T", "flatten-loops", library="x:y")


def test_torch_computes_what_the_references_say() -> None:
    workload = get_workload("persistent_matmul")
    for epilogue, library in LIBRARIES.items():
        config = workload.config_for((48, 64, 40), epilogue=epilogue)
        inputs = workload.make_inputs((48, 64, 40), 0, "cpu", config)
        outputs, expected = find_library(library)(inputs), workload.reference(inputs)
        tolerance = workload.tolerance(inputs)
        assert wrong_outputs(outputs, expected, library_tolerance(tolerance)) is None, epilogue
        if epilogue != "bias_gelu":  # which the CPU rounds to bf16 before the GELU
            assert wrong_outputs(outputs, expected, tolerance) is None, epilogue


def test_only_kernels_are_primed_each_at_every_shape_where_one_may_fail() -> None:
    points = (Point((256, 256, 64)), Point((512, 256, 64)))
    arms = (Arm("T", library=LIBRARIES["none"]), Arm("A"), Arm("B", "flatten-loops{mode=off}"))
    job = Job("persistent-matmul", arms, points)
    subject = find_subject(job.kernel)
    tasks = [(task.point, task.arms) for task in priming_tasks(job, subject).values()]
    assert tasks == [(0, (1,)), (0, (2,))]
    going = priming_tasks(replace(job, keep_going=True), subject)
    assert [(task.point, task.arms) for task in going.values()] == [
        (0, (1,)),
        (0, (2,)),
        (1, (1,)),
        (1, (2,)),
    ]


def test_arms_that_do_not_compile_are_left_out() -> None:
    arms = (
        Arm("T", library=LIBRARIES["none"]),
        Arm("plain"),
        Arm("wide", overrides={"block_n": "48"}),
    )
    job = Job("persistent-matmul", arms, (Point((256, 256, 64)),), keep_going=True)
    subject = find_subject(job.kernel)
    point = run_static(job, subject, 90).points[0]
    assert point.status == "compiled"
    assert "does not compile" in point.failures[2]
    assert point.first == {0: 0, 1: 1}
    failed = run_static(replace(job, keep_going=False), subject, 90).points[0]
    assert failed.status == "failed"
    assert not isinstance(failed.setup, Setup | Failed)


# A worker whose arms do what they are called when they are primed; the others are then timed.
WORKER = (
    f"import sys; sys.path.append({str(ROOT)!r})"
    + """
import os, sys, time
from pathlib import Path
from tilepass.ab.events import *
from tilepass.ab.job import decode_job
from tilepass.ab.protocol import measure
from benchmarks.simulated_device import Noise, SimulatedDevice

def emit(event):
    print(encode(event), flush=True)

job, tasks = decode_job(sys.stdin.readline())
for task in tasks:
    names = [job.arms[arm].label for arm in task.arms]
    emit(Started(task.point, "check"))
    if sys.argv[1] == "prime":
        if names == ["hangs"]:
            Path(__file__).with_name(f"hung-{os.getpid()}").touch()
            time.sleep(3600)
        if names == ["dies"]:
            os._exit(9)
        refused = names == ["refused"]
        emit(Failed(task.point, "no such scheme") if refused else Done(task.point, "primed"))
        continue
    for arm, name in zip(task.arms, names):
        emit(ArmReady(task.point, arm, (KernelFact("matmul", name, ""),), name, True))
    emit(Setup(task.point, 4, 3, 1e9, 1e6))
    device = SimulatedDevice([100.0, 102.0, 100.0], Noise(launch=0.005), task.point)
    for batch in measure(device, 2, job.plan, device.elapsed):
        emit(sampled(task.point, batch))
    emit(Done(task.point, "timed"))
"""
)


def test_arms_that_fail_when_primed_are_not_timed(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    names = ("torch", "hangs", "dies", "refused", "fine")
    arms = [Arm(name, overrides={"group_m": str(index)}) for index, name in enumerate(names[1:], 1)]
    library = Arm("torch", library=LIBRARIES["none"])
    job = Job("persistent-matmul", (library, *arms), (Point((256, 256, 64)),), keep_going=True)
    limits = limits_of(tmp_path)
    means = Means(2, None, limits, lambda mode: [sys.executable, str(script), mode])
    report = run_on_gpu(job, find_subject(job.kernel), means)
    point = report.points[0]
    assert (point.status, point.message) == ("timed", "")
    assert sorted(point.failures) == [1, 2, 3]
    assert "hung: no progress in 1 s" in point.failures[1]
    assert "ended with exit status 9" in point.failures[2]
    assert point.failures[3] == "no such scheme"
    found = report.compare(0, 4)
    assert found is not None
    assert found[0].ratio == pytest.approx(1.02, abs=0.003)
    assert not report.failed
