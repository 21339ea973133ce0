"""Where the warps of FlashInfer's prefill wait, sampled by Nsight Compute on the GPU.

usage: python -m benchmarks.gdn_prefill.sample_stalls FLASHINFER_FOLDER [--orders ORDER,...]
       [--dtype f16] [--case 32x64] [--launches N] [--out FILE]

Orders as in flashinfer_gdn_ab.py. Prints, for each, the samples of a launch, the share of them at
the loads and the stores of the state, and of the latter those that wait for the load/store unit.
Needs ncu on the PATH and the right to read the GPU's counters.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.gdn_prefill.arms import DENSE, Arm, parse_arm
from benchmarks.gdn_prefill.build import build_arms, keep_tvm_ffi_from_building
from benchmarks.gdn_prefill.stalls import SCHEMA, profile
from tilepass.ab.gpu import NvmlClock, gpu_facts
from tilepass.cli.guard import run_guarded
from tilepass.core.errors import TilepassError
from tilepass.core.files import write_json


def command(words: Sequence[str]) -> int:
    """Compile, sample, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--orders", default="auto,vectorized,vectorized+auto")
    parser.add_argument("--dtype", choices=("bf16", "f16"), default="f16")
    parser.add_argument("--case", default="32x64")
    parser.add_argument("--launches", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("out/flashinfer_gdn_stalls.json"))
    arguments = parser.parse_args(words)
    keep_tvm_ffi_from_building()
    import torch

    from benchmarks.gdn_prefill.workload import cases_named

    cases_named(arguments.case)
    cuda: Any = torch.cuda
    if not cuda.is_available():
        raise TilepassError("no GPU")
    environment = gpu_facts(NvmlClock(str(cuda.get_device_properties(0).uuid)).facts())
    orders = [order for order in arguments.orders.split(",") if order != DENSE]
    arms = [Arm(DENSE, ""), *(parse_arm(order, "auto") for order in orders)]
    jobs = max(1, (os.cpu_count() or 2) // 2)
    built = build_arms(arms, [arguments.dtype], str(arguments.folder), jobs)
    found: dict[str, dict[str, object]] = {}
    for arm in arms:
        each = built[arguments.dtype, arm.name]
        stalls = profile(each, arguments.case, arguments.launches)
        found[arm.name] = {**asdict(stalls), "cubin_sha256": each.cubin_sha256}
        print(
            f"{arm.name:20} {stalls.total:8.0f} samples a launch: loads of the state "
            f"{stalls.loads / stalls.total:6.1%}, stores {stalls.stores / stalls.total:6.1%} "
            f"({stalls.stores:.0f}, {stalls.queued:.0f} for the load/store unit), "
            f"elsewhere {stalls.total - stalls.loads - stalls.stores:.0f}",
            flush=True,
        )
    write_json(
        arguments.out,
        {
            "schema": SCHEMA,
            "environment": environment,
            "case": arguments.case,
            "dtype": arguments.dtype,
            "arms": found,
        },
    )
    return 0


if __name__ == "__main__":
    sys.exit(run_guarded(command, sys.argv[1:]))
