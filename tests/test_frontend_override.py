"""Files that Triton takes in place of what passes made: said, shown, and not kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from frontend_support import (
    SM90,
    Recorder,
    compile_kernel,
    fake_driver,
    operation_of,
    source,
    write_rewrite,
)
from triton.runtime import cache

from tilepass.activate import Activation, enabled
from tilepass.dump.kernel_files import RecorderOptions
from tilepass.dump.recorder import Recorder as DumpRecorder
from tilepass.dump.steps import kernel_folders, read_steps


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty cache, a folder for overrides, and a driver without a GPU."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_OVERRIDE_DIR", str(tmp_path / "override"))
    with fake_driver():
        yield


def rewriting(tmp_path: Path, *observers: Any) -> Activation:
    load = [write_rewrite(tmp_path)]
    return enabled("rewrite-add", load=load, observers=observers, remarks="none")


def override(stage: str) -> str:
    """Make the stock kernel's artifact of a stage the override of the kernel; returns the file."""
    triton_caches: Any = cache
    manager = triton_caches.get_override_manager(source().hash())
    stock: Any = compile_kernel()
    file = Path(manager.cache_dir) / f"add_kernel.{stage}"
    file.parent.mkdir(parents=True, exist_ok=True)
    artifact = stock.asm[stage]
    file.write_bytes(artifact if isinstance(artifact, bytes) else artifact.encode())
    return str(file)


@pytest.mark.parametrize("stage", ["ttir", "ttgir", "llir", "ptx", "cubin"])
def test_what_replaces_a_rewrite_is_said_and_shown(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = override(stage)
    observer = Recorder()
    monkeypatch.setenv("TRITON_KERNEL_OVERRIDE", "1")
    with rewriting(tmp_path, observer) as session:
        compiled = compile_kernel()
    if stage != "cubin":
        assert operation_of(compiled) == "add"
    passed, missed = (remark.format() for remark in session.remarks)
    assert "passed: rewrote to mulf" in passed
    assert f"missed: TRITON_KERNEL_OVERRIDE: '{file}' replaces the {stage}" in missed
    shown = [each for each in observer.passes if each[2] == "override"]
    assert shown == ([] if stage == "cubin" else [(stage, f"override {file}", "override")])
    assert observer.stages[stage] == compiled.asm[stage]


def test_an_option_may_name_the_file(tmp_path: Path) -> None:
    file = override("ttgir")
    with rewriting(tmp_path) as session:
        compiled = compile_kernel(ir_override=file)
    assert operation_of(compiled) == "add"
    assert f"missed: ir_override: '{file}' replaces the ttgir" in session.remarks[-1].format()


def test_without_a_file_for_the_kernel_the_pass_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_KERNEL_OVERRIDE", "1")
    with rewriting(tmp_path) as session:
        assert operation_of(compile_kernel()) == "mul"
    assert [remark.kind for remark in session.remarks] == ["passed"]


def test_a_replaced_kernel_is_not_what_the_pipeline_gives_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    override("ttgir")
    with rewriting(tmp_path):
        with monkeypatch.context() as patch:
            patch.setenv("TRITON_KERNEL_OVERRIDE", "1")
            assert operation_of(compile_kernel()) == "add"
        assert operation_of(compile_kernel()) == "mul"


@pytest.mark.parametrize("stage", ["ttir", "llir"])
def test_a_dump_shows_the_file_as_a_step(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pass after it is not credited with the change."""
    file = override(stage)
    monkeypatch.setenv("TRITON_KERNEL_OVERRIDE", "1")
    options = RecorderOptions(tmp_path / "dump")
    options.folder.mkdir()
    with rewriting(tmp_path, DumpRecorder(options, compiler="triton")):
        compile_kernel(target=SM90)
    (folder,) = kernel_folders(options.folder)
    steps = [step for step in read_steps(folder) if step.stage == stage]
    (shown,) = [step for step in steps if step.origin == "override"]
    assert (shown.name, shown.pass_text, shown.changed) == ("override", f"override {file}", True)
    assert shown is steps[-2]
    assert shown.file
    text = (folder / shown.file).read_text()
    assert ("arith.mulf" not in text) if stage == "ttir" else ("fmul" not in text)
    assert not steps[-1].changed or stage == "llir"
