"""Somebody else's program under the passes: the TMA matmuls of Triton's tutorial 09, unmodified.

usage: python -m benchmarks.tutorial_matmul FILE [--pipeline TEXT] [--shapes MxNxK,...]
       [--rounds N] [--out FILE]

FILE is `09-persistent-matmul.py` of Triton's tutorials. Its two persistent kernels carry the number
of the tile through the tile loop, and half of the configurations that they are tuned over cut the
epilogue in two. Each arm, stock and pipeline, is a copy of the module that autotunes over the
file's configurations with BLOCK_SIZE_K = 64 and 3 or 4 stages. Every result is compared with fp32,
its memory poisoned before, and 20 launches bit by bit. Times are medians in us over rounds that
alternate, each with a cold L2; cuBLAS is `torch.mm`. Exits non-zero without a GPU, or if a result
is wrong.
"""

# The tutorial's module is known when this runs.
# pyright: basic

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import triton

from tilepass.ab.gpu import gpu_facts, open_clock, versions
from tilepass.activate import enabled
from tilepass.cli.guard import run_guarded
from tilepass.core.errors import TilepassError
from tilepass.core.files import write_json
from tilepass.kernels.emit_ir import parse_shape

SHAPES = "8192x8192x512,4096x4096x4096,8192x8192x2048,8192x8192x8192"
FUNCTIONS = {
    "matmul_tma_persistent": "matmul_kernel_tma_persistent",
    "matmul_descriptor_persistent": "matmul_kernel_descriptor_persistent",
}
TOLERANCE = 1e-3
"""Of the norm of the difference from fp32: fp16 rounds once."""


@dataclass
class Arm:
    """A copy of the tutorial's module and the pipeline that it runs under (stock: None)."""

    name: str
    pipeline: str | None
    module: Any

    def active(self) -> contextlib.AbstractContextManager[object]:
        """What compilations and launches stand in."""
        return enabled(self.pipeline) if self.pipeline else contextlib.nullcontext()

    def tuned(self, function: str) -> str:
        """The configuration that the last launch of a function had."""
        return str(getattr(self.module, FUNCTIONS[function]).best_config)


def load(file: Path, name: str, pipeline: str | None) -> Arm:
    """A new copy of the tutorial's module, its autotuners left with fewer configurations."""
    spec = importlib.util.spec_from_file_location(f"tutorial_{name}", file)
    if spec is None or spec.loader is None:
        raise TilepassError(f"{file} is not a Python file")
    module: Any = importlib.util.module_from_spec(spec)
    # Triton finds the sources of its functions through it.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    for kernel in FUNCTIONS.values():
        tuner = getattr(module, kernel)
        tuner.configs = [
            each
            for each in tuner.configs
            if each.kwargs["BLOCK_SIZE_K"] == 64 and each.num_stages >= 3
        ]
    return Arm(name, pipeline, module)


def operands(shape: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """A [M, K] and B [N, K], fp16, normal."""
    M, N, K = shape
    generator = torch.Generator("cuda").manual_seed(0)
    return tuple(torch.randn(rows, K, generator=generator, device="cuda").half() for rows in (M, N))  # pyright: ignore[reportReturnType]


def launched(arm: Arm, function: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A result whose memory held NaN before."""
    poison = torch.full((a.shape[0], b.shape[0]), float("nan"), device="cuda", dtype=a.dtype)
    del poison
    return getattr(arm.module, function)(a, b, False)


def verdict(arm: Arm, function: str, a: torch.Tensor, b: torch.Tensor) -> str:
    """What is wrong with an arm's results; empty for nothing."""
    with arm.active():
        first = launched(arm, function, a, b)
        expected = a.float() @ b.float().T
        error = ((first.float() - expected).norm() / expected.norm()).item()
        if not error <= TOLERANCE:
            return f"error {error:.2e}"
        moved = sum(not torch.equal(first, launched(arm, function, a, b)) for _ in range(20))
    return f"{moved} of 20 launches differ" if moved else ""


def medians(calls: Sequence[tuple[Arm | None, Callable[[], object]]], rounds: int) -> list[float]:
    """Median us of each call, one after the other in every round."""
    bench: Any = triton.testing.do_bench
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for (arm, call), found in zip(calls, times, strict=True):
            with arm.active() if arm else contextlib.nullcontext():
                found.append(1000 * bench(call, warmup=10, rep=60, return_mode="median"))
    return [statistics.median(each) for each in times]


def prepare(options: argparse.Namespace, names: Sequence[str]) -> None:
    """Compile every configuration of every arm and function at once, one process each."""
    command = [sys.executable, "-m", "benchmarks.tutorial_matmul", str(options.file)]
    command += ["--pipeline", options.pipeline, "--shapes", options.shapes.split(",")[0]]
    children = [
        subprocess.Popen([*command, "--prepare", name, function])
        for name in names
        for function in FUNCTIONS
    ]
    statuses = [child.wait() for child in children]
    if any(statuses):
        raise TilepassError("a configuration cannot be compiled")


def main(arguments: Sequence[str]) -> int:
    """Print a table; the status is 1 where a result is wrong. Raises TilepassError."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--pipeline", default="epilogue-warp-specialize")
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--prepare", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        raise TilepassError("no CUDA GPU was found")
    arms = {
        name: load(options.file, name, pipeline)
        for name, pipeline in (("stock", None), ("pipeline", options.pipeline))
    }
    shapes = [parse_shape(text) for text in options.shapes.split(",")]
    if options.prepare:
        name, function = options.prepare
        with arms[name].active():
            launched(arms[name], function, *operands(shapes[0]))
        return 0
    prepare(options, list(arms))
    rows, failed = list[dict[str, object]](), False
    for shape in shapes:
        a, b = operands(shape)
        for function in FUNCTIONS:
            wrong = {name: verdict(arm, function, a, b) for name, arm in arms.items()}
            failed |= any(wrong.values())
            calls = [
                (arm, partial(getattr(arm.module, function), a, b, warp_specialize=False))
                for arm in arms.values()
            ]
            times = medians([*calls, (None, partial(torch.mm, a, b.T))], options.rounds)
            row = {
                "function": function,
                "shape": "x".join(map(str, shape)),
                "us": dict(zip([*arms, "cublas"], times, strict=True)),
                "speedup": times[0] / times[1],
                "wrong": wrong,
                "configurations": {name: arm.tuned(function) for name, arm in arms.items()},
            }
            rows.append(row)
            print(
                f"{function:30} {row['shape']:16} stock {times[0]:8.1f} pipeline {times[1]:8.1f} "
                f"cuBLAS {times[2]:8.1f}  {times[0] / times[1]:.3f} of stock's speed, "
                f"{times[2] / times[1]:.3f} of cuBLAS's  {wrong if failed else 'right'}",
                flush=True,
            )
    speedup = statistics.geometric_mean(float(row["speedup"]) for row in rows)  # pyright: ignore[reportArgumentType]
    print(f"geometric mean {speedup:.3f}")
    if options.out:
        write_json(options.out, report(options, rows, speedup))
    return 1 if failed else 0


def report(
    options: argparse.Namespace, rows: list[dict[str, object]], speedup: float
) -> dict[str, object]:
    """The table with what it was measured on."""
    return {
        "program": options.file.name,
        "pipeline": options.pipeline,
        "machine": {**gpu_facts(open_clock()[1]), **versions()},
        "rounds": options.rounds,
        "rows": rows,
        "geometric_mean": speedup,
    }


if __name__ == "__main__":
    sys.exit(run_guarded(main, sys.argv[1:]))
