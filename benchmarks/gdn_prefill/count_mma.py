"""Count `mma.sync` in FlashInfer's prefill classes with and without `cute-zero-mma`, on the CPU.

usage: python -m benchmarks.gdn_prefill.count_mma [--classes sm120,sm80,cp-sm120]
       [--chips sm_90a,sm_120a] [--dtype bf16] [--cache FOLDER] [--report]

Takes the pinned wheels from PyPI the first time. Compares the unmodified class, the pass in the
dense order with gaps (k), without 0 * x = 0 (strict), with the order that it chooses itself, and
for sm120 the PTX of the pass with that of a hand-written skip. Below each count stands the order of
every gemm that has zero tiles. With --report the remarks of the pass are printed. Exits non-zero
where something differs from what is expected.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.gdn_prefill.by_hand import write_by_hand
from benchmarks.gdn_prefill.counts import KERNELS, NAIVE, Compiled, Kernel, compile_kernel
from benchmarks.gdn_prefill.wheels import WITHOUT_SKIP, unpacked
from tilepass.core.errors import TilepassError, report

CACHE = Path(__file__).resolve().parents[2] / "out" / "flashinfer"


def show(title: str, compiled: Compiled, expected: int) -> bool:
    """Print one row; whether the count is the one expected."""
    verdict = "" if compiled.mma_count == expected else f"   EXPECTED {expected}"
    print(
        f"{title:52} {compiled.mma_count:5} mma.sync {compiled.load_count:4} ldmatrix  "
        f"trace and passes {compiled.trace_s:5.1f} s, compile {compiled.compile_s:5.1f} s{verdict}",
        flush=True,
    )
    for order, gemms in compiled.orders.items():
        print(f"    order {order}: gemms {', '.join(map(str, gemms))}")
    return compiled.mma_count == expected


def check(name: str, kernel: Kernel, chip: str, options: argparse.Namespace) -> bool:
    """Compile one class for one chip in all ways; whether everything is as expected."""
    folder = unpacked(kernel.version, options.cache)
    good, naive = True, ""
    for pipeline, expected in kernel.counts.items():
        compiled = compile_kernel(kernel, folder, pipeline, chip, options.dtype)
        good &= show(f"{name} {chip} {pipeline or 'unmodified'}", compiled, expected)
        if options.report:
            print("\n".join(f"    {remark}" for remark in compiled.remarks))
        if pipeline == NAIVE:
            naive = compiled.ptx
    if kernel.version == WITHOUT_SKIP:
        with tempfile.TemporaryDirectory() as scratch:
            edited = write_by_hand(folder, Path(scratch))
            by_hand = compile_kernel(kernel, edited, "", chip, options.dtype)
        good &= show(f"{name} {chip} skip by hand", by_hand, kernel.counts[NAIVE])
        same = by_hand.ptx == naive
        print(f"    PTX of the pass and of the hand-written skip: {'equal' if same else 'DIFFER'}")
        good &= same
    return good


def main() -> int:
    """Check every class for every chip."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--classes", default=",".join(KERNELS))
    parser.add_argument("--chips", default="sm_90a,sm_120a")
    parser.add_argument("--dtype", choices=("bf16", "f16"), default="bf16")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    try:
        # The DSL writes the PTX that it keeps into the working directory.
        with tempfile.TemporaryDirectory() as scratch:
            options.cache = options.cache.resolve()
            os.chdir(scratch)
            results = [
                check(name, KERNELS[name], chip, options)
                for name in options.classes.split(",")
                for chip in options.chips.split(",")
            ]
    except KeyError as error:
        print(f"error: no class {error}: {', '.join(KERNELS)}", file=sys.stderr)
        return 1
    except TilepassError as error:
        print(report(error), file=sys.stderr)
        return 1
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
