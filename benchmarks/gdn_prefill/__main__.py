"""FlashInfer's unmodified gated-delta-rule prefill on the GPU, dense against `cute-zero-mma`.

usage: python -m benchmarks.gdn_prefill FLASHINFER_FOLDER [--orders ORDER,...] [--mode auto]
       [--dtypes bf16,f16] [--cases 1x64,...] [--budget SECONDS] [--copies N] [--out FILE]
       [--compile] [--jobs N]

FLASHINFER_FOLDER (or $FLASHINFER_SOURCE) holds flashinfer/gdn_kernels of version 0.7.2.post1.
An ORDER is one name for all gemms (auto, k, n4, k-serpentine, ...), or FIRST/LOOP/LAST for the
three bodies of the kernel, each of them NAME or NEWV:O2; `dense` leaves a gemm as it is. With
`vectorized` alone, or `vectorized+` before an order, cute-vectorize-copies runs first.
Prints a table of time against dense (below 1 is faster) and, for each order, where it misses the
goals; exits non-zero unless the first order reaches all. --compile stops before the GPU is needed.
Needs nvidia-cutlass-dsl, apache-tvm-ffi and torch.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gdn_prefill.arms import DENSE, Arm, parse_arm
from benchmarks.gdn_prefill.build import build_arms, keep_tvm_ffi_from_building
from benchmarks.gdn_prefill.session import Session
from tilepass.cli.guard import run_guarded
from tilepass.core.errors import TilepassError


def command(words: Sequence[str]) -> int:
    """Compile, check, time. Raises TilepassError."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", default=os.environ.get("FLASHINFER_SOURCE"))
    parser.add_argument("--orders", default="auto")
    parser.add_argument("--mode", choices=("auto", "assume"), default="auto")
    parser.add_argument("--dtypes", default="bf16,f16")
    parser.add_argument("--cases", default=None)
    parser.add_argument("--budget", type=float, default=300.0, help="seconds to time for, in all")
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--out", type=Path, default=Path("out/flashinfer_gdn_ab.json"))
    parser.add_argument("--compile", action="store_true", help="stop before the GPU is needed")
    arguments = parser.parse_args(words)
    begun = time.perf_counter()
    keep_tvm_ffi_from_building()
    if arguments.folder is None:
        raise TilepassError("no FlashInfer folder given, and FLASHINFER_SOURCE is not set")
    orders = [order for order in arguments.orders.split(",") if order != DENSE]
    arms = [Arm(DENSE, ""), *(parse_arm(order, arguments.mode) for order in orders)]
    dtypes = arguments.dtypes.split(",")
    built = build_arms(arms, dtypes, arguments.folder, arguments.jobs)
    print(f"built in {time.perf_counter() - begun:.0f} s", flush=True)
    if arguments.compile:
        return 0
    session = Session(arms, dtypes, arguments.copies, arguments.budget, arguments.out)
    return session.run(built, arguments.cases)


if __name__ == "__main__":
    sys.exit(run_guarded(command, sys.argv[1:]))
