"""One call of FlashInfer's gated-delta-rule prefill class, as a program that knows no passes.

usage: [tilepass run -p cute-zero-mma --] python -m benchmarks.gdn_prefill.call [FLASHINFER_FOLDER]

Compiles the class (for sm_90a where there is no GPU) and prints its `mma.sync`; on a GPU it also
runs it and prints the errors against the token recurrence in fp64. The folder holds
flashinfer/gdn_kernels; without one the pinned wheel is taken from PyPI.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.gdn_prefill.build import content_of
from benchmarks.gdn_prefill.source import load_class
from benchmarks.gdn_prefill.wheels import WITHOUT_SKIP, unpacked
from benchmarks.gdn_prefill.workload import Inputs, case, reference
from tilepass.cli.guard import run_guarded

CACHE = Path(__file__).resolve().parents[2] / "out" / "flashinfer"


def call(folder: Path) -> None:
    """Compile, and run where there is a GPU. Raises TilepassError."""
    cutlass: Any = importlib.import_module("cutlass")
    cute: Any = importlib.import_module("cutlass.cute")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    kernel = load_class(folder)(True, True, True, False, cutlass.BFloat16)
    inputs = Inputs(case(2, 512, 4), "bf16", device)
    outputs = inputs.new_outputs()
    options: tuple[Any, ...] = (cute.KeepPTX(True),)
    if device == "cpu":
        options = (*options, cute.GPUArch("sm_90a"))
    stream = int(torch.cuda.current_stream().cuda_stream) if device == "cuda" else 0
    arguments = inputs.arguments(outputs, "trace" if device == "cpu" else "plain", stream)
    compiled = cute.compile[options](kernel, *arguments)
    print(f"mma.sync: {content_of(compiled.__ptx__).count(b'mma.sync')}", file=sys.__stdout__)
    if device == "cpu":
        return
    compiled(*arguments)
    torch.cuda.synchronize()
    for name, found, exact in zip(("output", "state"), outputs, reference(inputs), strict=True):
        error = float((found.double() - exact).abs().max())
        print(f"largest error of the {name}: {error:.1e}", file=sys.__stdout__)


def main(arguments: Sequence[str]) -> int:
    """Make one call; returns the exit status. Raises TilepassError."""
    given = next(iter(arguments), None)
    folder = Path(given).resolve() if given else unpacked(WITHOUT_SKIP, CACHE)
    # The DSL writes the PTX that it keeps into the working directory.
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        call(folder)
    return 0


if __name__ == "__main__":
    sys.exit(run_guarded(main, sys.argv[1:]))
