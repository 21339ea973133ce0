"""The CuTe kernels on a GPU: poisoned outputs, three seeds, repeated launches bit by bit, and the
same bits with and without `cute-zero-mma`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from repeated_launches import bits, launches_that_differ

from tilepass.activate import enabled
from tilepass.kernels.cute_workload import get_cute_workload
from tilepass.kernels.workload import Shape

pytestmark = [pytest.mark.gpu, pytest.mark.traces]

SEEDS = (0, 1, 2)
PASS = "cute-zero-mma"
# One token; one chunk; a tail of one token; more chunks than one; many heads and sequences.
GDN_SHAPES = ((1, 1, 1), (1, 64, 4), (2, 65, 3), (3, 300, 2), (40, 1024, 16))
ATTENTION_SHAPES = ((1, 1, 1), (1, 64, 2), (2, 65, 1), (1, 1000, 3), (8, 512, 16))
# The last: more tiles of rows than CTAs of a panel.
BLOCK_DIAGONAL_SHAPES = ((1, 128), (128, 128), (300, 384), (128 * 70 + 5, 1024))
DTYPES = ("bf16", "fp16")


def check(kernel: str, shape: Shape, repetitions: int = 5, **fields: Any) -> None:
    """Each seed's first launch against the reference, the others against the first."""
    workload = get_cute_workload(kernel)
    config = workload.config_for(shape, **fields)
    compiled = workload.compile(config)
    for seed in SEEDS:
        inputs = workload.make_inputs(shape, seed, "cuda", config)
        launch = workload.launch_with(inputs, config, lambda: compiled)
        launch()
        problem = workload.check(launch, inputs)
        assert problem is None, f"seed {seed}: {problem}"
        expected = workload.reference(inputs)
        for index, (output, want) in enumerate(zip(launch.outputs, expected, strict=True)):
            worst = float((output.float() - want).abs().max())
            print(f"{kernel} {shape} {fields} seed {seed} output {index}: error {worst:.2e}")
        changed = launches_that_differ(launch, repetitions)
        assert not changed, f"seed {seed}: launches {changed} of {repetitions} differ"


def check_pass(kernel: str, shape: Shape, **fields: Any) -> None:
    """Off, on, off: the stock binary, another one, the stock one; the same bits from all."""
    workload = get_cute_workload(kernel)
    config = workload.config_for(shape, **fields)
    inputs = workload.make_inputs(shape, 0, "cuda", config)
    stock = workload.compile(config)
    with enabled(PASS, remarks="none"):
        rewritten = workload.compile(config)
    again = workload.compile(config)
    assert again.ptx == stock.ptx
    assert rewritten.ptx.count("mma.sync") < stock.ptx.count("mma.sync")
    results: list[list[torch.Tensor]] = []
    for compiled in (stock, rewritten):
        launch = workload.launch_with(inputs, config, lambda compiled=compiled: compiled)
        launch()
        problem = workload.check(launch, inputs)
        assert problem is None, problem
        results.append([bits(output).clone() for output in launch.outputs])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", GDN_SHAPES)
def test_gdn_prefill(shape: Shape, dtype: str) -> None:
    check("gdn_prefill", shape, dtype=dtype)


@pytest.mark.parametrize("initial", [True, False])
def test_gdn_prefill_of_ragged_sequences(initial: bool) -> None:
    check("gdn_prefill", (17, 200, 3), lengths="ragged", initial=initial)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 64, 4), (3, 300, 2)])
def test_gdn_prefill_with_the_pass(shape: Shape, dtype: str) -> None:
    check_pass("gdn_prefill", shape, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", ATTENTION_SHAPES)
def test_causal_attention(shape: Shape, dtype: str) -> None:
    check("causal_attention", shape, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 64, 4), (1, 300, 2)])
def test_causal_attention_with_the_pass(shape: Shape, dtype: str) -> None:
    check_pass("causal_attention", shape, dtype=dtype)


@pytest.mark.parametrize("block", [16, 32, 64])
@pytest.mark.parametrize("shape", BLOCK_DIAGONAL_SHAPES)
def test_block_diagonal_matmul(shape: Shape, block: int) -> None:
    check("block_diagonal_matmul", shape, block=block)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [16, 32, 64])
def test_block_diagonal_matmul_with_the_pass(block: int, dtype: str) -> None:
    check_pass("block_diagonal_matmul", (300, 384), block=block, dtype=dtype)
