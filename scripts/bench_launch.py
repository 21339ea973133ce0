"""Measure what a pipeline adds to a warm launch on a GPU, enabled and after it was left.

Usage: python scripts/bench_launch.py [--sets N] [--turns N] [--launches N] [--stand-in]

Each set is three processes: two that never load tilepass, and one that enters and leaves a
pipeline. The differences from stock Triton are medians of paired blocks; what the two stock
processes differ by is the resolution. The status is 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.corpus.launches import NoGpuError, Times, measure

# In us per launch; what an ended activation may add is nothing, as far as it can be measured.
ENABLED_AT_MOST = 0.5
LEFT_AT_MOST = 0.0
# Clocks and schedulers do not tell less than this apart; where they tell less than the other, the
# machine is too busy for this measurement.
FINEST, COARSEST = 0.02, 0.25


def main() -> int:
    """Print the times and a verdict per target."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s [options]")
    parser.add_argument("--sets", type=int, default=5, help="sets of processes")
    parser.add_argument("--turns", type=int, default=60, help="blocks of each kind per set")
    parser.add_argument("--launches", type=int, default=1000, help="launches in a block")
    parser.add_argument(
        "--stand-in", action="store_true", help="launch nothing: try the script without a GPU"
    )
    options = parser.parse_args()
    try:
        sets = [
            measure(options.turns, options.launches, stand_in=options.stand_in, seed=seed)
            for seed in range(options.sets)
        ]
    except NoGpuError as error:
        print(f"error: {error} (--stand-in tries the script without one)", file=sys.stderr)
        return 1
    resolution = max(FINEST, *(abs(times.duplicate) for times in sets))
    print(f"a warm launch of stock Triton: {_median(sets, lambda times: times.stock):.2f} us")
    print(f"two stock processes differ by at most {resolution:.3f} us: the resolution")
    inside = _median(sets, lambda times: times.inside)
    print(f"in one process, enabled and left differ by {inside:+.3f} us")
    met = _verdict("a pipeline that is enabled", sets, lambda one: one.enabled, ENABLED_AT_MOST, 0)
    met &= _verdict(
        "a pipeline that was left", sets, lambda one: one.left, LEFT_AT_MOST, resolution
    )
    if resolution > COARSEST:
        print(
            f"error: a resolution of {resolution:.2f} us is too coarse: busy machine",
            file=sys.stderr,
        )
        return 1
    return 0 if met else 1


def _median(sets: list[Times], value: Callable[[Times], float]) -> float:
    return statistics.median(map(value, sets))


def _verdict(
    what: str, sets: list[Times], value: Callable[[Times], float], target: float, within: float
) -> bool:
    values = sorted(map(value, sets))
    median = statistics.median(values)
    met = median <= target + within
    print(
        f"{'PASS' if met else 'MISS'} {what} adds {median:+.3f} us, at most {target:g} us "
        f"(medians of {len(values)} sets: {values[0]:+.3f} to {values[-1]:+.3f})"
    )
    return met


if __name__ == "__main__":
    sys.exit(main())
