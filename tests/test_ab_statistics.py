"""The estimate, the verdict, and their calibration on simulated noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.simulated_device import Noise, SimulatedDevice
from tilepass.ab.protocol import Plan, Samples, Summary, measure, summarise
from tilepass.ab.statistics import (
    Criteria,
    Estimate,
    Verdict,
    block_length,
    estimate,
    guarded_verdict,
    paired_ratios,
    verdict,
)

CRITERIA = Criteria()


def bounds(low: float, high: float) -> Estimate:
    return Estimate((low + high) / 2, low, high, 100)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.998, 1.002, Verdict.SAME),
        (0.995, 1.005, Verdict.SAME),
        (1.006, 1.010, Verdict.SLOWER),
        (1.002, 1.012, Verdict.SLOWER),
        (0.990, 0.994, Verdict.FASTER),
        (0.988, 0.998, Verdict.FASTER),
        (0.999, 1.015, Verdict.UNSURE),  # may be no difference at all
        (1.002, 1.007, Verdict.UNSURE),  # real, but perhaps under the threshold
        (0.98, 1.02, Verdict.UNSURE),
    ],
)
def test_verdict(low: float, high: float, expected: Verdict) -> None:
    assert verdict(bounds(low, high), CRITERIA) is expected


def test_nothing_is_believed_when_the_duplicate_differs() -> None:
    slower = bounds(1.09, 1.11)
    assert guarded_verdict(slower, bounds(0.999, 1.001), CRITERIA) is Verdict.SLOWER
    assert guarded_verdict(slower, bounds(1.008, 1.010), CRITERIA) is Verdict.UNSURE
    assert guarded_verdict(slower, bounds(0.990, 1.010), CRITERIA) is Verdict.UNSURE


def test_estimate_is_the_median_of_paired_ratios() -> None:
    times = np.array([[10.0, 11.0], [20.0, 22.0], [40.0, 48.0]])
    ratios = paired_ratios(times, arm=1, baseline=0)
    np.testing.assert_allclose(ratios, [1.1, 1.1, 1.2])
    assert estimate(ratios, CRITERIA).ratio == pytest.approx(1.1)


def test_estimate_is_reproducible_from_its_seed() -> None:
    ratios = np.random.default_rng(1).normal(1.0, 0.01, 200)
    assert estimate(ratios, CRITERIA, seed=3) == estimate(ratios, CRITERIA, seed=3)
    assert estimate(ratios, CRITERIA, seed=3) != estimate(ratios, CRITERIA, seed=4)


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    covered = 0
    for trial in range(200):
        measured = estimate(rng.normal(1.01, 0.01, 120), Criteria(resamples=300), seed=trial)
        covered += measured.low <= 1.01 <= measured.high
    assert 0.88 <= covered / 200 <= 0.995


def test_blocks_widen_the_interval_of_a_drifting_series() -> None:
    steps = np.random.default_rng(5).normal(0.0, 0.002, 1000)
    window = np.ones(30) / np.sqrt(30)
    drifting = np.asarray(1.0 + np.convolve(steps, window, mode="valid"), dtype=np.float64)
    alone = np.random.default_rng(6).permutation(drifting)
    assert block_length(1000) == 10
    assert estimate(drifting, CRITERIA).half_width > 1.5 * estimate(alone, CRITERIA).half_width


@pytest.mark.parametrize("ratios", [[], [1.0, float("nan")], [1.0, float("inf")]])
def test_estimate_refuses_what_it_cannot_use(ratios: list[float]) -> None:
    with pytest.raises(ValueError, match="ratio"):
        estimate(np.asarray(ratios, dtype=np.float64), CRITERIA)


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("threshold", lambda: Criteria(threshold=0.0)),
        ("precision", lambda: Criteria(precision=0.01)),
        ("confidence", lambda: Criteria(confidence=1.0)),
        ("resamples", lambda: Criteria(resamples=0)),
    ],
)
def test_criteria_refuse_nonsense(field: str, make: Callable[[], Criteria]) -> None:
    with pytest.raises(ValueError, match=field):
        make()


def simulate(ratio: float, launch_noise: float, seed: int, duplicate: float = 1.0) -> Summary:
    """One whole run of A, B, A' with a machine that drifts by 4 %."""
    noise = Noise(launch=launch_noise, drift=0.04, dip_rate=0.0005)
    device = SimulatedDevice([200.0, 200.0 * ratio, 200.0 * duplicate], noise, seed)
    samples = Samples(2)
    plan = Plan(criteria=Criteria(resamples=300), seed=seed, seconds=8.0)
    for batch in measure(device, 2, plan, now=device.elapsed):
        samples.add(batch)
    summary = summarise(samples, plan.criteria, seed)
    assert summary is not None
    return summary


@pytest.mark.parametrize("launch_noise", [0.005, 0.01, 0.02])
def test_a_duplicate_is_same_in_at_least_19_of_20_runs(launch_noise: float) -> None:
    verdicts = Counter(simulate(1.0, launch_noise, seed).duplicate.verdict for seed in range(20))
    assert verdicts[Verdict.SAME] >= 19


@pytest.mark.parametrize("launch_noise", [0.005, 0.01, 0.02])
@pytest.mark.parametrize(("ratio", "expected"), [(1.01, Verdict.SLOWER), (0.99, Verdict.FASTER)])
def test_one_percent_is_seen_in_at_least_9_of_10_runs(
    launch_noise: float, ratio: float, expected: Verdict
) -> None:
    runs = [simulate(ratio, launch_noise, 100 + seed) for seed in range(10)]
    verdicts = Counter(run.comparisons[0].verdict for run in runs)
    assert verdicts[expected] >= 9


def test_a_machine_that_times_its_duplicate_differently_is_not_trusted() -> None:
    run = simulate(1.10, 0.005, 1, duplicate=1.02)
    assert run.comparisons[0].verdict is Verdict.UNSURE
    assert run.comparisons[0].estimate.ratio == pytest.approx(1.10, abs=0.005)
