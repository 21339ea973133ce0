"""A program for the GPU tests: it launches specialized kernels that may return early.

usage: python -m tests.gpu_early_returns_program

Programs with tiles, without, and of empty matrices; 20 launches of each are compared with the fp32
product, what is beyond the matrix with what was there. Prints one line for each kernel, and exits
non-zero where anything is wrong. A warp that is left behind hangs it.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from tests.ws_early_kernels import leaving
from tilepass.activate import enabled
from tilepass.kernels._tensors import use_torch_allocator

torch: Any = importlib.import_module("torch")

LAUNCHES = 20
# M, N, K: nothing to compute; one tile; edges; more tiles than programs. All multiples of 16, so
# that a kernel is compiled once.
SIZES = ((0, 256, 64), (256, 0, 64), (64, 64, 128), (208, 336, 208), (2000, 1552, 320))
PROGRAMS = (1, 132, 1000)
BEYOND = 7.0
KERNELS = [
    (way, masked, scheme, warps, block)
    for way in ("empty", "twice")
    for masked in (False, True)
    for scheme in ("cooperative", "ping-pong", "split-consumer")
    for warps, block in ((4, 64), (8, 128))
]


def wrong(
    kernel: tuple[str, bool, str, int, int], size: tuple[int, int, int], programs: int
) -> str:
    """What is wrong with the launches of a kernel on so many programs; nothing if all is right."""
    way, masked, scheme, warps, block = kernel
    M, N, K = size
    generator = torch.Generator("cuda").manual_seed(0)
    a, b = (
        (torch.rand((rows, K), generator=generator, device="cuda") - 0.5).half() for rows in (M, N)
    )
    expected = torch.full((M + 64, max(N, 8)), BEYOND, device="cuda")
    expected[:M, :N] = a.float() @ b.float().T
    for _ in range(LAUNCHES):
        c = torch.full_like(expected, BEYOND, dtype=torch.float16)
        with enabled(f"epilogue-warp-specialize{{scheme={scheme}}}", remarks="none"):
            compiled = leaving[(programs,)](
                a, b, c, M, N, K, BLOCK=block, WAY=way, MASKED=masked, num_warps=warps
            )
        if "ttg.warp_specialize" not in compiled.asm["ttgir"]:
            return "not specialized"
        # Rows are N apart: with N = 0 there is nothing to look at but what was there.
        error = float((c.float() - expected).abs().max())
        if not error < 2e-2:
            return f"wrong by {error:.1e}"
    return ""


def main() -> int:
    """The exit status."""
    use_torch_allocator(torch.device("cuda"))
    failed = False
    for kernel in KERNELS:
        found = {
            f"{size} on {programs}": problem
            for size in SIZES
            for programs in PROGRAMS
            if (problem := wrong(kernel, size, programs))
        }
        print(*kernel, found or "right", flush=True)
        failed |= bool(found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
