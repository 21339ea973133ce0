"""The contract of kernel files, checked on the CPU: lookup, inputs, references, refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from tilepass.core.errors import TilepassError
from tilepass.core.options import convert
from tilepass.kernels import get_workload, workload_names
from tilepass.kernels.workload import Inputs, Tolerance, mismatch

SMALL = {
    "attention_triton": (1, 2, 40, 24),
    "grouped_matmul_triton": (4, 50, 24, 40),
    "matmul_triton": (33, 40, 24),
    "mxfp4_matmul_triton": (20, 40, 100),
    "persistent_matmul_epilogues_triton": (33, 40, 24),
    "persistent_matmul_triton": (33, 40, 24),
    "softmax_triton": (5, 37),
}
ALL = pytest.mark.parametrize("name", sorted(SMALL))


def test_every_kernel_file_is_known() -> None:
    assert sorted(SMALL) == sorted(workload_names())


@pytest.mark.parametrize(
    "name", ["persistent_matmul_triton", "persistent_matmul", "persistent-matmul"]
)
def test_lookup_takes_short_names(name: str) -> None:
    assert get_workload(name).name == "persistent_matmul_triton"


def test_lookup_error_names_what_is_near() -> None:
    with pytest.raises(TilepassError, match=r"no kernel 'softmx'.*'softmax_triton'"):
        get_workload("softmx")


@ALL
def test_inputs_follow_the_seed(name: str) -> None:
    workload = get_workload(name)
    first, again, other = (workload.make_inputs(SMALL[name], s, "cpu") for s in (3, 3, 4))
    for key, tensor in first.tensors.items():
        assert torch.equal(tensor, again.tensors[key])
    assert any(not torch.equal(t, other.tensors[k]) for k, t in first.tensors.items())


@ALL
def test_outputs_are_poisoned_and_checked(name: str) -> None:
    workload = get_workload(name)
    inputs = workload.make_inputs(SMALL[name], 0, "cpu")
    launch = workload.prepare(inputs, inputs.config)
    assert all(torch.isnan(output).all() for output in launch.outputs)
    assert "NaN" in str(workload.check(launch, inputs))
    for output, expected in zip(launch.outputs, workload.reference(inputs), strict=True):
        assert output.shape == expected.shape
        assert expected.dtype == torch.float32
        output.copy_(expected)
    assert workload.check(launch, inputs) is None


@ALL
def test_one_wrong_element_is_found(name: str) -> None:
    workload = get_workload(name)
    inputs = workload.make_inputs(SMALL[name], 0, "cpu")
    launch = workload.prepare(inputs, inputs.config)
    (output,), (expected,) = launch.outputs, workload.reference(inputs)
    output.copy_(expected)
    output[-1, -1] += 0.1 + 0.1 * abs(float(expected[-1, -1]))
    last = tuple(size - 1 for size in output.shape)
    assert f"1 of {output.numel()} elements are wrong (0 NaN), the first at {last}" in str(
        workload.check(launch, inputs)
    )


@ALL
def test_source_binds_every_argument(name: str) -> None:
    workload = get_workload(name)
    for shape in workload.default_shapes:
        config = workload.config_for(shape)
        source, options = workload.ast_source(config)
        arguments = workload.jit_function(config).arg_names
        assert list(source.signature) == list(arguments)
        constants = {arguments[path[0]] for path in source.constants}
        assert constants == {n for n, kind in source.signature.items() if kind == "constexpr"}
        assert options["num_warps"] == config.num_warps
        assert workload.flops(shape, config) > 0
        assert workload.bytes_moved(shape, config) > 0


@ALL
def test_wrong_number_of_sizes(name: str) -> None:
    with pytest.raises(TilepassError, match=rf"{name}: shape 3 is not "):
        get_workload(name).make_inputs((3,), 0, "cpu")


@ALL
def test_empty_output(name: str) -> None:
    with pytest.raises(TilepassError, match=name):
        get_workload(name).make_inputs(tuple(0 for _ in SMALL[name]), 0, "cpu")


def test_no_gpu_is_an_error() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(TilepassError, match="torch finds no GPU"):
        get_workload("softmax").make_inputs((4, 4), 0)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"block_mm": "3"}, "no option 'block_mm'; did you mean 'block_m'"),
        ({"block_m": "many"}, "option 'block_m': 'many' is not an integer"),
        ({"flatten": "maybe"}, "option 'flatten': 'maybe' is not true or false"),
        ({"dtype": "int4"}, "option 'dtype': 'int4' is not one of bf16, fp16, fp8e4m3"),
    ],
)
def test_option_errors(texts: dict[str, str], message: str) -> None:
    with pytest.raises(TilepassError, match=message):
        get_workload("persistent_matmul").config_from((8, 8, 8), texts)


def test_options_from_text() -> None:
    config = get_workload("persistent_matmul").config_from(
        (8, 8, 8), {"block-m": "64", "flatten": "off", "programs": "none", "epilogue": "bias"}
    )
    assert (config.block_m, config.flatten, config.programs) == (64, False, None)
    assert config.epilogue == "bias"
    assert convert("2", int | None) == 2


def matmul_inputs(**fields: Any) -> tuple[Any, Any, Inputs]:
    workload = get_workload("persistent_matmul")
    config = workload.config_for((32, 32, 24), **fields)
    return workload, config, workload.make_inputs((32, 32, 24), 0, "cpu", config)


def test_strides_that_tma_cannot_address() -> None:
    workload, config, inputs = matmul_inputs()
    tight = torch.zeros(32 * 28, dtype=torch.bfloat16).as_strided((32, 24), (28, 1))
    inputs = replace(inputs, tensors={**inputs.tensors, "a": tight})
    with pytest.raises(TilepassError, match=r"operand 'a': TMA needs a row stride .* this is 56"):
        workload.prepare(inputs, config)


def test_columns_that_are_not_contiguous() -> None:
    workload, config, inputs = matmul_inputs()
    turned = torch.zeros(24, 32, dtype=torch.bfloat16).T
    inputs = replace(inputs, tensors={**inputs.tensors, "b": turned})
    with pytest.raises(TilepassError, match="operand 'b': TMA needs the last dimension contiguous"):
        workload.prepare(inputs, config)


def test_address_that_is_not_aligned() -> None:
    workload, config, inputs = matmul_inputs()
    shifted = torch.zeros(32 * 24 + 1, dtype=torch.bfloat16)[1:].view(32, 24)
    inputs = replace(inputs, tensors={**inputs.tensors, "a": shifted})
    with pytest.raises(TilepassError, match="TMA needs a base address aligned to 16 bytes"):
        workload.prepare(inputs, config)


@pytest.mark.parametrize("size", [8, 48, 512])
def test_tiles_that_tma_cannot_load(size: int) -> None:
    workload, config, inputs = matmul_inputs()
    with pytest.raises(
        TilepassError, match=f"block_n is a power of two from 16 to 256, not {size}"
    ):
        workload.prepare(inputs, replace(config, block_n=size))


def test_inputs_of_another_epilogue() -> None:
    workload, config, inputs = matmul_inputs(epilogue="bias")
    with pytest.raises(TilepassError, match="inputs made for bf16, epilogue bias"):
        workload.prepare(inputs, replace(config, epilogue="none"))


def test_inputs_of_another_kernel() -> None:
    softmax = get_workload("softmax")
    with pytest.raises(TilepassError, match="made for another kernel"):
        get_workload("matmul").reference(softmax.make_inputs((4, 4), 0, "cpu"))


@pytest.mark.parametrize("block", [32, 48, 65536])
def test_softmax_rows_that_do_not_fit(block: int) -> None:
    workload = get_workload("softmax")
    inputs = workload.make_inputs((3, 40), 0, "cpu")
    with pytest.raises(TilepassError, match=f"block is a power of two from N=40 .* not {block}"):
        workload.prepare(inputs, workload.config_for((3, 40), block=block))


def test_head_dimension_larger_than_its_block() -> None:
    workload = get_workload("attention")
    inputs = workload.make_inputs((1, 1, 32, 40), 0, "cpu")
    with pytest.raises(TilepassError, match="block_d is at least D=40"):
        workload.prepare(inputs, workload.config_for((1, 1, 32, 40), block_d=32))


def test_padding_holds_nan() -> None:
    _, _, inputs = matmul_inputs()
    a = get_workload("matmul").make_inputs((4, 4, 5), 0, "cpu").tensors["a"]
    assert a.stride(0) == 8
    assert torch.isnan(a.as_strided((4, 3), (8, 1), 5)).all()
    assert not torch.isnan(inputs.tensors["a"]).any()


def test_mismatch_counts_nan_and_shapes() -> None:
    exact = Tolerance(0.0, 0.0)
    one = torch.ones(2, 2)
    assert mismatch(one, one, exact) is None
    assert "shape (2, 2), expected (2, 3)" in str(mismatch(one, torch.ones(2, 3), exact))
    assert "4 of 4 elements are wrong (4 NaN)" in str(mismatch(one * math.nan, one, exact))


@pytest.mark.parametrize(
    ("m", "occupancy", "tile"),
    [
        (16, 1, (16, 128, 256, 7)),
        (64, 1, (64, 256, 128, 5)),
        (128, 1, (128, 256, 128, 3)),
        (256, 1, (256, 128, 64, 4)),
        (1024, 1, (256, 128, 64, 4)),
        (16, 2, (16, 128, 256, 4)),
        (64, 2, (64, 128, 128, 4)),
        (1024, 2, (128, 128, 64, 4)),
    ],
)
def test_mxfp4_tiles(m: int, occupancy: int, tile: tuple[int, ...]) -> None:
    config = get_workload("mxfp4_matmul").config_for((m, 8192, 8192), occupancy=occupancy)
    assert (config.block_m, config.block_n, config.block_k, config.num_stages) == tile
    assert config.options().get("maxnreg") == {1: None, 2: 128}[occupancy]


def test_mxfp4_refuses_other_steps_and_splits() -> None:
    workload = get_workload("mxfp4_matmul")
    inputs = workload.make_inputs((16, 32, 64), 0, "cpu")
    for fields, message in (
        ({"block_k": 32}, "block_k is 64, 128 or 256, not 32"),
        ({"split_k": 0}, "split_k is at least 1, not 0"),
    ):
        with pytest.raises(TilepassError, match=message):
            workload.prepare(inputs, workload.config_for((16, 32, 64), **fields))
    with pytest.raises(TilepassError, match="occupancy is 1 or 2, not 3"):
        workload.config_for((16, 32, 64), occupancy=3)


def test_mxfp4_split_is_not_flattened() -> None:
    workload = get_workload("mxfp4_matmul")
    config = workload.config_from((16, 32, 64), {"split_k": "4"})
    assert not config.flatten
    with pytest.raises(TilepassError, match="split_k above 1 needs flatten=off"):
        workload.configure(config, {"flatten": "on"})
