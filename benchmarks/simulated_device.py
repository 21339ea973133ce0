"""A GPU that exists only as numbers, to check the protocol and its verdicts without one.

The noise is the kind that published timing reports describe: a drift of the whole machine that
moves windows a few percent apart, noise of each launch on its own, rare launches that take far
longer, and stretches at a reduced clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilepass.ab.protocol import Batch, Orders, by_slot
from tilepass.ab.statistics import Floats


@dataclass(frozen=True)
class Noise:
    """Noise as fractions of a launch's time, except where a unit is given.

    `drift` is the standard deviation of the slow component and `drift_launches` its correlation
    length; `dip_rate` is the chance per launch that a stretch of `dip_launches` at `dip_clock`
    of the full clock begins.
    """

    launch: float = 0.01
    drift: float = 0.04
    drift_launches: float = 300.0
    spike_rate: float = 0.005
    spike: float = 0.5
    dip_rate: float = 0.0
    dip_launches: int = 60
    dip_clock: float = 0.5


class SimulatedDevice:
    """Times launches of arms whose true times are known.

    `microseconds` holds one true time per slot, the duplicate of the baseline last. `elapsed` is
    the simulated time spent, in seconds; use it as the clock of `measure`.
    """

    full_clock_mhz = 1980.0

    def __init__(self, microseconds: Sequence[float], noise: Noise, seed: int) -> None:
        self._true = np.asarray(microseconds, dtype=np.float64)
        self._noise = noise
        self._rng = np.random.default_rng(seed)
        self._drift = self._rng.normal(0.0, noise.drift)
        self._dip_left = 0
        self._elapsed = 0.0

    def elapsed(self) -> float:
        """Simulated seconds since the device was made."""
        return self._elapsed

    def time_rounds(self, orders: Orders) -> Batch:
        """Implements `protocol.Device`."""
        flat = orders.reshape(-1)
        clock_share = self._clock_shares(len(flat))
        noise, rng = self._noise, self._rng
        factor = np.exp(self._drift_path(len(flat)) + rng.normal(0.0, noise.launch, len(flat)))
        spiked = rng.random(len(flat)) < noise.spike_rate
        factor = factor * np.where(spiked, 1 + noise.spike * rng.random(len(flat)), 1.0)
        launch_times = self._true[flat] * factor / clock_share
        # 60 us for the flush between launches.
        self._elapsed += float(np.sum(launch_times + 60.0)) * 1e-6
        return Batch(
            times=by_slot(orders, launch_times),
            clocks=by_slot(orders, clock_share * self.full_clock_mhz),
        )

    def _drift_path(self, launches: int) -> Floats:
        """An Ornstein-Uhlenbeck path: stationary, correlated over `drift_launches`."""
        keep = np.exp(-1.0 / self._noise.drift_launches)
        pushes = self._rng.normal(0.0, self._noise.drift * np.sqrt(1 - keep**2), launches)
        # x[k] = keep * x[k-1] + push[k], solved in closed form; a batch spans few correlation
        # lengths, so the powers stay in range.
        powers = keep ** np.arange(1, launches + 1)
        path = powers * (self._drift + np.cumsum(pushes / powers))
        self._drift = float(path[-1])
        return path

    def _clock_shares(self, launches: int) -> Floats:
        shares = np.ones(launches)
        if self._noise.dip_rate == 0.0:
            return shares
        begins = self._rng.random(launches) < self._noise.dip_rate
        for index in range(launches):
            if self._dip_left == 0 and begins[index]:
                self._dip_left = self._noise.dip_launches
            if self._dip_left > 0:
                shares[index] = self._noise.dip_clock
                self._dip_left -= 1
        return shares
