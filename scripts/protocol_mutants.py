"""Check that the protocol check notices every mistake, and sees none where there is none.

Usage: python scripts/protocol_mutants.py [--scheme A|A0|B] [--seeds N] [--mutant-seeds N] [--brief]

For the warp-specialized matmuls in lit_tests/check/Inputs: one row for each mutant, with what is
reported for loops of 1, 2, 3 (the stages) and 4 trips, 5 tiles a program. Then the kernels as they
are, N schedules each (default 1000). The status is 1 if a mutant is reported at no size, or a
kernel without a mistake is.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.protocol_support import SCHEMES, TILES, TRIPS, Row, load, problem, rows
from tilepass.sim.protocol.check import Finding, find
from tilepass.sim.protocol.compiler import ProtocolProgram


def main() -> int:
    """Print the tables; the status is 1 if anything is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s [options]")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--scheme", choices=SCHEMES, help="one of the kernels only")
    parser.add_argument("--seeds", type=int, default=1000, help="schedules of a correct kernel")
    parser.add_argument("--mutant-seeds", type=int, default=5, help="schedules of a mutant")
    parser.add_argument("--brief", action="store_true", help="totals and what is not reported")
    options = parser.parse_args()
    schemes = [options.scheme] if options.scheme else list(SCHEMES)
    good = True
    for scheme in schemes:
        good &= _mutants(scheme, options.mutant_seeds, options.brief)
    for scheme in schemes:
        good &= _correct(scheme, options.seeds)
    return 0 if good else 1


def _mutants(scheme: str, seeds: int, brief: bool) -> bool:
    start = time.monotonic()
    found = list(rows(load(scheme), TRIPS, seeds))
    if not brief:
        print(f"{'scheme ' + scheme:70} " + " ".join(f"{f'{trips} trips':26}" for trips in TRIPS))
    for row in found:
        if not brief or not row.reported:
            print(
                f"{row.mutant.name:70} " + " ".join(f"{_title(each):26}" for each in row.findings)
            )
    groups = collections.Counter(row.mutant.group for row in found)
    reported = sum(row.reported for row in found)
    print(
        f"scheme {scheme}: {reported} of {len(found)} mutants reported "
        f"({', '.join(f'{count} {group}' for group, count in sorted(groups.items()))}; "
        f"{_always(found)} at every size) in {time.monotonic() - start:.1f} s"
    )
    return reported == len(found)


def _always(found: list[Row]) -> int:
    return sum(all(row.findings) for row in found)


def _title(finding: Finding | None) -> str:
    return getattr(finding.fault, "title", "misuse of memory") if finding else "-"


def _correct(scheme: str, seeds: int) -> bool:
    start = time.monotonic()
    program = ProtocolProgram(load(scheme))
    sizes = [problem(trips, tiles) for trips in (*TRIPS, 5) for tiles in (1, 2, TILES)]
    findings = [
        find(program, size, range(index, seeds, len(sizes))) for index, size in enumerate(sizes)
    ]
    shown = [finding for finding in findings if finding]
    for finding in shown:
        print(finding)
    print(f"scheme {scheme} unchanged: {len(shown)} reports in {seeds} schedules of {len(sizes)} "
          f"sizes, {time.monotonic() - start:.1f} s")  # fmt: skip
    return not shown


if __name__ == "__main__":
    sys.exit(main())
