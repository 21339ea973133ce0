"""Check that a trip through the IR engine changes nothing, on the IR of the test corpus.

Usage: python scripts/round_trip.py [--every-pass] [--only TEXT]

Without `--every-pass`: the printed IR, locations included, of every kernel before and after a trip,
as the front end made it and after each IR stage. With it: a trip after every pass of Triton's
pipelines; the PTX (on AMD targets: the assembly) must be byte-identical to that of plain Triton.

The status is 1 if anything differs or the whole corpus is too small, 2 if `--only` selects nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.corpus import every_pass, round_trip
from tests.corpus.entries import Entry, all_entries

LEAST_FILES = 60
LEAST_KERNELS = 30


def main() -> int:
    """Print one line per difference and the totals; returns the status."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s [options]")
    parser.add_argument("--every-pass", action="store_true", help="a trip after every pass")
    parser.add_argument("--only", default="", help="only entries whose name contains this")
    options = parser.parse_args()
    entries = [entry for entry in all_entries() if options.only in entry.name]
    if not entries:
        parser.error(f"no entry of the corpus has {options.only!r} in its name")
    kernels = len({entry.kernel.__name__ for entry in entries})
    if not options.only and kernels < LEAST_KERNELS:
        print(f"error: {kernels} kernels are in the corpus, {LEAST_KERNELS} are required")
        return 1
    if options.every_pass:
        return _assembly(entries)
    return _texts(entries, kernels, 1 if options.only else LEAST_FILES)


def _texts(entries: list[Entry], kernels: int, least_files: int) -> int:
    outcomes = [outcome for entry in entries for outcome in round_trip.round_trips(entry)]
    different = [outcome for outcome in outcomes if outcome.difference]
    for outcome in different:
        print(outcome)
    print(
        f"round trip: {len(outcomes) - len(different)} of {len(outcomes)} IR files of "
        f"{kernels} kernels identical, locations included"
    )
    if len(outcomes) < least_files:
        print(f"error: {len(outcomes)} IR files were compared, {least_files} are required")
        return 1
    return 1 if different else 0


def _assembly(entries: list[Entry]) -> int:
    results = [every_pass.compare(entry) for entry in entries]
    different = [result for result in results if not result.identical]
    for result in different:
        print(result)
    print(
        f"a trip after every pass: {len(results) - len(different)} of {len(results)} kernels with "
        f"assembly identical to plain Triton's, {sum(result.trips for result in results)} trips"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
