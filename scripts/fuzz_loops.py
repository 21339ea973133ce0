"""Fuzz flatten-loops and Triton's tritongpu-fuse-nested-loops with random loop nests.

usage: python scripts/fuzz_loops.py --count 10000 --seed 0 [--jobs 2] [--no-guard]

Every nest goes through the passes that Triton runs before fusion, flatten-loops, and fusion; the
simulator runs it before and after. The first failure of each kind is reduced and printed as a lit
test. `--no-guard` leaves flatten-loops out, to see what it guards against. Exit status 1 if a nest
fails or fewer than half are flattened.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fuzz_loops.campaign import Failure, Report, fuzz, lit_test, minimize
from tilepass.core.errors import TilepassError
from tilepass.core.versions import triton_version

_CHUNK = 250


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="nests to check")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the first nest")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--no-guard", action="store_true", help="without flatten-loops")
    options = parser.parse_args()
    started = time.perf_counter()
    try:
        report = _fuzz(options.seed, options.count, options.jobs, not options.no_guard)
    except TilepassError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(
        f"{triton_version()}: {report.count} nests: {report.flattened} flattened, {report.refused} "
        f"refused, {len(report.failures)} failed, in {time.perf_counter() - started:.0f} s"
    )
    if report.failures:
        _show(report, not options.no_guard)
        return 1
    if 2 * report.flattened < report.count:
        print("error: fewer than half of the nests were flattened", file=sys.stderr)
        return 1
    return 0


def _fuzz(first: int, count: int, jobs: int, guard: bool) -> Report:
    """All nests, in chunks. Raises TilepassError where a compiler pass ends its process."""
    ends = first + count
    chunks = [range(at, min(at + _CHUNK, ends)) for at in range(first, ends, _CHUNK)]
    report = Report()
    if jobs <= 1:
        for chunk in chunks:
            report.add(fuzz(chunk, guard))
        return report
    # Forked processes would share libtriton's state.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        waiting = [(chunk, pool.submit(fuzz, chunk, guard)) for chunk in chunks]
        for chunk, future in waiting:
            try:
                report.add(future.result())
            except BrokenProcessPool as error:
                raise TilepassError(
                    f"a process died at or after seed {chunk.start}; to find the seed: "
                    f"--jobs 1 --seed {chunk.start} --count {len(chunk)}"
                ) from error
    return report


def _show(report: Report, guard: bool) -> None:
    kinds = Counter(_kind(failure) for failure in report.failures)
    print("failures: " + ", ".join(f"{count} {kind}" for kind, count in kinds.items()))
    first = {_kind(failure): failure for failure in reversed(report.failures)}
    for failure in first.values():
        print(lit_test(minimize(failure, guard), guard))


def _kind(failure: Failure) -> str:
    issue = failure.verdict.issue
    return f"{failure.verdict.kind} ({issue})" if issue else failure.verdict.kind


if __name__ == "__main__":
    raise SystemExit(main())
