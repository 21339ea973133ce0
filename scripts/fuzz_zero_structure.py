"""Compare the zero-structure analysis with executions of random kernels, on the CPU.

    python scripts/fuzz_zero_structure.py --count 300 --seed 0

Fails on a tile that is called zero and is not, and where fewer than 80 % of the tiles that are zero
by construction are found.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fuzz_zero_structure.campaign import run
from tests.fuzz_zero_structure.tracing import lowered

LEAST_SHARE = 0.8


def main() -> int:
    """Run a campaign and print what it found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="kernels (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="of the random kernels and data")
    options = parser.parse_args()
    start = time.monotonic()
    outcome = run(options.count, options.seed, lowered)
    print(
        f"{outcome.kernels} kernels in {time.monotonic() - start:.0f} s: "
        f"{outcome.claimed} tiles called zero ({outcome.claimed_strictly} without 0 * x = 0), "
        f"{len(outcome.false_claims)} false claims; "
        f"{outcome.found} of {outcome.constructed} tiles found that are zero by construction "
        f"({outcome.share:.1%})"
    )
    for key, tiles in sorted(outcome.missed.items()):
        print(f"  not found: {tiles} tiles ({key})")
    for claim in outcome.false_claims:
        print(f"  FALSE: {claim}")
    return 1 if outcome.false_claims or outcome.share < LEAST_SHARE else 0


if __name__ == "__main__":
    sys.exit(main())
