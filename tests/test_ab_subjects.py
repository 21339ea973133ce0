"""Kernels of the user's, compiling without a GPU, checks of outputs and binaries."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tilepass.ab.checks import (
    different_names,
    equal_bits,
    poison,
    same_kernels,
    wrong_outputs,
)
from tilepass.ab.events import KernelFact
from tilepass.ab.job import Arm, Job, Point, parse_settings, parse_shape
from tilepass.ab.report import Report
from tilepass.ab.session import priming_tasks, run_static
from tilepass.ab.static_figures import collect_figures
from tilepass.ab.subjects import copy_inputs, find_subject
from tilepass.core.errors import TilepassError
from tilepass.kernels.workload import Tolerance

USER_MODULE = """
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    total = tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, total, mask=inside)


def make_inputs(shape, seed, device="cuda"):
    generator = torch.Generator(device).manual_seed(seed)
    return [torch.rand(shape, generator=generator, device=device) for _ in range(2)]


def reference(inputs):
    return inputs[0] + inputs[1]


def add(inputs, block="1024", warps="4"):
    out = torch.empty_like(inputs[0])
    grid = (triton.cdiv(out.numel(), int(block)),)
    add_kernel[grid](*inputs, out, out.numel(), BLOCK=int(block), num_warps=int(warps))
    return out


def nothing(inputs):
    return inputs[0]


def text(inputs):
    return "done"


TOLERANCE = (0.0, 1e-6)
DEFAULT_SHAPES = ((4096,),)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "adding.py"
    path.write_text(USER_MODULE)
    return path


def compare(kernel: str, *arms: Arm, shape: tuple[int, ...] = (4096,)) -> Report:
    subject = find_subject(kernel)
    job = Job(kernel, arms, (Point(shape),))
    return run_static(job, subject, 90)


def test_a_users_function_is_compiled_without_a_gpu(module: Path) -> None:
    report = compare(f"{module}:add", Arm("A"), Arm("B", "", {"block": "256"}))
    point = report.points[0]
    assert (point.status, point.message) == ("compiled", "")
    assert point.first == {0: 0, 1: 1}
    assert [point.kernels[arm][0].name for arm in (0, 1)] == ["add_kernel", "add_kernel"]
    figures = collect_figures([*point.kernels[0], *point.kernels[1]])
    assert len(figures) == 2
    wide, narrow = (figures[point.kernels[arm][0].code_hash] for arm in (0, 1))
    assert sum(wide.instructions.values()) > sum(narrow.instructions.values()) > 0


def test_equal_binaries_are_called_identical(module: Path) -> None:
    report = compare(f"{module}:add", Arm("A"), Arm("B"), Arm("C", "", {"warps": "8"}))
    assert report.points[0].first == {0: 0, 1: 0, 2: 2}
    found = report.compare(0, 1)
    assert found is not None
    assert (found[0].ratio, str(found[1])) == (1.0, "SAME")
    only_two = compare(f"{module}:add", Arm("A"), Arm("B"))
    assert only_two.points[0].status == "identical"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("nothing", "launched no Triton kernel"),
        ("text", "must return a tensor or a tuple of tensors, not str"),
    ],
)
def test_a_function_that_does_not_fit_is_refused(module: Path, function: str, message: str) -> None:
    report = compare(f"{module}:{function}", Arm("A"), Arm("B"))
    assert report.points[0].status == "failed"
    assert message in report.points[0].message


def test_an_unknown_option_is_named(module: Path) -> None:
    report = compare(f"{module}:add", Arm("A"), Arm("B", "", {"blok": "256"}))
    assert "blok" in report.points[0].message


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("missing.py:add", "missing.py: no such file"),
        ("no_such_module:add", "no_such_module"),
        ("{module}:sub", "has no function 'sub'"),
    ],
)
def test_a_kernel_that_cannot_be_found_is_named(module: Path, spec: str, message: str) -> None:
    with pytest.raises(TilepassError, match=message):
        find_subject(spec.format(module=module))


def test_a_module_that_raises_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("raise RuntimeError('no licence')\n")
    with pytest.raises(TilepassError, match=r"broken.py: RuntimeError: no licence"):
        find_subject(f"{path}:add")


def test_a_module_without_reference_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "half.py"
    path.write_text("def add(inputs): ...\ndef make_inputs(shape, seed): ...\n")
    with pytest.raises(TilepassError, match="has no function 'reference'"):
        find_subject(f"{path}:add")


def test_configurations_are_compiled_once_each() -> None:
    subject = find_subject("persistent-matmul")
    points = [Point((8192, 8192, k)) for k in (512, 1024)]
    points.append(Point((8192, 8192, 512), {"num_stages": "4"}))
    arms = (Arm("A"), Arm("B", "flatten-loops{mode=off}"), Arm("C", "", {"flatten": "0"}))
    tasks = priming_tasks(Job("persistent-matmul", arms, tuple(points)), subject)
    assert len(tasks) == 6  # two configurations, three arms


def test_copies_keep_strides_and_share_nothing() -> None:
    subject = find_subject("persistent-matmul")
    config = subject.configure(Point((32, 32, 20)), Arm("A"))
    inputs = subject.make_inputs((32, 32, 20), 0, config, device="cpu")
    copied = copy_inputs(inputs)
    for name, tensor in inputs.tensors.items():
        assert copied.tensors[name].stride() == tensor.stride()
        assert copied.tensors[name].data_ptr() != tensor.data_ptr()
        assert torch.equal(copied.tensors[name], tensor)


def test_poison_shows_what_was_not_written() -> None:
    outputs = (torch.zeros(4), torch.zeros(4, dtype=torch.int32), torch.zeros(4) > 0)
    poison(outputs)
    assert torch.isnan(outputs[0]).all()
    assert (outputs[1] == torch.iinfo(torch.int32).min).all()
    assert outputs[2].all()
    problem = wrong_outputs(outputs[:1], (torch.zeros(4),), Tolerance(1.0, 1.0))
    assert problem is not None
    assert "4 of 4" in problem


def test_outputs_are_compared_by_bits() -> None:
    nan = torch.full((3,), float("nan"))
    assert equal_bits((nan,), (nan.clone(),))
    assert not equal_bits((torch.zeros(3),), (-torch.zeros(3),))
    assert not equal_bits((torch.zeros(3),), (torch.zeros(4),))
    assert equal_bits((torch.tensor(1.0),), (torch.tensor(1.0),))
    padded = torch.zeros(4, 8)[:, :3]
    assert equal_bits((padded,), (torch.zeros(4, 3),))


def test_arms_are_told_apart_by_binary_and_settings() -> None:
    one, two = KernelFact("k", "hash1", ""), KernelFact("k", "hash2", "")
    same = {0: "s", 1: "s", 3: "s"}
    assert same_kernels({0: (one,), 1: (two,), 3: (one,)}, same) == {0: 0, 1: 1, 3: 0}
    assert same_kernels({0: (one,), 1: (one,)}, {0: "grid=1", 1: "grid=2"}) == {0: 0, 1: 1}
    assert same_kernels({0: (one,), 1: (one,)}, same, force=True) == {0: 0, 1: 1}
    assert same_kernels({0: (), 1: ()}, {0: "torch:mm", 1: "torch:addmm"}) == {0: 0, 1: 1}


def test_kernel_names_must_agree() -> None:
    a, b = KernelFact("matmul", "1", ""), KernelFact("matmul_flat", "2", "")
    assert different_names([(a,), (a,)]) is None
    assert different_names([(), (a,), (a,)]) is None
    assert different_names([(a,), (b,)]) == "matmul against matmul_flat"


def test_texts_of_the_command_line() -> None:
    assert parse_shape("8192x28672X512") == (8192, 28672, 512)
    assert parse_settings("--config", ["FLATTEN=0", "block-m=64"]) == {
        "flatten": "0",
        "block_m": "64",
    }
    with pytest.raises(TilepassError, match=r"--shape: '8192,512'"):
        parse_shape("8192,512")
    with pytest.raises(TilepassError, match=r"--config-b: 'FLATTEN'"):
        parse_settings("--config-b", ["FLATTEN"])
    with pytest.raises(TilepassError, match="two arms"):
        Job("k", (Arm("A"),), ())
