"""Paired ratios, their interval and the verdict.

Two arms timed in separate windows differ by more than most passes are worth, so nothing here
looks at one arm alone: the unit is the *round*, in which every arm was launched once, close
together and in random order. A round gives one ratio per comparison; the reported number is the
median of those ratios, its interval comes from a block bootstrap over rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Verdict(StrEnum):
    """What a comparison says about the time of an arm against the baseline."""

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    SAME = "SAME"
    UNSURE = "UNSURE"


@dataclass(frozen=True)
class Criteria:
    """When a difference counts and how well it has to be known.

    `threshold` and `precision` are fractions of the baseline's time: 0.005 is 0.5 %.
    `precision` is the half width of the interval that sampling aims at. With precision at
    0.4 x threshold, both "no difference is SAME" and "twice the threshold is SLOWER" leave more
    than two standard errors of slack.
    """

    threshold: float = 0.005
    precision: float = 0.002
    confidence: float = 0.95
    resamples: int = 1000

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            raise ValueError(f"threshold must be between 0 and 1, not {self.threshold}")
        if not 0 < self.precision <= self.threshold:
            raise ValueError(
                f"precision must be positive and at most the threshold ({self.threshold}), "
                f"not {self.precision}"
            )
        if not 0.5 <= self.confidence < 1:
            raise ValueError(f"confidence must be in [0.5, 1), not {self.confidence}")
        if self.resamples < 1:
            raise ValueError(f"resamples must be positive, not {self.resamples}")


@dataclass(frozen=True)
class Estimate:
    """Median of paired time ratios (arm / baseline; above 1: slower) with its interval."""

    ratio: float
    low: float
    high: float
    rounds: int

    @property
    def half_width(self) -> float:
        """Half of the interval's width, as a fraction of the baseline's time."""
        return (self.high - self.low) / 2


def paired_ratios(times: Floats, arm: int, baseline: int) -> Floats:
    """Ratios of one arm's time to the baseline's, round by round.

    `times` is [rounds, arms]; its unit cancels.
    """
    return times[:, arm] / times[:, baseline]


def block_length(rounds: int) -> int:
    """Length of a bootstrap block: the cube root of the series length.

    Clocks and temperature drift over many rounds; resampling whole blocks keeps that dependence
    in the resample, where single rounds would give an interval that is too narrow. The cube root
    is the usual rate (Kuensch 1989; Hall, Horowitz and Jing 1995).
    """
    return max(1, round(rounds ** (1 / 3)))


def estimate(ratios: Floats, criteria: Criteria, seed: int = 0) -> Estimate:
    """Median of `ratios` with a percentile interval of a circular block bootstrap.

    Raises ValueError when there is no ratio, or one that is not finite.
    """
    count = len(ratios)
    if count == 0:
        raise ValueError("no paired ratio to estimate from")
    if not np.all(np.isfinite(ratios)):
        raise ValueError("a paired ratio is not finite: an arm's time was zero or missing")
    rng = np.random.default_rng(seed)
    length = block_length(count)
    blocks = -(-count // length)
    starts = rng.integers(0, count, size=(criteria.resamples, blocks, 1))
    picks = (starts + np.arange(length)) % count
    medians = np.median(ratios[picks.reshape(criteria.resamples, -1)[:, :count]], axis=1)
    tail = (1 - criteria.confidence) / 2
    low, high = np.quantile(medians, (tail, 1 - tail))
    return Estimate(float(np.median(ratios)), float(low), float(high), count)


def verdict(measured: Estimate, criteria: Criteria) -> Verdict:
    """SAME, FASTER, SLOWER or, where the interval does not allow any of them, UNSURE.

    SAME: the whole interval lies within the threshold of 1. FASTER and SLOWER: the median is
    beyond the threshold and the interval excludes 1, so the difference is both real and big
    enough to matter.
    """
    if measured.low >= 1 - criteria.threshold and measured.high <= 1 + criteria.threshold:
        return Verdict.SAME
    if measured.ratio > 1 + criteria.threshold and measured.low > 1:
        return Verdict.SLOWER
    if measured.ratio < 1 - criteria.threshold and measured.high < 1:
        return Verdict.FASTER
    return Verdict.UNSURE


def guarded_verdict(measured: Estimate, duplicate: Estimate, criteria: Criteria) -> Verdict:
    """The verdict, or UNSURE when the baseline and its own duplicate did not come out SAME.

    A difference between two copies of one binary is a fault of the measurement; nothing that was
    measured beside it can be trusted.
    """
    if verdict(duplicate, criteria) is not Verdict.SAME:
        return Verdict.UNSURE
    return verdict(measured, criteria)
