"""Does the protocol tell the truth? Equal arms must come out SAME, 1 % more work SLOWER."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilepass.ab.job import Arm, Job, Point
from tilepass.ab.protocol import Plan, Samples, measure, summarise
from tilepass.ab.report import Report
from tilepass.ab.simulation import Noise, SimulatedDevice
from tilepass.ab.statistics import Verdict
from tilepass.ab.table import format_estimate

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
    return Job("tilepass.ab.injected:WORKLOAD", arms, points, PLAN)


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
