"""`tilepass dump-ir` of CuTe kernels: a function, a program, a file of IR."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from cute_support import PASSES

from tilepass.binary.ptxas import read_listing
from tilepass.cli.main import main
from tilepass.cli.opt import main as opt
from tilepass.core.errors import TilepassError
from tilepass.dump.kernel_files import RecorderOptions
from tilepass.dump.recorder import Recorder
from tilepass.dump.sources import compile_file
from tilepass.dump.steps import Step, kernel_folders, read_compilation, read_steps

pytestmark = pytest.mark.traces

KERNELS = Path(__file__).with_name("cute_kernels.py")
MODULE = Path(__file__).parent.parent / "lit_tests" / "opt" / "cute-lowering.mlir"
WITH_PASS = ["-p", "drop-gemms", "--load", str(PASSES)]


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """A file's folder is put on the path, as that of a script."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")


def only_folder(dump: Path) -> Path:
    (folder,) = kernel_folders(dump)
    return folder


def summary_of(output: str) -> str:
    return next(line for line in output.splitlines() if line.startswith("kernel_cutlass"))


def test_a_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = f"{KERNELS}:compile_only"
    arguments = ["dump-ir", spec, "--target", "cuda:90", "-o", str(tmp_path), *WITH_PASS]
    assert main(arguments) == 0
    folder = only_folder(tmp_path)
    record, steps = read_compilation(folder), read_steps(folder)
    assert (record.language, record.target) == ("cute", "cuda:90")
    assert record.compiler.startswith("nvidia-cutlass-dsl 4.")
    names = [step.name for step in steps]
    assert names[:3] == ["source", "drop-gemms", "cute-remove-static-args"]
    assert names[-2:] == ["ptx", "cubin"]
    assert "strength-reduction" in names
    # The text after each step is that of the step: one product of two is left, then instructions.
    assert [text_of(folder, step).count("cute.gemm(") for step in steps[:2]] == [2, 1]
    assert steps[1].origin == "tilepass"
    assert "a gemm is dropped" in steps[1].remarks[0]
    assert text_of(folder, steps[-3]).count("nvvm.mma.sync") == 1
    assert text_of(folder, steps[-2]).count("mma.sync.aligned") == 4
    assert "HMMA.16816" in next(folder.glob("*.sass")).read_text()
    figures = json.loads((folder / "figures.json").read_text())
    assert figures["families"]["HMMA"] == 4
    assert figures["exact"] is True
    line = summary_of(capsys.readouterr().out)
    found = re.search(r"\(cuda:90\): (\d+) registers, spills 0/0 B, stack 0 B, shared 0 B; ", line)
    assert found is not None
    assert int(found[1]) == figures["registers"] > 8
    assert "HMMA 4" in line


def text_of(folder: Path, step: Step) -> str:
    assert step.file is not None
    return (folder / step.file).read_text()


def test_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        f"import sys; sys.path.insert(0, {str(KERNELS.parent)!r})\n"
        "import cute_support, cute_kernels\n"
        "cute_kernels.compile_only(); cute_kernels.compile_only()\n"
    )
    dump = tmp_path / "dump"
    arguments = ["--only-changed", "--no-html", "-o", str(dump), "--", sys.executable, str(program)]
    assert main(["dump-ir", *arguments]) == 0
    folder = only_folder(dump)
    files = {step.name: step.file for step in read_steps(folder)}
    assert files["software-pipeline"] is None
    assert files["convert-cute-to-core"] is not None
    assert "HMMA 8" in summary_of(capsys.readouterr().out)


def test_a_file(tmp_path: Path) -> None:
    arguments = ["--target", "cuda:120", "-o", str(tmp_path), "--no-html", *WITH_PASS]
    assert main(["dump-ir", str(MODULE), *arguments]) == 0
    folder = only_folder(tmp_path)
    steps = read_steps(folder)
    assert re.search(r"cute-lowering\.mlir:29:7: remark: \[drop-gemms\]", steps[1].remarks[0])
    assert ".target sm_120a" in text_of(folder, steps[-2])


@pytest.mark.parametrize("how", ["compiled", "passes alone"])
@pytest.mark.parametrize("locations", [False, True])
def test_what_is_dumped_can_be_read_back(how: str, locations: bool, tmp_path: Path) -> None:
    """A barrier's pretty form with a location cannot."""
    file = tmp_path / "barrier.mlir"
    file.write_text(MODULE.read_text().replace("cuda.return", "nvvm.barrier\n      cuda.return"))
    dump = tmp_path / "dump"
    options = ["--locations"] if locations else []
    options += ["--only-pipeline"] if how == "passes alone" else ["--target", "cuda:90"]
    assert main(["dump-ir", str(file), "-o", str(dump), "--no-html", *options, *WITH_PASS]) == 0
    folder = only_folder(dump)
    for step in read_steps(folder)[:2]:
        text = text_of(folder, step)
        assert "loc(" in text if locations else "\n      nvvm.barrier\n" in text
        again = tmp_path / "again.mlir"
        assert opt([str(folder / str(step.file)), "-o", str(again)]) == 0
        assert "\n      nvvm.barrier\n" in again.read_text()


def test_passes_alone_on_a_file(tmp_path: Path) -> None:
    arguments = ["--only-pipeline", "-o", str(tmp_path), "--no-html", *WITH_PASS]
    assert main(["dump-ir", str(MODULE), *arguments]) == 0
    folder = only_folder(tmp_path)
    record, steps = read_compilation(folder), read_steps(folder)
    assert (record.language, record.target) == ("cute", "no target")
    assert [step.file for step in steps] == ["0000-source.mlir", "0001-mlir-drop-gemms.mlir"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([str(MODULE)], "the module names no target: give --target (cuda:90)"),
        ([str(MODULE), "--target", "hip:gfx942"], "are compiled for cuda targets, not for hip"),
        ([str(MODULE), "--target", "cuda:90", "-p", "flatten-loops"], "does not run on CuTe"),
        ([str(MODULE), "--config", "a=1"], "--config a: CuTe modules take no options"),
        ([f"{KERNELS}:none"], f"{KERNELS} has no function 'none'"),
        (["nowhere.py:f"], "nowhere.py: no such file"),
        (["no.such.module:f"], "no.such.module: No module named 'no'"),
        ([f"{KERNELS}:fake_arguments", "--target", "cuda:90"], "compiled no kernel"),
    ],
)
def test_errors(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump-ir", *arguments, "-o", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_triton_module_is_no_cute_module(tmp_path: Path) -> None:
    file = tmp_path / "kernel.mlir"
    file.write_text("tt.func @f() { tt.return }\n")
    recorder = Recorder(RecorderOptions(tmp_path / "dump"), compiler="none")
    with pytest.raises(TilepassError, match=r"a \.mlir file must hold a CuTe module"):
        compile_file(file, None, {}, "", [], recorder)


def test_local_memory_is_counted_by_width() -> None:
    listing = """
        /*0010*/                   STL [R1], R4 ;
        /*0020*/                   STL.128 [R1+0x10], R4 ;
        /*0030*/              @!P0 LDL.LU.64 R2, [R1+0x8] ;
        /*0040*/                   LDL.U8 R2, [R1+0x8] ;
        /*0050*/                   LDG.E R2, [R2] ;
    """
    report = read_listing(listing, b"")
    assert (report.spill_store_bytes, report.spill_load_bytes) == (20, 9)
