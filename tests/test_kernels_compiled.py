"""What the compiler makes of the configurations that are measured: they fit an H100/H200 (sm_90),
no register is spilled, and none is overwritten that an unfinished wgmma reads."""

from __future__ import annotations

import re
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tilepass.binary.artifacts import artifacts_of
from tilepass.binary.figures import kernel_figures
from tilepass.binary.register_hazards import find_register_hazards
from tilepass.binary.sass import listing
from tilepass.core.versions import triton_version
from tilepass.kernels import get_workload
from tilepass.kernels.workload import Shape

SHARED_MEMORY = 233472
"""Bytes of shared memory on an SM of sm_90 (CUDA programming guide, compute capabilities)."""
RESERVED = 1024
"""Of these, what the system keeps for each block."""
SMALL_M: list[Shape] = [(m, 8192, 8192) for m in (16, 64, 128, 1024)]

CASES: list[tuple[str, Shape, dict[str, Any]]] = [
    *(("persistent_matmul", (8192, 8192, 8192), {"flatten": f}) for f in (True, False)),
    *(
        ("persistent_matmul", (8192, 8192, 512), {"epilogue": e})
        for e in ("bias", "bias_gelu", "residual")
    ),
    ("persistent_matmul", (8192, 8192, 512), {"dtype": "fp8e4m3"}),
    ("persistent_matmul", (8192, 8192, 512), {"descriptors": "device"}),
    ("persistent_matmul", (8192, 8192, 512), {"store": "pointer"}),
    *(
        ("persistent_matmul_epilogues", (8192, 8192, 512), fields)
        for fields in (
            {"finish": "silu", "b_layout": "k_outer"},
            {"finish": "scale_clamp", "epilogue": "residual"},
            {"keep_product": True, "output": "fp32", "a_layout": "k_outer"},
        )
    ),
    ("matmul", (4096, 4096, 4096), {}),
    *(
        ("mxfp4_matmul", shape, {"occupancy": occupancy, "flatten": False, "split_k": split_k})
        for shape in SMALL_M
        for occupancy, split_k in ((1, 1), (2, 1), (1, 4), (2, 4))
    ),
    ("mxfp4_matmul", SMALL_M[0], {"flatten": True}),
    ("softmax", (64, 32768), {"dtype": "fp32"}),
    ("attention", (4, 32, 4096, 128), {"causal": True}),
    ("grouped_matmul", (8, 8192, 4096, 4096), {}),
]


@pytest.mark.parametrize(("kernel", "shape", "fields"), CASES)
def test_fits_without_spills_or_hazards(
    kernel: str, shape: Shape, fields: dict[str, Any], tmp_path: Path
) -> None:
    from triton.backends.compiler import GPUTarget

    workload = get_workload(kernel)
    config = workload.config_for(shape, **fields)
    compiled = workload.compile(config, GPUTarget("cuda", 90, 32))
    stack, registers = stack_and_registers(compiled.asm["cubin"], tmp_path)
    blocks = fields.get("occupancy", 1)
    assert stack == 0
    assert blocks * (compiled.metadata.shared + RESERVED) <= SHARED_MEMORY
    assert blocks * registers * config.num_warps * 32 <= 65536
    assert not find_register_hazards(listing(artifacts_of(compiled)))


@pytest.mark.parametrize("outer_loop", [False, True])
def test_only_the_plain_matmul_is_serialized(outer_loop: bool) -> None:
    """By the ptxas of Triton 3.6; that is why comparisons are made with the one-trip form."""
    from triton.backends.compiler import GPUTarget

    workload = get_workload("matmul")
    config = workload.config_for((4096, 4096, 4096), outer_loop=outer_loop)
    figures = kernel_figures(workload.compile(config, GPUTarget("cuda", 90, 32)))
    assert figures.name == ("matmul_one_trip" if outer_loop else "matmul")
    assert figures.serialized == (triton_version().version < (3, 7) and not outer_loop)


def stack_and_registers(cubin: bytes, folder: Path) -> tuple[int, int]:
    """Bytes of stack (where spilled registers go) and registers of a thread, by cuobjdump."""
    file = folder / "kernel.cubin"
    file.write_bytes(cubin)
    triton: Any = import_module("triton")
    listing = subprocess.run(
        [triton.knobs.nvidia.cuobjdump.path, "-res-usage", str(file)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", listing)
    assert found, listing
    return int(found[2]), int(found[1])
