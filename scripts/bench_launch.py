"""Measure what a pipeline adds to a warm launch on a GPU, enabled and after it was left.

Usage: python scripts/bench_launch.py [--turns N] [--launches N] [--stand-in]

The difference from stock Triton is the median over turns of paired blocks; a second stock block in
each turn tells what the machine can resolve. After the pipeline was left, all functions on the way
of a launch have to be Triton's own again. The status is 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.corpus.launches import NoGpuError, measure

ENABLED_AT_MOST = 0.5
"""us per launch"""


def main() -> int:
    """Print the times and a verdict per target."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s [options]")
    parser.add_argument("--turns", type=int, default=60, help="blocks of each kind")
    parser.add_argument("--launches", type=int, default=500, help="launches in a block")
    parser.add_argument(
        "--stand-in", action="store_true", help="launch nothing: try the script without a GPU"
    )
    options = parser.parse_args()
    try:
        times = measure(options.turns, options.launches, stand_in=options.stand_in, seed=0)
    except NoGpuError as error:
        print(f"error: {error} (--stand-in tries the script without one)", file=sys.stderr)
        return 1
    print(f"a warm launch of stock Triton: {times.stock:.2f} us")
    print(f"two stock blocks of a turn differ by {times.duplicate:+.3f} us: the resolution")
    met = times.enabled <= ENABLED_AT_MOST
    print(
        f"{'PASS' if met else 'MISS'} a pipeline that is enabled adds {times.enabled:+.3f} us, "
        f"at most {ENABLED_AT_MOST:g} us"
    )
    left = ", ".join(times.left_over)
    print(
        f"MISS a pipeline that was left leaves its own behind: {left}"
        if left
        else "PASS a pipeline that was left adds 0 us: all of Triton's functions are its own again"
    )
    if abs(times.duplicate) > ENABLED_AT_MOST / 2:
        print("error: the resolution is too coarse: busy machine", file=sys.stderr)
        return 1
    return 0 if met and not left else 1


if __name__ == "__main__":
    sys.exit(main())
