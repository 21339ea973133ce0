"""How arms are sampled: interleaved launch by launch, in random order, beside a duplicate.

Slots of a round: the arms in the order given (slot 0 is the baseline, A), then the duplicate of
the baseline (A'). Every round launches every slot once, in an order drawn anew, so that clocks,
temperature and what the previous launch left behind fall on all arms alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tilepass.ab.clocks import ClockSummary, reference_clock, steady_rounds
from tilepass.ab.statistics import (
    Criteria,
    Estimate,
    Floats,
    Verdict,
    estimate,
    guarded_verdict,
    paired_ratios,
)

Orders = NDArray[np.int64]

MOST_ROUNDS_AT_ONCE = 100
SECONDS_AT_ONCE = 2.0
"""A device is asked for at most so much before the budget is looked at again."""

LOOK_RESAMPLES = 200
"""Bootstrap resamples for the decision whether to go on."""


@dataclass(frozen=True)
class Batch:
    """Some rounds: `times` in microseconds and `clocks` in MHz, both [rounds, slots].

    `clocks` is None where no clock can be read; the report then says so.
    """

    times: Floats
    clocks: Floats | None


class Device(Protocol):
    """Launches and times; the GPU in use, a simulation in the tests."""

    def time_rounds(self, orders: Orders) -> Batch:
        """Time rounds of launches.

        `orders` is [rounds, slots]: the slots of each round in launch order. The result is
        indexed by slot, whatever the order was.
        """
        ...


@dataclass(frozen=True)
class Plan:
    """How long to sample. Durations in seconds of wall clock."""

    criteria: Criteria = field(default_factory=Criteria)
    first_rounds: int = 60
    most_rounds: int = 4000
    seconds: float = 10.0
    warm_up_seconds: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.first_rounds < 8 or self.most_rounds < self.first_rounds:
            raise ValueError(
                f"rounds must satisfy 8 <= first ({self.first_rounds}) <= most ({self.most_rounds})"
            )
        if self.seconds <= 0:
            raise ValueError(f"the time to sample must be positive, not {self.seconds} s")


class Samples:
    """The rounds measured so far, with the ones that a clock dip spoiled taken out."""

    def __init__(self, arms: int) -> None:
        """`arms` counts the arms without the duplicate."""
        self.arms = arms
        self._times: list[Floats] = []
        self._clocks: list[Floats] = []

    def add(self, batch: Batch) -> None:
        """Append the rounds of a batch."""
        self._times.append(batch.times)
        if batch.clocks is not None:
            self._clocks.append(batch.clocks)

    @property
    def measured(self) -> int:
        """Rounds measured, dropped ones included."""
        return sum(len(times) for times in self._times)

    def _all_clocks(self) -> Floats | None:
        return np.concatenate(self._clocks) if self._clocks else None

    def times(self) -> Floats:
        """Times of the rounds that count, [rounds, arms + 1] in microseconds."""
        if not self._times:
            return np.empty((0, self.arms + 1))
        times = np.concatenate(self._times)
        clocks = self._all_clocks()
        return times if clocks is None else times[steady_rounds(clocks)]

    def clocks(self) -> ClockSummary | None:
        """Clocks of all rounds, or None where none were read."""
        clocks = self._all_clocks()
        if clocks is None:
            return None
        return ClockSummary(
            lowest=float(clocks.min()),
            median=float(np.median(clocks)),
            highest=float(clocks.max()),
            reference=reference_clock(clocks),
            rounds=len(clocks),
            dropped_rounds=int(np.count_nonzero(~steady_rounds(clocks))),
        )


@dataclass(frozen=True)
class Comparison:
    """One arm against the baseline."""

    arm: int
    estimate: Estimate
    verdict: Verdict


@dataclass(frozen=True)
class Summary:
    """What the samples of one workload and shape say.

    `medians` are microseconds a launch, one per slot; `duplicate` is A' against A.
    """

    medians: tuple[float, ...]
    duplicate: Comparison
    comparisons: tuple[Comparison, ...]


def summarise(samples: Samples, criteria: Criteria, seed: int = 0) -> Summary | None:
    """Estimates and verdicts, or None while no usable round exists."""
    times = samples.times()
    if len(times) == 0:
        return None
    duplicate = estimate(paired_ratios(times, samples.arms, 0), criteria, seed)
    comparisons: list[Comparison] = []
    for arm in range(1, samples.arms):
        measured = estimate(paired_ratios(times, arm, 0), criteria, seed)
        result = guarded_verdict(measured, duplicate, criteria)
        comparisons.append(Comparison(arm, measured, result))
    return Summary(
        medians=tuple(float(value) for value in np.median(times, axis=0)),
        duplicate=Comparison(
            samples.arms, duplicate, guarded_verdict(duplicate, duplicate, criteria)
        ),
        comparisons=tuple(comparisons),
    )


def random_orders(rng: np.random.Generator, rounds: int, slots: int) -> Orders:
    """Launch orders [rounds, slots], each row a permutation drawn on its own."""
    return rng.permuted(np.tile(np.arange(slots), (rounds, 1)), axis=1)


def by_slot(orders: Orders, launches: Floats) -> Floats:
    """Values of launches, in launch order, put in slot order: [rounds, slots]."""
    result = np.empty(orders.shape)
    np.put_along_axis(result, orders, launches.reshape(orders.shape), axis=1)
    return result


def measure(
    device: Device,
    arms: int,
    plan: Plan,
    now: Callable[[], float] = time.perf_counter,
) -> Iterator[Batch]:
    """Sample until the verdicts are settled or the plan's rounds or seconds are used.

    Yields the batches as they come, so that a caller that is interrupted keeps what there is.
    The warm-up rounds are not yielded. Sampling grows by a third of what is there: intervals are
    looked at a few times, not after every round, because each look is a chance to stop on luck,
    and the GPU idles meanwhile; for the same reason a look takes fewer resamples.
    """
    look = replace(plan.criteria, resamples=min(plan.criteria.resamples, LOOK_RESAMPLES))
    slots = arms + 1
    rng = np.random.default_rng(plan.seed)
    at_once = _warm_up(device, rng, slots, plan.warm_up_seconds, now)
    samples = Samples(arms)
    start = now()
    rounds = plan.first_rounds
    while rounds > 0:
        for size in _chunks(rounds, at_once):
            batch = device.time_rounds(random_orders(rng, size, slots))
            samples.add(batch)
            yield batch
            if now() - start >= plan.seconds:
                return
        summary = summarise(samples, look, plan.seed)
        if summary is not None and _settled(summary, look):
            return
        rounds = min(samples.measured // 3, plan.most_rounds - samples.measured)


def _settled(summary: Summary, criteria: Criteria) -> bool:
    """Precise and decided; at half the precision asked for, undecided is an answer as well."""
    compared = [summary.duplicate, *summary.comparisons]
    widest = max(item.estimate.half_width for item in compared)
    if any(item.verdict is Verdict.UNSURE for item in compared):
        return widest <= criteria.precision / 2
    return widest <= criteria.precision


def _chunks(rounds: int, largest: int) -> Iterator[int]:
    """`rounds` cut into pieces, so that a budget that ends is noticed."""
    while rounds > 0:
        size = min(rounds, largest)
        yield size
        rounds -= size


def _warm_up(
    device: Device,
    rng: np.random.Generator,
    slots: int,
    seconds: float,
    now: Callable[[], float],
) -> int:
    """Launch until the clocks have settled; at least one round of each slot.

    Returns how many rounds to ask the device for at once, by how long the last one took.
    """
    start = now()
    rounds = 1
    while True:
        begun = now()
        device.time_rounds(random_orders(rng, rounds, slots))
        each = (now() - begun) / rounds
        if now() - start >= seconds:
            return max(1, min(MOST_ROUNDS_AT_ONCE, int(SECONDS_AT_ONCE / max(each, 1e-9))))
        rounds = 16 if each * 16 < SECONDS_AT_ONCE else 1
