"""FlashInfer's unmodified gated-delta-rule prefill on the GPU, dense against `cute-zero-mma`.

usage: python scripts/flashinfer_gdn_ab.py FLASHINFER_FOLDER [--orders ORDER,...] [--mode auto]
       [--dtypes bf16,f16] [--cases 1x64,...] [--budget SECONDS] [--copies N] [--out FILE]
       [--compile] [--jobs N]

FLASHINFER_FOLDER (or $FLASHINFER_SOURCE) holds flashinfer/gdn_kernels of version 0.7.2.post1.
An ORDER is one name for all gemms (auto, k, n4, k-serpentine, ...), or FIRST/LOOP/LAST for the
three bodies of the kernel, each of them NAME or NEWV:O2; `dense` leaves a gemm as it is. With
`vectorized` alone, or `vectorized+` in front of an order, cute-vectorize-copies runs first.
Prints a table of time against dense (below 1 is faster) and, for each order, where it misses the
goals; exits non-zero unless the first order reaches all. --compile stops before the GPU is needed.
Needs nvidia-cutlass-dsl, apache-tvm-ffi and torch.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tilepass.ab.gdn_study.arms import DENSE, Arm, parse_arm
from tilepass.ab.gdn_study.build import (
    Built,
    Request,
    keep_tvm_ffi_from_building,
    result,
    start,
)
from tilepass.ab.gdn_study.session import Session
from tilepass.core.errors import TilepassError, report


def build(
    arms: list[Arm], dtypes: list[str], folder: str, jobs: int
) -> dict[tuple[str, str], Built]:
    """Compile every (type, arm name) in `jobs` processes at a time; prints what came out."""
    stems = Path(tempfile.mkdtemp(prefix="tilepass-gdn-"))
    wanted = [(dtype, arm) for dtype in dtypes for arm in arms]
    requests = {
        (dtype, arm.name): Request(
            str(Path(folder).resolve()), dtype, arm.pipeline, "sm_90a", str(stems / f"{at}" / "arm")
        )
        for at, (dtype, arm) in enumerate(wanted)
    }
    built: dict[tuple[str, str], Built] = {}
    keys = list(requests)
    for first in range(0, len(keys), jobs):
        running = {key: start(requests[key]) for key in keys[first : first + jobs]}
        for key, process in running.items():
            process.wait()
            built[key] = result(requests[key])
            figures = built[key]
            print(
                f"{key[0]:5}{key[1]:32} {figures.mma_count} mma.sync, {figures.cubin_sha256}, "
                f"trace {figures.trace_s} s, compile {figures.compile_s} s",
                flush=True,
            )
    return built


def main() -> int:
    """Compile, check, time."""
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
    arguments = parser.parse_args()
    begun = time.perf_counter()
    keep_tvm_ffi_from_building()
    try:
        if arguments.folder is None:
            raise TilepassError("no FlashInfer folder given, and FLASHINFER_SOURCE is not set")
        orders = [order for order in arguments.orders.split(",") if order != DENSE]
        arms = [Arm(DENSE, ""), *(parse_arm(order, arguments.mode) for order in orders)]
        dtypes = arguments.dtypes.split(",")
        built = build(arms, dtypes, arguments.folder, arguments.jobs)
        print(f"built in {time.perf_counter() - begun:.0f} s", flush=True)
        if arguments.compile:
            return 0
        session = Session(arms, dtypes, arguments.copies, arguments.budget, arguments.out)
        return session.run(built, arguments.cases)
    except TilepassError as error:
        print(report(error), file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
