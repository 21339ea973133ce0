"""`tilepass dump-ir` from its command line: what it dumps, how it ends, what it says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from dump_support import MARK_LOOPS, finished_dump

from tilepass.cli.dump_ir import main
from tilepass.cli.guard import run_guarded

PROGRAM = str(Path(__file__).with_name("dump_program.py"))
SCRIPT = str(Path(__file__).parents[1] / "scripts" / "dump_ir.py")


def dump_ir(*arguments: str | Path) -> int:
    """The command in this process; returns its exit status."""
    return run_guarded(main, [str(argument) for argument in arguments])


@pytest.fixture
def pass_file(tmp_path: Path) -> Path:
    file = tmp_path / "marking.py"
    file.write_text(MARK_LOOPS)
    return file


def kernels_of(dump: Path) -> list[Path]:
    return sorted(path.parent for path in dump.glob("*/compilation.json"))


def test_a_program_and_its_children_are_dumped_with_a_pass(
    tmp_path: Path, pass_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump"
    arguments = ["-o", dump, "-p", "mark-loops", "--load", pass_file, "--only-changed"]
    assert dump_ir(*arguments, "--", sys.executable, PROGRAM, "child") == 0
    (folder,) = kernels_of(dump)
    assert list(folder.glob("*-ttir-mark-loops.diff"))
    assert list(folder.glob("*-sass.sass"))
    output = capfd.readouterr().out
    assert "small_matmul (cuda:90): " in output
    assert "HGMMA" in output
    assert f"page: {folder / 'index.html'}" in output


def test_a_kernel_in_the_cache_is_dumped_and_the_cache_stays_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(cache))
    subprocess.run([sys.executable, PROGRAM], check=True)
    before = cached_ptx(cache)
    assert len(before) == 1
    assert dump_ir("-o", tmp_path / "dump", "--no-html", "--", sys.executable, PROGRAM) == 0
    (folder,) = kernels_of(tmp_path / "dump")
    (ptx,) = folder.glob("*.ptx")
    assert cached_ptx(cache) == before == {ptx.read_text()}
    assert not list(tmp_path.glob("dump/**/index.html"))


def cached_ptx(cache: Path) -> set[str]:
    return {path.read_text() for path in cache.rglob("*.ptx")}


def test_the_exit_status_of_a_program_passes_through(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump"
    assert dump_ir("-o", dump, "--no-html", "--", sys.executable, PROGRAM, "3") == 3
    assert f"error: {sys.executable} ended with exit status 3" in capfd.readouterr().err
    assert len(kernels_of(dump)) == 1


def test_the_dump_of_a_killed_program_is_kept(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    assert dump_ir("-o", dump, "--no-html", "--", sys.executable, PROGRAM, "kill") == 128 + 9
    (folder,) = kernels_of(dump)
    assert json.loads((folder / "figures.json").read_text())["registers"] > 0


def test_control_c_ends_the_program_and_keeps_the_dump(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    command = [sys.executable, SCRIPT, "-o", str(dump), "--no-html", "--"]
    process = subprocess.Popen(
        [*command, sys.executable, PROGRAM, "wait", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    os.killpg(process.pid, signal.SIGINT)
    rest = process.stdout.read()
    assert process.wait(60) == 128 + signal.SIGINT
    assert "small_matmul (cuda:90): " in rest


def test_a_program_without_kernels_is_an_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert dump_ir("-o", tmp_path / "dump", "--", sys.executable, "-c", "print(1)") == 1
    assert "error: " in (error := capfd.readouterr().err)
    assert "-c print(1) compiled no kernel" in error


@pytest.mark.parametrize("program", [False, True])
def test_kernels_that_were_not_asked_for_are_named(
    program: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also those of processes that a program starts; the folder can be used again."""
    dump = tmp_path / "dump"
    what = ["--", sys.executable, PROGRAM, "child"] if program else [small_file(tmp_path)]
    options = ["--kernel", "mat.*l_2", "--target", "cuda:90", "--no-html", "-o", dump]
    assert dump_ir(*options, *what) == 1
    error = capfd.readouterr().err
    assert "compiled no kernel whose name matches 'mat.*l_2', only small_matmul\n" in error
    assert not list(dump.iterdir())
    options[1] = "mat"
    assert dump_ir(*options, *what) == 0
    assert len(kernels_of(dump)) == 1


def test_a_pipeline_alone_compiles_no_kernel_to_choose(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        dump_ir("a.ttir", "--only-pipeline", "--kernel", "a", "-o", tmp_path / "dump")
    assert "--kernel chooses among compiled kernels" in capfd.readouterr().err


def small_file(folder: Path) -> Path:
    """The kernel of dump_kernels as the file that its compilation began with."""
    _, report = finished_dump()
    file = folder / "small.ttir"
    ttir = next(step for step in report.steps if step.origin == "stage" and step.number > 0)
    file.write_text((report.folder / str(ttir.file)).read_text())
    return file


def test_an_ir_file_goes_through_the_stages_after_its_own(tmp_path: Path, pass_file: Path) -> None:
    _, report = finished_dump()
    ttir = next(step for step in report.steps if step.origin == "stage" and step.number > 0)
    file = report.folder / str(ttir.file)
    dump = tmp_path / "dump"
    arguments = ["-p", "mark-loops", "--load", pass_file, "--target", "cuda:90", "--no-html"]
    assert dump_ir(file, *arguments, "--config", "num_warps=8", "-o", dump) == 0
    (folder,) = kernels_of(dump)
    names = sorted(path.name for path in folder.iterdir())
    assert {"0000-source.ttir", "0001-ttir-mark-loops.ttir"} <= set(names)
    assert "0002-ttgir-convert-triton-to-tritongpu.ttgir" in names
    record = json.loads((folder / "compilation.json").read_text())
    assert record["options"]["num_warps"] == 8
    figures = json.loads((folder / "figures.json").read_text())
    assert figures["families"]["HGMMA"] > 0


def test_a_pipeline_alone_may_hold_triton_passes_and_needs_no_target(
    tmp_path: Path, pass_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, report = finished_dump()
    file = report.folder / "0000-source.ttir"
    pipeline = "inline,canonicalize,mark-loops,cse"
    dump = tmp_path / "dump"
    assert dump_ir(file, "--only-pipeline", "-p", pipeline, "--load", pass_file, "-o", dump) == 0
    (folder,) = kernels_of(dump)
    names = sorted(path.name for path in folder.glob("*.ttir"))
    assert [name.removesuffix(".ttir").split("-", 2)[2] for name in names[1:]] == pipeline.split(
        ","
    )
    assert "test.mark" in (folder / "0003-ttir-mark-loops.diff").read_text()
    assert "0000-source: " in capfd.readouterr().out
    assert (folder / "index.html").is_file()
    assert dump_ir(file, "--only-pipeline", "-o", tmp_path / "other") == 1
    assert "no passes to run: give them with -p" in capfd.readouterr().err


def test_what_was_recorded_before_a_pass_failed_is_kept(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    failing = tmp_path / "failing.py"
    failing.write_text(MARK_LOOPS.replace("        loops = []\n", "        raise ValueError(7)\n"))
    _, report = finished_dump()
    dump = tmp_path / "dump"
    arguments = ["-p", "mark-loops@after:tritongpu-coalesce", "--load", failing, "-o", dump]
    file = next(report.folder.glob("*-ttir.ttir"))
    assert dump_ir(file, "--target", "cuda:90", *arguments) == 1
    captured = capfd.readouterr()
    assert "mark-loops" in captured.err
    assert "ValueError: 7" in captured.err
    (folder,) = kernels_of(dump)
    assert "the compilation did not finish (last step: tritongpu-coalesce)" in captured.out
    assert "did not finish" in (folder / "index.html").read_text()


def test_a_kernel_of_tilepass_is_dumped(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    assert dump_ir("softmax", "--target", "cuda:90", "--only-changed", "-o", dump) == 0
    (folder,) = kernels_of(dump)
    assert (folder / "index.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["persistent-matmull"], "no kernel 'persistent-matmull'; did you mean"),
        (["softmax", "-p", "flaten-loops"], "unknown pass 'flaten-loops'; did you mean"),
        (["softmax", "-p", "canonicalize"], "run it on an IR file with tilepass-opt, or with "),
        (["softmax", "--target", "cuda90"], "--target 'cuda90': expected cuda:NUMBER"),
        (["softmax", "--config", "blok=3"], "no option 'blok'"),
        (["softmax", "--config", "block"], "--config block: expected NAME=VALUE"),
        (["nothing.ttir", "--target", "cuda:90"], "nothing.ttir: No such file"),
        (["app.py"], "app.py is a program: tilepass dump-ir -- python app.py"),
        (["a.json"], "a.json: expected a file named .ttir, .ttgir or .mlir"),
        (["--kernel", "(", "--", "true"], "--kernel (: missing ), unterminated subpattern"),
        (["--", "no-such-program"], "cannot run 'no-such-program': No such file or directory"),
        (["-p", "flaten-loops", "--", "true"], "unknown pass 'flaten-loops'"),
    ],
)
def test_errors_are_one_line_that_names_the_cause(
    arguments: Sequence[str], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert dump_ir("-o", tmp_path / "dump", *arguments) == 1
    error = capfd.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_file_that_does_not_parse_is_named_with_its_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.ttir"
    file.write_text("module {\n  tt.func @f() { tt.retur }\n}\n")
    assert dump_ir(file, "--target", "cuda:90", "-o", tmp_path / "dump") == 1
    assert f"{file}:2:18: error: " in capfd.readouterr().err


def test_a_file_without_a_target_asks_for_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.ttir"
    file.write_text("module { tt.func public @f() { tt.return } }")
    assert dump_ir(file, "-o", tmp_path / "dump") == 1
    assert "the module names no target: give --target" in capfd.readouterr().err
    arguments = [file, "--target", "cuda:90", "--config", "num_warp=8"]
    assert dump_ir(*arguments, "-o", tmp_path / "dump") == 1
    assert "no compile option 'num_warp'; did you mean 'num_warps'" in capfd.readouterr().err


@pytest.mark.parametrize("text", ["module {}", "tt.func private @f() { tt.return }"])
def test_a_file_without_a_kernel(
    text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.ttir"
    file.write_text(text)
    assert dump_ir(file, "--target", "cuda:90", "-o", tmp_path / "dump") == 1
    assert f"error: {file}: there is no kernel in it" in capfd.readouterr().err


def test_an_architecture_that_triton_does_not_know(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.ttir"
    file.write_text("module { tt.func public @f() { tt.return } }")
    assert dump_ir(file, "--target", "hip:gfx1", "-o", tmp_path / "dump") == 1
    assert "error: Triton cannot compile for hip:gfx1: " in capfd.readouterr().err


def test_a_pass_of_an_earlier_stage_says_that_it_did_not_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, report = finished_dump()
    file = next(report.folder.glob("*-ttgir.ttgir"))
    arguments = ["-p", "acc-multi-buffer", "--no-html", "-o", tmp_path / "dump"]
    assert dump_ir(file, *arguments) == 0
    message = "[acc-multi-buffer] missed: did not run: the compilation starts after stage 'ttir'"
    assert message in capfd.readouterr().err


def test_a_folder_with_something_in_it_is_not_touched(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("")
    assert dump_ir("softmax", "--target", "cuda:90", "-o", tmp_path) == 1
    assert f"{tmp_path} is not empty: give another folder with -o" in capfd.readouterr().err
    assert dump_ir("softmax", "-o", tmp_path / "mine") == 1
    assert f"cannot write to the folder {tmp_path / 'mine'}" in capfd.readouterr().err


def test_a_disk_that_fills_up_under_a_program(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A limit on the size of files stands for the full disk: the IR of the LLVM dialect is long."""
    dump = tmp_path / "dump"
    limited = f"ulimit -f 64; exec {sys.executable} {PROGRAM}"
    environment_cache = f"TRITON_CACHE_DIR={tmp_path}/cache"
    assert dump_ir("-o", dump, "--no-html", "--", "env", environment_cache, "bash", "-c", limited)
    error = capfd.readouterr().err
    assert "error: dump-ir: cannot write" in error
    assert "File too large; no more is recorded" in error
    (folder,) = kernels_of(dump)
    for line in (folder / "steps.jsonl").read_text().splitlines():
        step = json.loads(line)
        text = (folder / step["file"]).read_text()
        assert text.rstrip().endswith("}"), step["file"]
    assert not list(folder.glob(".*"))


def test_usage_errors(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["softmax", "--", "true"]):
        with pytest.raises(SystemExit) as status:
            main(arguments)
        assert status.value.code == 2
        assert "give either a kernel or file, or a program after --" in capfd.readouterr().err


def test_help_imports_no_compiler() -> None:
    code = (
        "import sys\nfrom tilepass.cli.dump_ir import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n"
        "    assert not {'triton', 'torch', 'jinja2', 'pygments'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
