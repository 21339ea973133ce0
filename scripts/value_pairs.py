"""Print which of many pairs of different kernels `tilepass check --against` tells apart.

Usage: python scripts/value_pairs.py

One row for each pair, with the difference that is found on default inputs. Where none is, it says
what the check names as not compared. The status is 1 if a pair is neither found nor named, or fewer
than 86 % are found.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.value_pairs import pairs

TARGET = 0.86


def main() -> int:
    """Print the table; returns the status."""
    start = time.process_time()
    found, silent = 0, 0
    every = pairs()
    for pair in every:
        difference = pair.difference()
        named = pair.not_compared()
        found += difference is not None
        silent += difference is None and not named
        said = f"not compared: {', '.join(named)}" if named else "MISSED"
        print(f"{pair.name:60} {difference.splitlines()[0] if difference else said}")
    named_only = len(every) - found - silent
    print(
        f"{found} of {len(every)} pairs are found, {named_only} named as not compared, {silent} "
        f"missed; {time.process_time() - start:.1f} s of CPU time"
    )
    return 1 if silent or found < TARGET * len(every) else 0


if __name__ == "__main__":
    raise SystemExit(main())
