"""GPU clocks beside the samples, and which rounds they disqualify.

A GPU that was throttled for part of a measurement times a different machine. A background thread
reads the SM clock through NVML every few milliseconds; each timed launch gets the reading nearest
in time, and a round in which any launch ran under 75 % of the highest clock seen is dropped whole
(NVBench's rule, which drops under 75 % of the default clock). "Highest" is the 90th percentile over
the launches: a GPU at its power limit boosts for a moment after each pause, and such a spike must
not disqualify the clock that it holds the rest of the time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tilepass.core.errors import TilepassError

LOWEST_SHARE = 0.75
"""A launch at less than this share of the highest SM clock seen is not used."""

HIGHEST_QUANTILE = 0.9
"""The share of launches that ran at most at the clock taken as the highest."""

Floats = NDArray[np.float64]


class ClockSource(Protocol):
    """Reads the SM clock of one GPU."""

    def read_mhz(self) -> float:
        """Current SM clock in MHz."""
        ...


@dataclass(frozen=True)
class ClockSummary:
    """Clocks at the launches of a measurement in MHz, and how many of its rounds they cost.

    `reference` is the clock that the 75 % are taken of.
    """

    lowest: float
    median: float
    highest: float
    reference: float
    rounds: int
    dropped_rounds: int


def nearest_readings(reading_times: Floats, readings: Floats, at: Floats) -> Floats:
    """The reading nearest in time to each entry of `at` (any shape; seconds, one clock).

    `reading_times` is ascending and not empty.
    """
    right = np.clip(np.searchsorted(reading_times, at), 1, max(1, len(reading_times) - 1))
    if len(reading_times) == 1:
        return np.full(at.shape, readings[0])
    left = right - 1
    closer_left = at - reading_times[left] <= reading_times[right] - at
    return readings[np.where(closer_left, left, right)]


def reference_clock(clocks: Floats) -> float:
    """The highest clock that was held, in MHz. `clocks` is [rounds, slots]."""
    return float(np.quantile(clocks, HIGHEST_QUANTILE))


def steady_rounds(clocks: Floats) -> NDArray[np.bool_]:
    """Which rounds ran wholly at 75 % of the reference or more. `clocks` is [rounds, slots]."""
    return np.all(clocks >= LOWEST_SHARE * reference_clock(clocks), axis=1)


class ClockMonitor:
    """Reads a clock source in a thread while the `with` block runs.

    A read that fails ends the thread; leaving the block then raises the error.
    """

    def __init__(
        self,
        source: ClockSource,
        interval: float = 0.005,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._source = source
        self._interval = interval
        self._now = now
        self._times: list[float] = []
        self._readings: list[float] = []
        self._stop = threading.Event()
        self._failure: TilepassError | None = None
        self._thread = threading.Thread(target=self._run, name="tilepass-clocks", daemon=True)

    def __enter__(self) -> Self:
        self._read()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def _read(self) -> None:
        reading = self._source.read_mhz()
        # The value first: a reader that sees the time must find the value.
        self._readings.append(reading)
        self._times.append(self._now())

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            try:
                self._read()
            except TilepassError as error:
                self._failure = error
                return

    def at(self, host_times: Floats) -> Floats:
        """The reading nearest to each host time (the monitor's clock, seconds), in MHz."""
        count = len(self._times)
        return nearest_readings(
            np.asarray(self._times[:count]), np.asarray(self._readings[:count]), host_times
        )
