"""The warp-specialization study: its arms, its table and goals, and what limits a shape."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from test_ab_studies import fill

from benchmarks.warp_specialize.limits import Tiling, limits
from benchmarks.warp_specialize.study import SHALLOW, SHAPES, STUDIES, Goal, restricted
from benchmarks.warp_specialize.table import (
    geomean,
    goal_lines,
    library_table,
    limit_lines,
    speedups,
)
from tilepass.ab.events import ArmFailed, ArmReady, Done, Found, KernelFact, Setup, sampled
from tilepass.ab.job import Arm, Job, Point
from tilepass.ab.report import Report
from tilepass.core.errors import TilepassError


def test_studies_are_what_the_readme_reports() -> None:
    assert {name: len(make().job.points) for name, make in STUDIES.items()} == {
        "matmul": 10,
        "bias-gelu": 9,
        "residual": 9,
    }
    for make in STUDIES.values():
        job = make().job
        assert job.keep_going
        assert job.arms[0].library
        assert all(goal.arm in {None, *(arm.label for arm in job.arms)} for goal in make().goals)


def test_a_study_is_cut_to_arms_and_shapes() -> None:
    study = restricted(STUDIES["matmul"](), ["auto"], [(256, 256, 64)])
    assert [arm.label for arm in study.job.arms] == ["library", "plain", "auto"]
    assert [point.shape for point in study.job.points] == [(256, 256, 64)]
    assert restricted(study, [], []) == study
    with pytest.raises(TilepassError, match=r"no scheme 'split-consume'.*'split-consumer'"):
        restricted(STUDIES["matmul"](), ["split-consume"], [])


def measured(times: Mapping[str, tuple[float, float]]) -> Report:
    """A report of two shapes, SHALLOW first, at which arms take these times of the library's."""
    arms = (Arm("library", library="torch:mm"), *(Arm(name) for name in times))
    job = Job("persistent-matmul", arms, (Point(SHALLOW), Point(SHAPES[0])), keep_going=True)
    report = Report(job)
    report.add(Found({"GPU": "NVIDIA H200", "SMs": "132"}))
    for index in range(2):
        columns = [1.0, *(pair[index] for pair in times.values()), 1.0]
        fill(report, index, [f"code{arm}" for arm in range(len(arms))], columns)
    return report


def test_table_and_goals() -> None:
    report = measured({"plain": (1.25, 1.0), "split": (0.95, 0.98), "auto": (0.96, 0.97)})
    assert speedups(report, "split") == pytest.approx({SHALLOW: 1.053, SHAPES[0]: 1.02}, abs=0.004)
    assert speedups(report, None) == pytest.approx({SHALLOW: 1.053, SHAPES[0]: 1.031}, abs=0.004)
    lines = library_table(report).splitlines()
    assert len(lines) == 9
    assert re.match(r"\| split \| 1\.05\d \| 1\.0[12]\d \| 1\.03\d \| 1\.0[12]\d \|", lines[5])
    good = Goal("split", 1.03, 1.01, shallow=1.04, shallow_over_plain=1.3)
    text, met = goal_lines(report, good)
    assert met
    assert [line.rsplit(" ", 1)[1] for line in text] == ["PASS"] * 4
    text, met = goal_lines(report, Goal(None, 1.05, 1.0))
    assert not met
    assert [line.rsplit(" ", 1)[1] for line in text] == ["MISS", "PASS"]


def test_a_missing_shape_misses_the_goal() -> None:
    report = measured({"plain": (1.25, 1.0)})
    arms = (*report.job.arms, Arm("split"))
    partly = Report(Job("persistent-matmul", arms, report.job.points, keep_going=True))
    for arm in range(2):
        partly.add(ArmReady(0, arm, (KernelFact("m", f"{arm}", ""),), f"{arm}", True))
    partly.add(ArmFailed(0, 2, "it hung"))
    assert partly.points[0].first == {0: 0, 1: 1}
    assert "| split | failed | - | - | - |" in library_table(partly)
    text, met = goal_lines(partly, Goal("split", 1.0, 1.0))
    assert (text, met) == (["split: 0 of 2 shapes measured: MISS"], False)


def test_what_limits_a_shape() -> None:
    # 64 x 32 tiles of 128x256 on 132 SMs: 15.52 waves in 16 rounds.
    found = limits((8192, 8192, 8192), Tiling(128, 256, 132), 1600.0, 1500.0, 4.03e8)
    assert found.waves == pytest.approx(15.515, abs=0.001)
    assert found.balance == pytest.approx(15.515 / 16, abs=0.0001)
    assert found.tensor == pytest.approx(2 * 8192**3 / (1600 * 132 * 4096 * 1500))
    assert found.operand_rate == pytest.approx(2048 * 384 * 8192 * 2 / 1600e6)
    assert found.least_rate == pytest.approx(0.252, abs=0.001)
    assert geomean([0.5, 2.0]) == pytest.approx(1.0)


def test_limits_are_of_the_fastest_arm_at_the_clock_measured() -> None:
    report = Report(
        Job(
            "persistent-matmul",
            (Arm("library", library="t:mm"), Arm("narrow", overrides={"block_n": "128"})),
            (Point((1024, 8192, 8192)),),
        )
    )
    report.add(Found({"SMs": "132"}))
    report.add(ArmReady(0, 0, (), "t:mm", True))
    report.add(ArmReady(0, 1, (KernelFact("m", "h", ""),), "", True))
    report.add(Setup(0, 1, 1, 2.0 * 1024 * 8192 * 8192, 1.6e8))
    import numpy as np

    from tilepass.ab.protocol import Batch

    times = np.tile([190.0, 200.0, 190.0], (20, 1))
    report.add(sampled(0, Batch(times, np.full((20, 3), 1600.0))))
    report.add(Done(0, "timed"))
    (line,) = limit_lines(report)
    assert line.startswith("1024x8192x8192: narrow, 200.0 us at 1600 MHz, 3.88 waves")
