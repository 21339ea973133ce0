"""Check idioms of persistent matmuls under every scheme of `epilogue-warp-specialize` on a GPU.

Usage: python scripts/check_idioms.py [--compile-only] [--no-times] [--jobs N] [NAME ...]

Compiles every point (an idiom under a scheme; rows of 32 to 256 elements that TMA loads, in pieces
too) in N processes, then launches those that are specialized: against fp32, the output poisoned
before each launch, and 20 launches compared bit by bit. What `scheme=auto` specializes is then
timed in turn with the kernel as it is, cold L2, at 4096x4096x4096 and 8192x8192x1024. NAME: idioms,
or beginnings of their names. The status is 1 where anything is wrong. `--compile-only` needs no
GPU.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.ws_idioms import (
    IDIOMS,
    Outcome,
    Point,
    compile_all,
    launch_all,
    points,
    time_point,
)


def main() -> int:
    """Print one line for each point; the status is 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s [options] [NAME ...]")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="NAME", help="idioms (default: all)")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--no-times", action="store_true")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    options = parser.parse_args()
    names = [each for each in IDIOMS if each.startswith(tuple(options.names or [""]))]
    chosen = list(points(names))
    compiled = _report("compiled", compile_all(chosen, options.jobs))
    outcomes = list(compiled.values())
    if not options.compile_only:
        runnable = [point for point, each in compiled.items() if each.kind == "specialized"]
        launched = _report("launched", launch_all(runnable, min(4, options.jobs)))
        outcomes += launched.values()
        right = [point for point, each in launched.items() if each.kind == "specialized"]
        timed = [point for point in right if point.options == "scheme=auto"]
        if not options.no_times:
            outcomes += _report("timed", launch_all(timed, 1, time_point)).values()
    return 1 if any(each.kind == "wrong" for each in outcomes) else 0


def _report(what: str, found: Iterable[tuple[Point, Outcome]]) -> dict[Point, Outcome]:
    start, outcomes = time.monotonic(), dict[Point, Outcome]()
    for point, outcome in found:
        outcomes[point] = outcome
        detail = f": {outcome.detail[:200]}" if outcome.detail else ""
        print(f"{point.idiom:24} {point.options:52} {outcome.kind}{detail}", flush=True)
    kinds = [each.kind for each in outcomes.values()]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    print(f"{what} in {time.monotonic() - start:.0f} s: {counts}")
    return outcomes


if __name__ == "__main__":
    raise SystemExit(main())
