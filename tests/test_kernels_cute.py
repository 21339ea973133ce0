"""The CuTe kernels without a GPU: their contract, and their PTX executed on the CPU."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from cute_emulation import Outputs, differing_bits, execute
from cute_evidence import assert_chain, chains
from ptx_memory import KernelFault

from tilepass.activate import enabled
from tilepass.cli.dump_ir import main as dump_ir
from tilepass.core.errors import TilepassError
from tilepass.kernels.cute_workload import (
    CompiledCute,
    CuteConfig,
    cute_workload_names,
    get_cute_workload,
)
from tilepass.kernels.workload import Inputs, Shape, mismatch

pytestmark = pytest.mark.traces

ARCH = "sm_90a"
SMALL: dict[str, Shape] = {
    "block_diagonal_matmul_cute": (130, 256),
    "causal_attention_cute": (1, 65, 2),
    "gdn_prefill_cute": (2, 65, 1),
}
# What each is compiled with here: both types in all, without compiling everything twice.
DTYPE = {
    "block_diagonal_matmul_cute": "bf16",
    "causal_attention_cute": "fp16",
    "gdn_prefill_cute": "bf16",
}


@cache
def compiled(name: str) -> CompiledCute:
    workload = get_cute_workload(name)
    return workload.compile(workload.config_for(SMALL[name], dtype=DTYPE[name]), ARCH)


@cache
def rewritten(name: str, pipeline: str = "cute-zero-mma") -> tuple[str, tuple[str, ...]]:
    """The PTX with a pipeline in force, and its remarks."""
    workload = get_cute_workload(name)
    config = workload.config_for(SMALL[name], dtype=DTYPE[name])
    with enabled(pipeline, remarks="none") as session:
        ptx = workload.compile(config, ARCH).ptx
    return ptx, tuple(remark.format() for remark in session.remarks)


def problem_setup(name: str, shape: Shape, seed: int = 0) -> tuple[Inputs, CuteConfig, str]:
    """Inputs, their configuration and the PTX for it."""
    workload = get_cute_workload(name)
    config = workload.config_for(shape, dtype=DTYPE[name])
    inputs = workload.make_inputs(shape, seed, "cpu", config)
    return inputs, config, compiled(name).ptx


def wrong(name: str, inputs: Inputs, outputs: Outputs) -> str | None:
    """What is wrong with the outputs."""
    workload = get_cute_workload(name)
    tolerance = workload.tolerance(inputs)
    pairs = zip(outputs, workload.reference(inputs), strict=True)
    found = [mismatch(output, want, tolerance) for output, want in pairs]
    return next((problem for problem in found if problem is not None), None)


def test_every_workload_is_tested() -> None:
    assert sorted(SMALL) == sorted(cute_workload_names())


@pytest.mark.parametrize("name", ["gdn-prefill", "gdn_prefill_cute", "gdn-prefill-cute"])
def test_names(name: str) -> None:
    assert get_cute_workload(name).name == "gdn_prefill_cute"


def test_unknown_name() -> None:
    with pytest.raises(TilepassError, match=r"no CuTe kernel 'gdn_prefil'.*gdn_prefill_cute"):
        get_cute_workload("gdn_prefil")


def test_the_contract_is_found_without_cutlass_or_torch() -> None:
    program = (
        "import sys; import tilepass.kernels.cute_workload; "
        "print(*(name for name in ('cutlass', 'torch', 'triton') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_kernel_files_do_not_import_torch() -> None:
    imports = "; ".join(f"import tilepass.kernels.{name}" for name in SMALL)
    program = f"import sys; {imports}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr


@pytest.mark.parametrize("name", SMALL)
def test_inputs_follow_the_seed(name: str) -> None:
    workload = get_cute_workload(name)
    first, same, other = (workload.make_inputs(SMALL[name], s, "cpu") for s in (0, 0, 1))
    assert all(torch.equal(x, same.tensors[key]) for key, x in first.tensors.items())
    assert any(not torch.equal(x, other.tensors[key]) for key, x in first.tensors.items())


@pytest.mark.parametrize("name", SMALL)
def test_a_shape_that_does_not_fit(name: str) -> None:
    workload = get_cute_workload(name)
    with pytest.raises(TilepassError, match="shape 3 is no"):
        workload.make_inputs((3,), 0, "cpu")
    with pytest.raises(TilepassError, match=name):
        workload.make_inputs(tuple(0 for _ in workload.dims), 0, "cpu")


@pytest.mark.parametrize("name", SMALL)
def test_inputs_of_another_configuration(name: str) -> None:
    workload = get_cute_workload(name)
    inputs = workload.make_inputs(SMALL[name], 0, "cpu")
    with pytest.raises(TilepassError, match=name):
        workload.operands(inputs, workload.config_for(SMALL[name], dtype="fp16"))


@pytest.mark.parametrize("name", SMALL)
def test_inputs_of_another_kernel(name: str) -> None:
    other = next(candidate for candidate in SMALL if candidate != name)
    inputs = get_cute_workload(other).make_inputs(SMALL[other], 0, "cpu")
    with pytest.raises(TilepassError, match="made for another kernel"):
        get_cute_workload(name).operands(inputs, get_cute_workload(name).default_config)


def test_an_architecture_that_there_is_not() -> None:
    workload = get_cute_workload("block_diagonal_matmul")
    with pytest.raises(TilepassError, match=r"no architecture 'sm_91'.* sm_90a, "):
        workload.compile(workload.default_config, "sm_91")


def test_a_kernel_that_does_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = get_cute_workload("block_diagonal_matmul")

    def no_jit_function(*arguments: object) -> None:
        """What lacks the decorator."""

    def host_function(config: CuteConfig) -> object:
        return no_jit_function

    monkeypatch.setattr(workload, "host_function", host_function)
    with pytest.raises(TilepassError, match=r"does not compile for sm_90a: error.*@cute\.jit"):
        workload.compile(workload.default_config, ARCH)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("gdn_prefill_cute", (1, 1, 1)),
        ("causal_attention_cute", (1, 1, 1)),
        ("causal_attention_cute", (1, 130, 2)),
        ("block_diagonal_matmul_cute", (130, 256)),
    ],
)
def test_ptx_against_the_reference(name: str, shape: Shape) -> None:
    inputs, config, ptx = problem_setup(name, shape, seed=1)
    outputs = execute(get_cute_workload(name), ptx, inputs, config)
    assert wrong(name, inputs, outputs) is None


def test_gdn_prefill_of_ragged_sequences() -> None:
    name = "gdn_prefill_cute"
    workload = get_cute_workload(name)
    config = workload.config_for((3, 70, 1), lengths="ragged", dtype=DTYPE[name])
    inputs = workload.make_inputs((3, 70, 1), 3, "cpu", config)
    # One is empty: its state stays what it was.
    inputs.tensors["starts"][2] = inputs.tensors["starts"][1]
    outputs = execute(workload, compiled(name).ptx, inputs, config)
    assert wrong(name, inputs, outputs) is None
    assert torch.equal(outputs[1][1], inputs.tensors["initial"][1])


def test_gdn_prefill_with_gates_of_zero() -> None:
    inputs, config, ptx = problem_setup("gdn_prefill_cute", (1, 70, 1))
    inputs.tensors["alpha"][5::9] = 0.0
    outputs = execute(get_cute_workload("gdn_prefill"), ptx, inputs, config)
    assert wrong("gdn_prefill_cute", inputs, outputs) is None


def test_block_diagonal_matmul_with_several_tiles_of_rows_for_a_cta() -> None:
    name = "block_diagonal_matmul_cute"
    inputs, config, ptx = problem_setup(name, (300, 128))
    outputs = execute(get_cute_workload(name), ptx, inputs, config, grid=(2, 1, 1))
    assert wrong(name, inputs, outputs) is None


@pytest.mark.parametrize(
    ("name", "shape", "barriers"),
    [("gdn_prefill_cute", (1, 65, 1), 6), ("causal_attention_cute", (1, 65, 1), 8)],
)
def test_no_barrier_can_be_left_out(name: str, shape: Shape, barriers: int) -> None:
    inputs, config, ptx = problem_setup(name, shape)
    waits = list(re.finditer(r"\n\s*(?:bar\.sync|cp\.async\.wait_group)[^\n]*", ptx))
    assert len([wait for wait in waits if "bar" in wait.group()]) == barriers
    for wait in waits:
        mutant = ptx[: wait.start()] + ptx[wait.end() :]
        assert goes_wrong(name, mutant, inputs, config), wait.group()


def goes_wrong(name: str, ptx: str, inputs: Inputs, config: CuteConfig) -> bool:
    try:
        outputs = execute(get_cute_workload(name), ptx, inputs, config)
    except KernelFault:
        return True
    return wrong(name, inputs, outputs) is not None


# Before and after cute-zero-mma. Of the block-diagonal operand 4 n-tiles and 2 k-tiles a block are
# not zero, with 4 blocks; on attention's diagonal 6 of 16 A tiles are zero, for 4 n-tiles each; of
# the two triangular operands of the delta rule 12 of 32 tiles. An ldmatrix brings one tile of A or
# two of B; all rows of V are multiplied by some row of P, and so stay.
@pytest.mark.parametrize(
    ("name", "shape", "products", "loads"),
    [
        ("block_diagonal_matmul_cute", (130, 128), (128, 4 * 4 * 2), (72, 8 + 4 * 4 * 2 // 2)),
        ("causal_attention_cute", (1, 65, 1), (256, 256 - 6 * 4), (120, 120 - 6)),
        ("gdn_prefill_cute", (1, 65, 1), (404, 404 - 2 * 12), (222, 222 - 2 * 12 // 2)),
    ],
)
def test_cute_zero_mma_leaves_out_the_zero_tiles_and_their_loads(
    name: str, shape: Shape, products: tuple[int, int], loads: tuple[int, int]
) -> None:
    inputs, config, stock = problem_setup(name, shape)
    fewer, _ = rewritten(name)
    assert (stock.count("mma.sync"), fewer.count("mma.sync")) == products
    assert (stock.count("ldmatrix"), fewer.count("ldmatrix")) == loads
    workload = get_cute_workload(name)
    results = [execute(workload, ptx, inputs, config) for ptx in (stock, fewer)]
    assert wrong(name, inputs, results[1]) is None
    assert differing_bits(*results) == 0


# The masks of the gemms with zero tiles, in the order of these.
@pytest.mark.parametrize(
    ("name", "masks"),
    [
        ("block_diagonal_matmul_cute", ["if row // block == column // block:"]),
        ("causal_attention_cute", ["scores[e] if place[e][1] <= place[e][0] else"]),
        ("gdn_prefill_cute", ["* weight if i < t else", "* decay * scale if i <= t else"]),
    ],
)
def test_evidence_names_the_mask(name: str, masks: list[str]) -> None:
    _, remarks = rewritten(name)
    found = chains(remarks)
    assert len(found) == len(masks)
    for steps, mask in zip(found.values(), masks, strict=True):
        assert_chain(steps, mask)


def test_check_mode_keeps_the_gemm_and_traps() -> None:
    name = "block_diagonal_matmul_cute"
    pipeline = "cute-zero-mma{mode=check,tiles=block-diagonal:32,sites=0}"
    checked, _ = rewritten(name, pipeline)
    stock = compiled(name).ptx
    assert checked.count("mma.sync") == stock.count("mma.sync") == 128
    # All but 4 blocks of 4 n-tiles and 2 k-tiles; the kernel has no trap of its own.
    assert (stock.count("trap;"), checked.count("trap;")) == (0, 128 - 4 * 4 * 2)
    place = f"_block_diagonal_kernel_cute.py:{_line_of_the_gemm()}"
    assert f"gemm 0 ({place}): tile n4k0 is not zero" in _texts(checked)


def _line_of_the_gemm() -> int:
    module = sys.modules["tilepass.kernels._block_diagonal_kernel_cute"]
    lines = Path(module.__file__ or "").read_text(encoding="utf-8").splitlines()
    (found,) = (number for number, line in enumerate(lines, 1) if "cute.gemm(" in line)
    return found


def _texts(ptx: str) -> str:
    """The strings of the PTX, which holds them as lists of bytes."""
    words = ptx.replace(",", " ").split()
    numbers = [int(word) for word in words if word.isdecimal() and int(word) < 128]
    return bytes(number for number in numbers if number).decode("ascii", "replace")


def test_dump_ir_of_a_cute_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["-p", "cute-zero-mma", "--target", "cuda:90", "--config", "block=64"]
    folder = tmp_path / "dump"
    assert dump_ir(["block-diagonal-matmul", *options, "-o", str(folder), "--no-html"]) == 0
    assert "HMMA 64," in capsys.readouterr().out
    assert len(list(folder.glob("*/*-trace-cute-zero-mma.mlir"))) == 1
