"""A program that knows no passes: `torch.compile` with Triton matmuls, timed beside eager.

usage: [tilepass run -p epilogue-warp-specialize --] python -m benchmarks.torch_compile_call
       [--shapes 8192x8192x512,...] [--dynamic] [--rounds N]

Inductor generates the kernels, times its templates (the persistent one with TMA among them) and
takes the fastest; cuBLAS is not among the choices. C = A B^T in bf16, alone and with bias and GELU.
Prints us of the compiled function and of eager PyTorch, medians over rounds that alternate, each
with a cold L2. Exits non-zero without a GPU, or if a result is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import torch

from benchmarks.in_turn import medians_in_turn
from tilepass.cli.guard import run_guarded
from tilepass.core.errors import TilepassError
from tilepass.kernels.emit_ir import parse_shape

Function = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
TOLERANCE = 2e-2
"""Of an element, relative to 1 + its size: bf16 rounds twice."""


def product(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """C [M, N] = A [M, K] B [N, K]^T."""
    return a @ b.T


def product_bias_gelu(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """GELU(A B^T + bias [N])."""
    return torch.nn.functional.gelu(a @ b.T + bias)


def compiled(function: Function, dynamic: bool) -> Function:
    """With Inductor's Triton templates alone, autotuned."""
    config: Any = import_module("torch._inductor.config")
    config.max_autotune_gemm_backends = "TRITON"
    config.triton.enable_persistent_tma_matmul = True
    torch_: Any = import_module("torch")  # its stubs leave the options' types open
    return torch_.compile(function, mode="max-autotune-no-cudagraphs", dynamic=dynamic)


def operands(shape: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A [M, K], B [N, K] and bias [N], bf16, uniform in [-0.5, 0.5]."""
    M, N, K = shape
    generator = torch.Generator("cuda").manual_seed(0)

    def uniform(*sizes: int) -> torch.Tensor:
        return (torch.rand(sizes, generator=generator, device="cuda") - 0.5).bfloat16()

    return uniform(M, K), uniform(N, K), uniform(N)


def call(function: Function, shape: tuple[int, ...], dynamic: bool, rounds: int) -> str:
    """One line of results. Raises TilepassError if the result is wrong."""
    inputs = operands(shape)
    faster = compiled(function, dynamic)
    found = faster(*inputs).float()
    exact = function(*(each.float() for each in inputs))
    error = float(((found - exact).abs() / (1 + exact.abs())).max())
    if not error < TOLERANCE:
        raise TilepassError(f"the result of {function.__name__} is wrong by {error:.1e}")
    calls = [partial(each, *inputs) for each in (faster, function)]
    ours, eager = medians_in_turn(calls, rounds)
    return f"compiled {ours:.1f} us, eager {eager:.1f} us, ratio {eager / ours:.3f}"


def main(arguments: Sequence[str]) -> int:
    """Make the calls; returns the exit status. Raises TilepassError."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shapes", default="8192x8192x512,4096x4096x4096", metavar="MxNxK,...")
    parser.add_argument("--dynamic", action="store_true", help="sizes unknown to the compiler")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    shapes: str = options.shapes
    if not torch.cuda.is_available():
        raise TilepassError("no GPU: torch.compile makes Triton kernels on one only")
    for text in shapes.split(","):
        for function in (product, product_bias_gelu):
            line = call(function, parse_shape(text), options.dynamic, options.rounds)
            print(f"{text} {function.__name__}: {line}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(run_guarded(main, sys.argv[1:]))
