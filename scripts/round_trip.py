"""Check that a trip through the IR engine changes nothing, on the IR of the test corpus.

Usage: python scripts/round_trip.py [--every-pass] [--only TEXT]

Without `--every-pass`: the printed IR, locations included, of every kernel before and after a trip,
as the front end made it and after each IR stage. With it: a trip after every pass of Triton's
pipelines; the PTX (on AMD targets: the assembly) must be byte-identical to that of plain Triton.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.corpus import every_pass, round_trip
from tests.corpus.entries import Entry, all_entries


def main() -> int:
    """Print one line per difference and the totals; the status is 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s [options]")
    parser.add_argument("--every-pass", action="store_true", help="a trip after every pass")
    parser.add_argument("--only", default="", help="only entries whose name contains this")
    options = parser.parse_args()
    entries = [entry for entry in all_entries() if options.only in entry.name]
    return _assembly(entries) if options.every_pass else _texts(entries)


def _texts(entries: list[Entry]) -> int:
    outcomes = [outcome for entry in entries for outcome in round_trip.round_trips(entry)]
    different = [outcome for outcome in outcomes if outcome.difference]
    for outcome in different:
        print(outcome)
    kernels = len({entry.kernel.__name__ for entry in entries})
    print(
        f"round trip: {len(outcomes) - len(different)} of {len(outcomes)} IR files of "
        f"{kernels} kernels identical, locations included"
    )
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
