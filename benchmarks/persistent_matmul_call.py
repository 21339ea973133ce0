"""A program that multiplies with the persistent matmul and knows no passes; timed beside PyTorch.

usage: [tilepass run -p epilogue-warp-specialize --] python -m benchmarks.persistent_matmul_call
       [MxNxK] [--set block_n=128,epilogue=bias_gelu] [--rounds N]

Prints us per launch of the kernel and of PyTorch's call for the same, medians over rounds that
alternate, each with a cold L2; PyTorch's over the kernel's is above 1 where the kernel is faster.
Exits non-zero if the kernel's result is wrong. Without a GPU the kernel is compiled for sm_90.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch

from benchmarks.in_turn import medians_in_turn
from tilepass.ab.subjects import find_library
from tilepass.ab.torch_matmul import LIBRARIES
from tilepass.cli.guard import run_guarded
from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Target
from tilepass.frontends.triton.targets import gpu_target
from tilepass.kernels import get_workload
from tilepass.kernels.emit_ir import parse_settings, parse_shape


def call(shape_text: str, settings: str, rounds: int) -> None:
    """Launch, check, time and print. Raises TilepassError."""
    workload = get_workload("persistent-matmul")
    shape = parse_shape(shape_text)
    config = workload.config_from(shape, parse_settings(settings))
    if not torch.cuda.is_available():
        compiled = workload.compile(config, gpu_target(Target("cuda", 90)))
        print(f"compiled for sm_90: {compiled.metadata.num_warps} warps, not run")
        return
    inputs = workload.make_inputs(shape, seed=0, config=config)
    launch = workload.prepare(inputs, config)
    launch()
    if wrong := workload.check(launch, inputs):
        raise TilepassError(f"the kernel's result is wrong: {wrong}")
    spec = LIBRARIES[config.epilogue]
    library, name = find_library(spec), spec.rpartition(":")[2]
    kernel_us, library_us = medians_in_turn([launch, lambda: library(inputs)], rounds)
    print(
        f"{shape_text} {config.epilogue}: kernel {kernel_us:.1f} us, "
        f"PyTorch's {name} {library_us:.1f} us, ratio {library_us / kernel_us:.3f}"
    )


def main(arguments: Sequence[str]) -> int:
    """Make one call; returns the exit status. Raises TilepassError."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("shape", nargs="?", default="8192x8192x512", metavar="MxNxK")
    parser.add_argument("--set", default="block_n=128,num_stages=4", help="the configuration")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    call(options.shape, options.set, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(run_guarded(main, sys.argv[1:]))
