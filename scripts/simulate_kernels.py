"""Execute every kernel of tilepass on the CPU after every pass of Triton, and compare the results.

Usage: python scripts/simulate_kernels.py [--only TEXT]

One row for each kernel and target (sm_80, sm_90, sm_100): the forms of its IR, from the front end's
to the end of ttgir, and whether all give the same bits, which are right. Then kernels that Triton
warp-specializes itself; of these Triton is known to get one wrong. The status is 1 if another is
wrong, 2 if `--only` selects nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.sim_every_pass import Specialized, all_cases

SPECIALIZED = (
    Specialized(90),
    Specialized(100),
    Specialized(100, pointer_store=True),
    Specialized(90, pointer_store=True),
)
KNOWN = Specialized(90, pointer_store=True)


def main() -> int:
    """Print the table and the totals; returns the status."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s [options]")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    only = parser.parse_args().only
    kernels = [case for case in all_cases() if only in str(case)]
    specialized = [case for case in SPECIALIZED if only in str(case)]
    if not kernels and not specialized:
        parser.error(f"no row has {only!r} in its name")
    total, bad = 0, 0
    for case in kernels:
        forms, wrong = case.run()
        total += forms
        bad += wrong is not None
        print(f"{case}: {forms} forms: {wrong or 'the same bits, right'}", flush=True)
    for each in specialized:
        names, wrong_names = each.run()
        total += len(names)
        bad += bool(wrong_names) and each != KNOWN
        said = f"wrong from '{wrong_names[0]}' on" if wrong_names else "right"
        print(f"{each}: {len(names)} forms: {said}", flush=True)
    print(f"{len(kernels) + len(specialized)} kernels and targets, {total} forms; {bad} wrong, "
          "without what Triton is known to get wrong")  # fmt: skip
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
