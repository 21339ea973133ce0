"""How rounds are ordered, dropped and ended."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.simulated_device import Noise, SimulatedDevice
from tilepass.ab.clocks import ClockMonitor, nearest_readings, steady_rounds
from tilepass.ab.protocol import (
    Batch,
    Orders,
    Plan,
    Samples,
    measure,
    random_orders,
    summarise,
)
from tilepass.ab.statistics import Criteria
from tilepass.core.errors import TilepassError


class RecordingDevice:
    """Times every launch alike and remembers the orders it was given."""

    def __init__(self, jitter: float = 0.0, launch_seconds: float = 0.001) -> None:
        self.launch_seconds = launch_seconds
        self.orders: list[Orders] = []
        self.seconds = 0.0
        self._rng = np.random.default_rng(0)
        self._jitter = jitter

    def now(self) -> float:
        return self.seconds

    def time_rounds(self, orders: Orders) -> Batch:
        self.orders.append(orders)
        self.seconds += self.launch_seconds * orders.size
        times = 100.0 * np.exp(self._rng.normal(0.0, self._jitter, orders.shape))
        return Batch(times=times, clocks=None)


def test_every_round_holds_every_slot_once_in_a_changing_order() -> None:
    orders = random_orders(np.random.default_rng(0), 300, 3)
    assert np.array_equal(np.sort(orders, axis=1), np.tile(np.arange(3), (300, 1)))
    first = np.bincount(orders[:, 0], minlength=3)
    assert first.min() > 70  # each slot leads about a third of the rounds


def test_sampling_stops_when_the_intervals_are_narrow() -> None:
    device = RecordingDevice()
    plan = Plan(first_rounds=20, warm_up_seconds=0.0)
    batches = list(measure(device, 2, plan, device.now))
    assert sum(len(batch.times) for batch in batches) == 20


def test_warm_up_rounds_are_not_samples() -> None:
    device = RecordingDevice()
    plan = Plan(first_rounds=20, warm_up_seconds=0.5)
    batches = list(measure(device, 2, plan, device.now))
    launched = sum(orders.size for orders in device.orders)
    assert launched * 0.001 > 0.5
    assert sum(batch.times.size for batch in batches) == 60


def test_sampling_ends_with_the_budget_when_noise_is_too_large() -> None:
    device = RecordingDevice(jitter=0.5)
    plan = Plan(seconds=2.0, warm_up_seconds=0.0)
    batches = list(measure(device, 2, plan, device.now))
    assert 2.0 <= device.seconds < 2.5
    assert sum(len(batch.times) for batch in batches) >= 600


def test_sampling_ends_with_the_rounds() -> None:
    device = RecordingDevice(jitter=0.5)
    plan = Plan(first_rounds=50, most_rounds=130, seconds=1e9, warm_up_seconds=0.0)
    batches = list(measure(device, 2, plan, device.now))
    assert sum(len(batch.times) for batch in batches) == 130


def test_a_slow_kernel_is_not_asked_for_a_hundred_rounds_at_once() -> None:
    device = RecordingDevice(jitter=0.5, launch_seconds=0.5)
    plan = Plan(seconds=9.0, warm_up_seconds=0.0)
    batches = list(measure(device, 2, plan, device.now))
    assert [len(batch.times) for batch in batches] == [1] * 6


def test_more_than_two_arms_share_the_rounds() -> None:
    noise = Noise(launch=0.005)
    device = SimulatedDevice([100.0, 105.0, 95.0, 100.0], noise, seed=2)
    samples = Samples(3)
    for batch in measure(device, 3, Plan(), device.elapsed):
        samples.add(batch)
    summary = summarise(samples, Criteria())
    assert summary is not None
    ratios = [item.estimate.ratio for item in summary.comparisons]
    assert ratios == pytest.approx([1.05, 0.95], abs=0.003)
    assert [str(item.verdict) for item in summary.comparisons] == ["SLOWER", "FASTER"]
    assert len(summary.medians) == 4


def test_a_round_with_one_slow_clock_is_dropped_whole() -> None:
    clocks = np.full((10, 3), 1900.0)
    clocks[3, 1] = 1400.0
    clocks[7, 0] = 1430.0  # 75.3 %
    assert np.flatnonzero(~steady_rounds(clocks)).tolist() == [3]


def test_a_short_boost_does_not_disqualify_the_sustained_clock() -> None:
    clocks = np.full((100, 3), 1350.0)
    clocks[:4] = 1980.0
    assert steady_rounds(clocks).all()


def test_throttled_rounds_do_not_move_the_result() -> None:
    noise = Noise(launch=0.005, dip_rate=0.002)
    device = SimulatedDevice([100.0, 102.0, 100.0], noise, seed=4)
    samples = Samples(2)
    for batch in measure(device, 2, Plan(first_rounds=800), device.elapsed):
        samples.add(batch)
    clocks = samples.clocks()
    assert clocks is not None
    assert clocks.dropped_rounds > 10
    assert len(samples.times()) == samples.measured - clocks.dropped_rounds
    assert clocks.lowest == pytest.approx(0.5 * clocks.reference)
    summary = summarise(samples, Criteria())
    assert summary is not None
    assert summary.comparisons[0].estimate.ratio == pytest.approx(1.02, abs=0.002)


def test_no_round_no_summary() -> None:
    assert summarise(Samples(2), Criteria()) is None


@pytest.mark.parametrize(
    "make",
    [lambda: Plan(seconds=0.0), lambda: Plan(first_rounds=3), lambda: Plan(most_rounds=10)],
)
def test_plan_refuses_nonsense(make: Callable[[], Plan]) -> None:
    with pytest.raises(ValueError, match=r"rounds|time"):
        make()


def test_nearest_reading() -> None:
    times, readings = np.array([1.0, 2.0, 4.0]), np.array([100.0, 200.0, 400.0])
    at = np.array([[0.0, 1.4], [1.6, 3.5], [9.0, 2.0]])
    expected = [[100.0, 100.0], [200.0, 400.0], [400.0, 200.0]]
    assert nearest_readings(times, readings, at).tolist() == expected
    assert nearest_readings(times[:1], readings[:1], at).tolist() == [[100.0] * 2] * 3


class FailingSource:
    """Answers once, then fails."""

    def __init__(self) -> None:
        self.asked = 0
        self.failed = threading.Event()

    def read_mhz(self) -> float:
        self.asked += 1
        if self.asked == 1:
            return 1500.0
        self.failed.set()
        raise TilepassError("NVML: GPU is lost")


def test_monitor_reads_and_reports_a_failure() -> None:
    source = FailingSource()
    monitor = ClockMonitor(source, interval=0.0)
    monitor.__enter__()
    assert source.failed.wait(10.0)
    assert monitor.at(np.zeros((2, 2))).tolist() == [[1500.0] * 2] * 2
    with pytest.raises(TilepassError, match="GPU is lost"):
        monitor.__exit__(None, None, None)
