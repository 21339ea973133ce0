"""`tilepass ab` on CuTe kernels, as far as it goes without a GPU."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from tilepass.ab.cute import CuteSubject, keep
from tilepass.ab.job import Arm, Point
from tilepass.ab.subjects import find_subject
from tilepass.activate import enabled
from tilepass.binary.figures import kernel_figures
from tilepass.cli.ab import main
from tilepass.core.errors import TilepassError
from tilepass.kernels.cute_workload import CompiledCute, CuteConfig, get_cute_workload
from tilepass.kernels.workload import Inputs, Launch

pytestmark = pytest.mark.traces

KERNEL = "block-diagonal-matmul"
SHAPE = (256, 128)


@cache
def real() -> CompiledCute:
    workload = get_cute_workload(KERNEL)
    return workload.compile(workload.default_config, "sm_90a")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


class Counted:
    """Stands for `compile` and `launch_with` of a workload: counts, and runs nothing."""

    def __init__(self, subject: CuteSubject, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compilations = 0
        workload: Any = get_cute_workload(KERNEL)
        self._real = real()
        monkeypatch.setattr(workload, "compile", self._compile)
        monkeypatch.setattr(workload, "launch_with", self._launch_with)
        assert subject.name == workload.name

    def _compile(self, config: CuteConfig, arch: str | None = None) -> CompiledCute:
        self.compilations += 1
        return self._real

    def _launch_with(
        self, inputs: Inputs, config: CuteConfig, compiled: Callable[[], CompiledCute]
    ) -> Launch:
        return Launch(compiled, (torch.zeros(1),), grid=(1,))


def subject_of(name: str) -> CuteSubject:
    subject = find_subject(name)
    assert isinstance(subject, CuteSubject)
    return subject


@pytest.mark.parametrize("name", ["gdn-prefill", "causal_attention_cute", KERNEL])
def test_cute_kernels_are_found_by_name(name: str) -> None:
    assert subject_of(name).name == get_cute_workload(name).name


def test_options_of_an_arm() -> None:
    subject = subject_of(KERNEL)
    config = subject.configure(Point(SHAPE, {"dtype": "fp16"}), Arm("B", "", {"block": "16"}))
    assert (config.dtype, config.block) == ("fp16", 16)
    with pytest.raises(TilepassError, match="option 'block': '17' is not one of 16, 32, 64"):
        subject.configure(Point(SHAPE, {}), Arm("B", "", {"block": "17"}))


def test_a_kernel_is_compiled_once_under_each_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = subject_of(KERNEL)
    counted = Counted(subject, monkeypatch)
    config = subject.configure(Point(SHAPE, {}), Arm("A", "", {}))
    inputs = subject.make_inputs(SHAPE, 0, config, "cpu")
    for _ in range(3):
        subject.launcher(inputs, config)()
    assert counted.compilations == 1
    for _ in range(2):
        with enabled("cute-zero-mma"):
            subject.launcher(inputs, config)()
        subject.launcher(inputs, config)()
    assert counted.compilations == 2


def test_launches_are_noted_where_they_happen(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = subject_of(KERNEL)
    Counted(subject, monkeypatch)
    config = subject.configure(Point(SHAPE, {}), Arm("A", "", {}))
    launcher = subject.launcher(subject.make_inputs(SHAPE, 0, config, "cpu"), config)
    launcher()
    with subject.launches() as none:
        pass
    with subject.launches() as seen:
        launcher()
    launcher()
    assert none == {}
    (fact,) = seen.values()
    assert "BlockDiagonalMatmul" in fact.name


def test_what_is_kept_of_a_kernel_can_be_examined() -> None:
    subject = subject_of(KERNEL)
    config = subject.configure(Point(SHAPE, {}), Arm("A", "", {}))
    fact = subject.compile_for(config, 90)
    figures = kernel_figures(Path(fact.path))
    assert (figures.code_hash, figures.name) == (fact.code_hash, fact.name)
    assert figures.families["HMMA"] == 128
    assert figures.registers > 64


def test_ptx_without_a_kernel_is_not_kept() -> None:
    with pytest.raises(TilepassError, match="names no kernel"):
        keep(CompiledCute(print, ".target sm_90a\n", b""))


def test_a_cache_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(TilepassError, match="set TILEPASS_CACHE_DIR"):
        keep(real())


def test_figures_with_and_without_the_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"
    options = ["--b", "cute-zero-mma", "--shape", "256x128", "--compile-only", "--json", str(file)]
    assert main([KERNEL, *options]) == 0
    assert "compiled only, nothing was run" in capsys.readouterr().out
    report = json.loads(file.read_text())
    figures = report["figures"].values()
    assert sorted(each["families"]["HMMA"] for each in figures) == [32, 128]
    assert len({each["name"] for each in figures}) == 1
