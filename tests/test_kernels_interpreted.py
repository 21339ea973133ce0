"""Every kernel executed on the CPU by Triton's interpreter, edge shapes included.

The interpreter knows no asynchrony, no register operands and no races: those are for
test_kernels_gpu.py. What it lacks otherwise, kernels_interpreter.py adds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

Case = tuple[str, tuple[int, ...], str]
TILE = "block_m=16,block_n=32,block_k=16,"
# Sizes that are not multiples, one tile, one element, no K, several tiles for a program.
MATMUL_SHAPES = ((33, 70, 40), (16, 32, 16), (1, 1, 1), (35, 71, 0), (70, 100, 50))

CASES: dict[str, list[Case]] = {
    "persistent_matmul": [
        *(("persistent_matmul", shape, TILE) for shape in MATMUL_SHAPES),
        *(
            ("persistent_matmul", shape, f"{TILE}epilogue={epilogue},dtype={dtype},{variant}")
            for shape, variant in (
                ((33, 71, 41), "programs=1"),
                ((33, 71, 0), "descriptors=device"),
                ((33, 71, 41), "descriptors=device,store=pointer"),
                ((33, 71, 41), "store=pointer,flatten=off"),
            )
            for epilogue, dtype in (
                ("none", "fp8e4m3"),
                ("bias", "fp16"),
                ("bias_gelu", "bf16"),
                ("residual", "bf16"),
            )
        ),
    ],
    "persistent_matmul_epilogues": [
        ("persistent_matmul_epilogues", shape, f"{TILE}{variant}")
        for shape, variant in (
            ((33, 71, 41), "finish=silu,epilogue=bias,programs=1"),
            ((33, 71, 41), "finish=scale_clamp,epilogue=residual"),
            ((33, 71, 0), "finish=row_bias,keep_product=on"),
            ((33, 71, 41), "finish=row_bias,output=fp8e4m3"),
            ((33, 71, 41), "a_layout=k_outer,b_layout=k_outer,dtype=fp16,output=fp32"),
            ((33, 71, 41), "b_layout=k_outer,epilogue=bias_gelu,keep_product=on"),
        )
    ],
    "matmul": [
        ("matmul", shape, f"{TILE}epilogue={epilogue},outer_loop={outer}")
        for outer in ("on", "off")
        for shape, epilogue in zip(
            MATMUL_SHAPES, ("none", "bias", "bias_gelu", "residual", "none"), strict=True
        )
    ],
    "mxfp4_matmul": [
        ("mxfp4_matmul", shape, f"block_m=16,block_n=32,block_k={block_k},{variant}")
        for shape, block_k, variant in (
            ((20, 40, 100), 64, ""),
            ((20, 40, 300), 128, "programs=1"),
            ((16, 32, 600), 256, ""),
            ((1, 1, 32), 64, ""),
            ((20, 40, 0), 128, ""),
            ((20, 40, 0), 128, "split_k=2"),
            ((20, 40, 600), 128, "split_k=4"),
            ((33, 40, 129), 64, "split_k=8,programs=3"),
        )
    ],
    "softmax": [
        ("softmax", (3, 781), ""),
        ("softmax", (1, 1), "dtype=fp32"),
        ("softmax", (5, 64), "dtype=fp16"),
    ],
    "attention": [
        ("attention", shape, f"block_m={m},block_n={n},causal={causal}")
        for shape in ((1, 2, 50, 24), (2, 1, 64, 16), (1, 1, 1, 16))
        for m, n in ((16, 32), (32, 16))
        for causal in ("on", "off")
    ],
    "grouped_matmul": [
        ("grouped_matmul", shape, f"block_m=16,block_n=16,block_k=16,{variant}")
        for shape, variant in (
            ((4, 50, 40, 33), ""),
            ((8, 3, 40, 0), ""),  # more groups than rows: some are empty
            ((1, 30, 40, 20), "dtype=fp16,programs=1"),
        )
    ],
}


@pytest.fixture(scope="module")
def results() -> dict[str, list[tuple[object, str | None]]]:
    """Each kernel's cases and what is wrong with them, from one process."""
    requests: dict[str, list[object]] = {
        kernel: [
            [name, shape, dict(part.split("=") for part in options.split(",") if part), seed]
            for name, shape, options in cases
            for seed in (0, 1)
        ]
        for kernel, cases in CASES.items()
    }
    script = Path(__file__).with_name("kernels_interpreter.py")
    process = subprocess.run(
        [sys.executable, str(script)],
        input=json.dumps([request for each in requests.values() for request in each]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    lines = iter(process.stdout.splitlines())
    found: dict[str, list[tuple[object, str | None]]] = {
        kernel: [(request, json.loads(next(lines))) for request in each]
        for kernel, each in requests.items()
    }
    assert next(lines, None) is None
    return found


@pytest.mark.parametrize("kernel", CASES)
def test_outputs_agree_with_the_reference(
    kernel: str, results: dict[str, list[tuple[object, str | None]]]
) -> None:
    problems = [f"{request}: {problem}" for request, problem in results[kernel] if problem]
    assert not problems, "\n".join(problems)
