"""Compare what `warp-specialize-legality` says with what Triton does, point by point.

Usage: python scripts/legality_sweep.py [--seconds N] [--seed N] [--cubin]

In random order, until all points are done or the time is over; prints each point at which they
differ and how many agree. The status is 1 if they differ anywhere.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> int:
    """Print the points that differ and a count; the status is 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s [options]")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0, help="of the order")
    parser.add_argument("--cubin", action="store_true", help="assemble too (slower)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        return _sweep(options.seconds, options.seed, options.cubin)


def _sweep(seconds: float, seed: int, assembles: bool) -> int:
    from triton.backends.nvidia.compiler import CUDABackend

    from tests.legality_points import judge_apart, points

    if not assembles:
        backend: Any = CUDABackend
        backend.make_cubin = _nothing
    every = list(points())
    random.Random(seed).shuffle(every)
    end = time.monotonic() + seconds
    done = agreeing = 0
    for point in every:
        if time.monotonic() > end:
            break
        judged = judge_apart(point)
        done += 1
        agreeing += judged.agrees
        if not judged.agrees:
            print(f"{point}\n  said: {judged.said or 'nothing'}\n  Triton: {judged.outcome}")
    print(f"{agreeing} of {done} agree ({len(every)} points in all)")
    return 0 if agreeing == done else 1


def _nothing(*_: object) -> bytes:
    """In place of ptxas."""
    return b""


if __name__ == "__main__":
    raise SystemExit(main())
