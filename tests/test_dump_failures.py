"""How `tilepass dump-ir` ends where a tool fails or the disk is full: status and first error."""

from __future__ import annotations

import errno
import re
import resource
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dump_support import finished_dump

from tilepass.binary.tools import as_file
from tilepass.cli.dump_ir import main
from tilepass.cli.guard import run_guarded
from tilepass.core.errors import TilepassError

PROGRAM = str(Path(__file__).with_name("dump_program.py"))
PIPELINE = "inline,canonicalize,cse"


def dump_ir(*arguments: str | Path) -> int:
    """The command in this process; returns its exit status."""
    return run_guarded(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    "what", [("softmax", "--target", "cuda:90"), ("--", sys.executable, PROGRAM)]
)
def test_a_dump_without_sass_is_a_failure(
    what: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    tool = tmp_path / "nvdisasm"
    tool.write_text(
        "#!/bin/sh\n"
        "if [ \"$1\" = --version ]; then echo 'Cuda, release 12.8, V12.8.55'; exit; fi\n"
        "echo 'nvdisasm fatal: broken' >&2\nexit 3\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("TRITON_NVDISASM_PATH", str(tool))
    dump = tmp_path / "dump"
    assert dump_ir("-o", dump, "--only-changed", "--no-html", *what) == 1
    (folder,) = (path.parent for path in dump.glob("*/compilation.json"))
    expected = (
        f"error: the dump is incomplete: {folder.name}: "
        "nvdisasm failed with exit status 3: nvdisasm fatal: broken\n"
    )
    assert expected in capfd.readouterr().err
    # What there is without the tool is there.
    assert list(folder.glob("*-ptx.ptx"))
    assert not list(folder.glob("*.sass"))


def full_from(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Fill the disk when the first file whose name matches `name` is half written."""
    full = False

    def write_bytes(path: Path, data: bytes) -> int:
        nonlocal full
        full = full or re.search(name, path.name) is not None
        with path.open("wb") as file:
            if full:
                file.write(data[: len(data) // 2])
                raise OSError(errno.ENOSPC, "No space left on device")
            return file.write(data)

    monkeypatch.setattr(Path, "write_bytes", write_bytes)


@pytest.mark.parametrize("name", ["0001-ttir-inline.diff", "index.html"])
def test_a_disk_that_fills_up_after_the_compilation(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    _, report = finished_dump()
    file, dump = report.folder / "0000-source.ttir", tmp_path / "dump"
    full_from(monkeypatch, re.escape(name))
    assert dump_ir(file, "--only-pipeline", "-p", PIPELINE, "-o", dump) == 1
    error = f"error: cannot write {dump / '0000-source' / name}: No space left on device\n"
    assert capfd.readouterr().err == error
    left = {path.name for path in (dump / "0000-source").iterdir()}
    # Every step, and nothing that is half written.
    assert {"0000-source.ttir", "0003-ttir-cse.ttir", "steps.jsonl"} <= left
    assert name not in left
    assert not [found for found in left if found.startswith(".")]


def test_a_disk_that_fills_up_while_recording_is_the_error_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The difference and the page, which cannot be written either, do not hide it."""
    _, report = finished_dump()
    file, dump = report.folder / "0000-source.ttir", tmp_path / "dump"
    full_from(monkeypatch, "0002-ttir-canonicalize.ttir")
    assert dump_ir(file, "--only-pipeline", "-p", PIPELINE, "-o", dump) == 1
    lines = capfd.readouterr().err.splitlines()
    folder, why = dump / "0000-source", "No space left on device"
    assert lines[-1] == f"error: cannot write {folder / '0002-ttir-canonicalize.ttir'}: {why}"
    (note,) = lines[:-1]
    assert note.startswith(f"note: the dump could not be completed: cannot write {folder}/")
    assert note.endswith(why)


def test_a_disk_that_is_full_before_the_compilation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Passes of a file's own stage run on a copy of it."""
    _, report = finished_dump()
    file, dump = report.folder / "0000-source.ttir", tmp_path / "dump"
    full_from(monkeypatch, "source.ttir")
    assert dump_ir(file, "--target", "cuda:90", "--num-warps", "4", "-o", dump) == 1
    assert re.fullmatch(
        r"error: cannot write \S+/0000-source.ttir: No space left on device\n",
        capfd.readouterr().err,
    )
    assert not list(dump.iterdir())


@contextmanager
def file_size_limit(limit: int) -> Generator[None]:
    """No file may grow beyond `limit` bytes."""
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))


def test_a_file_for_a_tool_that_cannot_be_written_is_named() -> None:
    expected = r"cannot write \S+\.cubin: File too large"
    with (
        file_size_limit(1000),
        pytest.raises(TilepassError, match=expected),
        as_file(b"x" * 2000, ".cubin"),
    ):
        pytest.fail("there is no file to use")
