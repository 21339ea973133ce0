"""Check the A/B protocol on this GPU: 20 runs of equal arms, 10 runs with 1 % more work in one.

usage: python scripts/ab_selftest.py [--budget SECONDS] [--out FOLDER] [--simulate]

Equal arms have to come out SAME in at least 19 runs, the arm with more work SLOWER in at least 9.
Exits non-zero if not, or if there is no GPU. With --simulate the GPU is simulated.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from tilepass.ab import selftest
from tilepass.ab.files import write_json
from tilepass.ab.session import Means, need_gpu, run_on_gpu
from tilepass.ab.subjects import find_subject
from tilepass.core.errors import TilepassError


def measured(budget: float, out: Path | None) -> list[selftest.Outcome]:
    """Both tests on the GPU; the reports go to `out` as JSON."""
    need_gpu(required=True)
    deadline = time.monotonic() + budget
    outcomes: list[selftest.Outcome] = []
    for job, judge in (
        (selftest.slower_arm_job(), selftest.judge_slower_arm),
        (selftest.equal_arms_job(), selftest.judge_equal_arms),
    ):
        means = Means(os.cpu_count() or 1, max(1.0, deadline - time.monotonic()))
        report = run_on_gpu(job, find_subject(job.kernel), means)
        if report.failure is not None:
            raise TilepassError(report.failure)
        outcomes.append(judge(report))
        print("\n".join(outcomes[-1].lines), flush=True)
        if out is not None:
            name = outcomes[-1].name.replace(" ", "_").replace("%", "percent")
            write_json(out / f"selftest_{name}.json", report.to_dict())
    return outcomes


def main() -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Check the A/B protocol on this GPU.")
    parser.add_argument("--budget", type=float, default=300.0, metavar="SECONDS")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="reports as JSON")
    parser.add_argument("--simulate", action="store_true", help="on a simulated GPU")
    arguments = parser.parse_args()
    try:
        if arguments.simulate:
            outcomes = list(selftest.judge_simulation())
        else:
            outcomes = measured(arguments.budget, arguments.out)
    except TilepassError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(outcome.summary() for outcome in outcomes))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
