"""Check that gross mistakes in a fused persistent matmul are found with default settings.

Usage: python scripts/matmul_mutants.py [--block M,N,K] [--seeds N]

Each mutant at the end of ttgir is compared with the TTIR of the kernel that is right, as
`tilepass check A --against B` and `--validate` do; a ring that is reset is also looked for by
`tilepass check` alone. One row for each: what is reported, and the CPU time. The status is 1 if a
mutant is not reported, or the right kernel is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.matmul_mutants import (
    FAULTS,
    RING_RESET,
    compiled,
    source_for_tma,
    stages,
    with_ring_reset,
)
from tilepass.activate import enabled
from tilepass.core.errors import TilepassError
from tilepass.sim.equivalence import assert_equivalent
from tilepass.sim.protocol_check import check_protocol


def main() -> int:
    """Print the table; the status is 1 if anything is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s [options]")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--block", default="128,256,64", help="the tile (default 128,256,64)")
    parser.add_argument("--seeds", type=int, default=3, help="random inputs for each shape")
    options = parser.parse_args()
    block_m, block_n, block_k = map(int, options.block.split(","))
    block, seeds = (block_m, block_n, block_k), options.seeds
    right = compiled(None, block, "ttir")

    def compare(fault: str | None) -> Callable[[], object]:
        module = compiled(fault, block, "ttgir")
        return lambda: assert_equivalent(right, module, seeds=seeds)

    wrong = [_row("(right)", compare(None))]
    found = [_row(fault, compare(fault)) for fault in FAULTS]
    with enabled("epilogue-warp-specialize", remarks="none"):
        specialized = stages(source_for_tma(block), "ttgir")
    plain = stages(source_for_tma(block), "ttir")
    reset = with_ring_reset(specialized)
    wrong.append(_row("(right, specialized)", lambda: assert_equivalent(plain, specialized)))
    wrong.append(_row("(right, protocol)", lambda: check_protocol(specialized)))
    found.append(_row(RING_RESET, lambda: assert_equivalent(plain, reset, seeds=seeds)))
    alone = _row(f"{RING_RESET} (protocol)", lambda: check_protocol(reset))
    print(f"{sum(found)} of {len(found)} mutants reported, {sum(wrong)} of {len(wrong)} right ones")
    return 0 if all(found) and alone and not any(wrong) else 1


def _row(name: str, check: Callable[[], object]) -> bool:
    start, said = time.process_time(), ""
    try:
        check()
    except TilepassError as error:
        said = str(error).splitlines()[0]
    seconds = time.process_time() - start
    print(f"{name:36} {seconds:5.1f} s  {said or '-'}", flush=True)
    return bool(said)


if __name__ == "__main__":
    sys.exit(main())
