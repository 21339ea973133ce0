"""The self-test and the flatten study: their judgements, on reports of simulated samples."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from benchmarks import selftest
from benchmarks.flatten import (
    STUDIES,
    auto_against_faster,
    auto_summary,
    bf16_study,
    study_table,
)
from benchmarks.injected import WORKLOAD
from benchmarks.simulated_device import Noise, SimulatedDevice
from tilepass.ab.events import ArmReady, Done, Failed, Found, KernelFact, Setup, sampled
from tilepass.ab.job import Arm, Job, Point
from tilepass.ab.protocol import measure
from tilepass.ab.report import Report
from tilepass.ab.subjects import find_subject
from tilepass.core.errors import TilepassError


def fill(report: Report, index: int, codes: Sequence[str], ratios: Sequence[float]) -> None:
    """Add a point whose arms have these binaries; the distinct ones take these times."""
    for arm, code in enumerate(codes):
        kernel = KernelFact("matmul", code, "")
        settings = f"extra={arm}" if len(set(codes)) == 1 else ""
        report.add(ArmReady(index, arm, (kernel,), settings, equal_bits=True))
    report.add(Setup(index, 1, 1, 1e12, 1e9))
    device = SimulatedDevice([100.0 * r for r in ratios], Noise(launch=0.004), index)
    for batch in measure(device, len(ratios) - 1, report.job.plan, device.elapsed):
        report.add(sampled(index, batch))
    report.add(Done(index, "timed"))


def test_the_self_test_counts_verdicts() -> None:
    report = Report(selftest.slower_arm_job())
    for index in range(len(report.points)):
        fill(report, index, ("same", "same"), (1.0, 1.0 if index < 2 else 1.01, 1.0))
    outcome = selftest.judge_slower_arm(report)
    assert (outcome.good, outcome.runs, outcome.passed) == (8, 10, False)
    assert outcome.summary().endswith("SLOWER in 8 of 10 runs (at least 9): MISS")
    assert "SAME; A'/A" in outcome.lines[0]


def test_a_failed_run_of_the_self_test_counts_as_missed() -> None:
    report = Report(selftest.equal_arms_job())
    for index in range(len(report.points)):
        if index in (3, 4):
            report.add(Failed(index, "out of memory"))
        else:
            fill(report, index, ("same", "same"), (1.0, 1.0, 1.0))
    outcome = selftest.judge_equal_arms(report)
    assert (outcome.good, outcome.runs, outcome.passed) == (18, 20, False)
    assert "out of memory" in outcome.lines[3]


def test_the_injected_work_is_one_percent_and_changes_nothing() -> None:
    shape = (32, 16, 12800)
    inputs = WORKLOAD.make_inputs(shape, 0, "cpu")
    a, b = inputs.tensors["a"], inputs.tensors["b"]
    assert a.shape == (32, 12928)
    assert 100 * (a.shape[1] - 12800) == 12800
    added = a[:, 12800:].double() @ b[:, 12800:].double().T
    assert torch.count_nonzero(added) == 0
    assert torch.count_nonzero(a[:, 12800:]) > 4000  # random data: zeros would draw less power
    assert not torch.isnan(a).any()
    expected = a[:, :12800].float() @ b[:, :12800].float().T
    torch.testing.assert_close(WORKLOAD.reference(inputs)[0], expected)


def test_the_injected_work_needs_a_fitting_k() -> None:
    with pytest.raises(TilepassError, match="multiple of 12800, not 8192"):
        WORKLOAD.make_inputs((16, 16, 8192), 0, "cpu")
    subject = find_subject("benchmarks.injected:WORKLOAD")
    config = subject.configure(Point((16, 16, 12800)), Arm("B", "", {"extra": "7"}))
    inputs = subject.make_inputs((16, 16, 12800), 0, config, "cpu")
    with pytest.raises(TilepassError, match="extra is 0 or 1"):
        subject.launcher(inputs, config)


def test_auto_is_compared_with_the_faster_side() -> None:
    study = bf16_study()
    report = Report(study.job)
    report.add(Found({"GPU": "NVIDIA H200"}))
    fill(report, 0, ("off", "on", "on"), (1.0, 0.95, 1.0))  # auto is the faster one
    fill(report, 1, ("off", "on", "on"), (1.0, 1.01, 1.0))  # the slower one, within 2 %
    fill(report, 2, ("off", "on", "on"), (1.0, 1.05, 1.0))  # the slower one
    fill(report, 3, ("off", "on", "else"), (1.0, 1.05, 1.015, 1.0))  # a third binary
    found = [auto_against_faster(report, index) for index in range(6)]
    ratios = [None if item is None else item.ratio for item in found]
    assert ratios[0] == 1.0
    assert ratios[1:4] == pytest.approx([1.01, 1.05, 1.015], abs=0.003)
    assert ratios[4:] == [None, None]
    line, passed = auto_summary(study, report)
    assert "on 3 of 6 points (at least 5): MISS" in line
    assert not passed
    table = study_table(report).splitlines()
    assert len(table) == 8
    assert "| FASTER | on | 1.0000 |" in table[2]
    assert "| SLOWER | other |" in table[5]
    assert "waiting" in table[6]


def test_the_studies_are_what_the_readme_reports() -> None:
    studies = [make() for make in STUDIES.values()]
    assert [len(study.job.points) for study in studies] == [6, 15, 15]
    for study in studies:
        subject = find_subject(study.job.kernel)
        shapes = [point.shape for point in study.job.points]
        assert tuple(shapes) == subject.default_shapes
        for point in study.job.points:
            subject.configure(point, study.job.arms[0])


def test_a_job_for_one_arm_is_refused() -> None:
    with pytest.raises(TilepassError, match="two arms"):
        Job("persistent-matmul", (Arm("A"),), (Point((1, 1, 1)),))
