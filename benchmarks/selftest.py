"""Check the A/B protocol on this GPU: 20 runs of equal arms, 10 runs with 1 % more work in one.

usage: python -m benchmarks.selftest [--budget SECONDS] [--out FOLDER] [--simulate]

Equal arms have to come out SAME in at least 19 runs, the arm with more work SLOWER in at least 9.
Exits non-zero if not, or if there is no GPU. With --simulate the GPU is simulated.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.simulated_device import Noise, SimulatedDevice
from tilepass.ab.job import Arm, Job, Point
from tilepass.ab.protocol import Plan, Samples, measure, summarise
from tilepass.ab.report import Report
from tilepass.ab.session import Means, need_gpu, run_on_gpu
from tilepass.ab.statistics import Verdict
from tilepass.ab.subjects import find_subject
from tilepass.ab.table import format_estimate
from tilepass.core.errors import TilepassError
from tilepass.core.files import write_json

SAME_RUNS, SAME_NEEDED = 20, 19
SLOWER_RUNS, SLOWER_NEEDED = 10, 9
PLAN = Plan(seconds=6.0)


@dataclass(frozen=True)
class Outcome:
    """How many of the runs had the verdict that they should, and each run's line."""

    name: str
    wanted: Verdict
    good: int
    runs: int
    needed: int
    lines: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether enough runs did, of as many as were asked for."""
        return self.good >= self.needed

    def summary(self) -> str:
        """`equal arms: SAME in 20 of 20 runs (at least 19): PASS`."""
        return (
            f"{self.name}: {self.wanted} in {self.good} of {self.runs} runs "
            f"(at least {self.needed}): {'PASS' if self.passed else 'MISS'}"
        )


def equal_arms_job() -> Job:
    """A long and a short kernel, half of the runs each: one launch, and many, in a timed span."""
    long_kernel = (Point((4096, 4096, 4096)), Point((1024, 1024, 1024)))
    points = tuple(long_kernel[index % 2] for index in range(SAME_RUNS))
    return Job("persistent-matmul", (Arm("A"), Arm("B")), points, PLAN, force=True)


def slower_arm_job() -> Job:
    """Arm B goes through 1 % more of K than arm A, with the same binary."""
    arms = (Arm("A", "", {"extra": "0"}), Arm("B", "", {"extra": "1"}))
    points = (Point((4096, 4096, 12800)),) * SLOWER_RUNS
    return Job("benchmarks.injected:WORKLOAD", arms, points, PLAN)


def judge_equal_arms(report: Report) -> Outcome:
    """Counts A' against A; B, which is a second duplicate here, is listed beside."""
    return _outcome("equal arms", Verdict.SAME, SAME_NEEDED, report, _duplicate)


def judge_slower_arm(report: Report) -> Outcome:
    """Counts B against A."""
    return _outcome("1 % more work", Verdict.SLOWER, SLOWER_NEEDED, report, _other)


def simulate(ratio: float, noise: Noise, runs: int) -> list[Verdict]:
    """Verdicts of whole runs on a simulated device, B against A."""
    verdicts: list[Verdict] = []
    for seed in range(runs):
        device = SimulatedDevice([200.0, 200.0 * ratio, 200.0], noise, seed)
        samples = Samples(2)
        for batch in measure(device, 2, Plan(seed=seed, seconds=6.0), now=device.elapsed):
            samples.add(batch)
        summary = summarise(samples, PLAN.criteria, seed)
        assert summary is not None
        verdicts.append(summary.comparisons[0].verdict)
    return verdicts


def judge_simulation() -> Sequence[Outcome]:
    """The two tests on noise of 0.5, 1 and 2 % a launch and 4 % between windows."""
    outcomes: list[Outcome] = []
    for launch in (0.005, 0.01, 0.02):
        noise = Noise(launch=launch, drift=0.04, dip_rate=0.0005)
        for ratio, wanted, runs, needed in (
            (1.0, Verdict.SAME, SAME_RUNS, SAME_NEEDED),
            (1.01, Verdict.SLOWER, SLOWER_RUNS, SLOWER_NEEDED),
        ):
            verdicts = simulate(ratio, noise, runs)
            name = f"simulated, noise {launch:.1%}, true ratio {ratio}"
            good = verdicts.count(wanted)
            outcomes.append(Outcome(name, wanted, good, runs, needed, ()))
    return outcomes


def _outcome(
    name: str,
    wanted: Verdict,
    needed: int,
    report: Report,
    verdict_of: Callable[[Report, int], Verdict | None],
) -> Outcome:
    verdicts = [verdict_of(report, index) for index in range(len(report.points))]
    lines = tuple(_line(report, index, verdicts[index]) for index in range(len(verdicts)))
    return Outcome(name, wanted, verdicts.count(wanted), len(verdicts), needed, lines)


def _duplicate(report: Report, index: int) -> Verdict | None:
    found = report.duplicate(index)
    return None if found is None else found[1]


def _other(report: Report, index: int) -> Verdict | None:
    found = report.compare(index, 1)
    return None if found is None else found[1]


def _line(report: Report, index: int, verdict: Verdict | None) -> str:
    duplicate, other = report.duplicate(index), report.compare(index, 1)
    where = report.job.points[index].describe()
    if duplicate is None or other is None:
        return f"{where}: {report.points[index].status} {report.points[index].message}"
    return (
        f"{where}: {verdict}; A'/A {format_estimate(duplicate[0])}, "
        f"B/A {format_estimate(other[0])}, {duplicate[0].rounds} rounds"
    )


def measured(budget: float, out: Path | None) -> list[Outcome]:
    """Both tests on the GPU; the reports go to `out` as JSON."""
    need_gpu(required=True)
    deadline = time.monotonic() + budget
    outcomes: list[Outcome] = []
    for job, judge in (
        (slower_arm_job(), judge_slower_arm),
        (equal_arms_job(), judge_equal_arms),
    ):
        means = Means(os.cpu_count() or 1, max(1.0, deadline - time.monotonic()))
        report = run_on_gpu(job, find_subject(job.kernel), means)
        if report.failure is not None:
            raise TilepassError(report.failure)
        outcomes.append(judge(report))
        print("\n".join(outcomes[-1].lines), flush=True)
        if out is not None:
            name = outcomes[-1].name.replace(" ", "_").replace("%", "percent")
            write_json(out / f"selftest_{name}.json", report.to_dict())
    return outcomes


def main() -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Check the A/B protocol on this GPU.")
    parser.add_argument("--budget", type=float, default=300.0, metavar="SECONDS")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="reports as JSON")
    parser.add_argument("--simulate", action="store_true", help="on a simulated GPU")
    arguments = parser.parse_args()
    try:
        if arguments.simulate:
            outcomes = list(judge_simulation())
        else:
            outcomes = measured(arguments.budget, arguments.out)
    except TilepassError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(outcome.summary() for outcome in outcomes))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
