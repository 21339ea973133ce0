"""Every kernel on a GPU: outputs poisoned, three seeds, repeated launches compared bit by bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from repeated_launches import launches_that_differ

from tilepass.activate import enabled
from tilepass.kernels import get_workload
from tilepass.kernels.workload import Shape

pytestmark = pytest.mark.gpu

SEEDS = (0, 1, 2)
# One element; one tile; nothing a multiple of the tile; no K; fewer tiles than SMs; more of them.
MATMUL_SHAPES = ((1, 1, 1), (128, 256, 64), (129, 257, 65), (300, 520, 0), (640, 1000, 200))
MANY_TILES = (2050, 4100, 136)
EPILOGUES = ("none", "bias", "bias_gelu", "residual")


def check(kernel: str, shape: Shape, repetitions: int = 3, **fields: Any) -> None:
    """Each seed's first launch against the reference, the others against the first."""
    workload = get_workload(kernel)
    config = workload.config_for(shape, **fields)
    for seed in SEEDS:
        inputs = workload.make_inputs(shape, seed, "cuda", config)
        launch = workload.prepare(inputs, config)
        launch()
        problem = workload.check(launch, inputs)
        assert problem is None, f"seed {seed}: {problem}"
        assert workload.promises_bit_equality
        changed = launches_that_differ(launch, repetitions)
        assert not changed, f"seed {seed}: launches {changed} of {repetitions} differ"


@pytest.mark.parametrize("flatten", [True, False])
@pytest.mark.parametrize("shape", [*MATMUL_SHAPES, MANY_TILES])
def test_persistent_matmul_shapes(shape: Shape, flatten: bool) -> None:
    check("persistent_matmul", shape, flatten=flatten)


@pytest.mark.parametrize("shape", [(300, 520, 200), (300, 520, 0), MANY_TILES])
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_persistent_matmul_epilogues(epilogue: str, shape: Shape) -> None:
    check("persistent_matmul", shape, epilogue=epilogue)


@pytest.mark.parametrize("dtype", ["fp16", "fp8e4m3"])
@pytest.mark.parametrize("epilogue", ["none", "residual"])
def test_persistent_matmul_types(dtype: str, epilogue: str) -> None:
    check("persistent_matmul", (300, 520, 208), dtype=dtype, epilogue=epilogue)


@pytest.mark.parametrize("descriptors", ["host", "device"])
@pytest.mark.parametrize("store", ["tma", "pointer"])
@pytest.mark.parametrize("shape", [(300, 521, 200), (129, 257, 0)])
def test_persistent_matmul_descriptors(shape: Shape, store: str, descriptors: str) -> None:
    check("persistent_matmul", shape, descriptors=descriptors, store=store, epilogue="residual")


@pytest.mark.parametrize(("tile", "warps"), [((64, 128, 64), 4), ((256, 128, 64), 8)])
def test_persistent_matmul_tiles(tile: tuple[int, int, int], warps: int) -> None:
    fields = dict(zip(("block_m", "block_n", "block_k"), tile, strict=True))
    check("persistent_matmul", MANY_TILES, num_warps=warps, **fields)


@pytest.mark.parametrize("shape", [(300, 520, 200), (300, 520, 0), MANY_TILES])
@pytest.mark.parametrize(
    "fields",
    [
        {"finish": "silu", "a_layout": "k_outer"},
        {"finish": "scale_clamp", "epilogue": "residual", "dtype": "fp16"},
        {"finish": "row_bias", "output": "fp8e4m3", "b_layout": "k_outer"},
        {"keep_product": True, "output": "fp32"},
    ],
)
def test_persistent_matmul_further_epilogues(fields: dict[str, Any], shape: Shape) -> None:
    check("persistent_matmul_epilogues", shape, **fields)


@pytest.mark.parametrize("outer_loop", [True, False])
@pytest.mark.parametrize("shape", MATMUL_SHAPES)
def test_matmul(shape: Shape, outer_loop: bool) -> None:
    check("matmul", shape, outer_loop=outer_loop)


@pytest.mark.parametrize("epilogue", EPILOGUES[1:])
def test_matmul_epilogues(epilogue: str) -> None:
    check("matmul", (300, 520, 200), epilogue=epilogue)


@pytest.mark.parametrize("occupancy", [1, 2])
@pytest.mark.parametrize("m", [1, 16, 64, 100, 128, 1024])
def test_mxfp4_matmul(m: int, occupancy: int) -> None:
    check("mxfp4_matmul", (m, 1160, 608), occupancy=occupancy, flatten=False)


@pytest.mark.parametrize("occupancy", [1, 2])
@pytest.mark.parametrize("m", [16, 256])
def test_mxfp4_matmul_flattened(m: int, occupancy: int) -> None:
    check("mxfp4_matmul", (m, 5760, 512), occupancy=occupancy, flatten=True)


def test_mxfp4_matmul_without_k() -> None:
    check("mxfp4_matmul", (64, 520, 0), flatten=False)
    check("mxfp4_matmul", (64, 520, 0), flatten=False, split_k=4)


@pytest.mark.parametrize(
    ("shape", "split_k"),
    [
        *(((m, 5760, 2880), 4) for m in (16, 64, 100, 128, 256, 1024)),
        ((128, 5760, 2880), 8),
        ((256, 8192, 8192), 2),
    ],
)
@pytest.mark.parametrize("occupancy", [1, 2])
def test_mxfp4_split_k(shape: Shape, split_k: int, occupancy: int) -> None:
    """A race shows as NaN, since partial sums are poisoned before each launch, or as other bits."""
    check("mxfp4_matmul", shape, 200, occupancy=occupancy, split_k=split_k, flatten=False)


@pytest.mark.parametrize("occupancy", [1, 2])
def test_fix_dot_wait_replaces_the_guard(occupancy: int) -> None:
    with enabled("fix-dot-wait", remarks="none"):
        options = {"occupancy": occupancy, "split_k": 4, "flatten": False, "guard": False}
        check("mxfp4_matmul", (256, 8192, 8192), 40, **options)


def test_split_k_counters_survive_graph_replays() -> None:
    """Back-to-back launches without the host in between, as the timing does them."""
    workload = get_workload("mxfp4_matmul")
    shape = (128, 5760, 2880)
    config = workload.config_for(shape, occupancy=2, split_k=4, flatten=False)
    inputs = workload.make_inputs(shape, 0, "cuda", config)
    launch = workload.prepare(inputs, config)
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(20):
            launch()
    for _ in range(20):
        launch.poison()
        graph.replay()
        torch.cuda.synchronize()
        assert workload.check(launch, inputs) is None


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("shape", [(1, 1), (7, 781), (300, 8192), (3, 32768)])
def test_softmax(shape: Shape, dtype: str) -> None:
    check("softmax", shape, dtype=dtype)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 64), (2, 3, 200, 64), (1, 4, 1000, 128), (1, 2, 65, 40)]
)
def test_attention(shape: Shape, causal: bool) -> None:
    check("attention", shape, causal=causal)


@pytest.mark.parametrize("flatten", [True, False])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 1), (8, 3000, 520, 200), (64, 100, 300, 72), (4, 300, 520, 0)]
)
def test_grouped_matmul(shape: Shape, flatten: bool) -> None:
    check("grouped_matmul", shape, flatten=flatten)
