"""Activation in programs: `tilepass run`, the environment, child processes, errors."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from frontend_support import REWRITE_ADD, write_pass

import tilepass
from tilepass.cli.main import main
from tilepass.subjects.program import program_environment

SITE = Path(tilepass.__file__).parent / "_site"
# What an activated process can be told by, without compiling anything.
IS_ON = "knobs.runtime.add_stages_inspection_hook is not None"


@pytest.fixture
def rewrite(tmp_path: Path) -> Path:
    file = tmp_path / "rewrite_add.py"
    file.write_text(REWRITE_ADD)
    return file


def run(
    program: str, environment: Mapping[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def with_pipeline(pipeline: str, *load: Path, **variables: str) -> dict[str, str]:
    """The environment that `tilepass run` makes, with the tests' folder on the path."""
    base = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), **variables}
    return program_environment(base, pipeline, [str(path) for path in load], "missed")


def test_run_passes_on_arguments_and_status(rewrite: Path, tmp_path: Path) -> None:
    application = tmp_path / "application.py"
    application.write_text(
        "import sys\n"
        "from frontend_support import compile_kernel, operation_of\n"
        "print(operation_of(compile_kernel()), sys.argv[1:])\n"
        "sys.exit(7)\n"
    )
    command = "import sys; from tilepass.cli.main import main; sys.exit(main())"
    options = ["run", "-p", "rewrite-add", "--load", str(rewrite), "--remarks", "passed", "--"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parent),
        "TRITON_CACHE_DIR": str(tmp_path / "cache"),
    }
    arguments = [sys.executable, str(application), "-x", "--", "y"]
    result = run(command, environment, *options, *arguments)
    assert result.stdout == "mul ['-x', '--', 'y']\n"
    assert result.stderr.endswith("remark: [rewrite-add] passed: rewrote to mulf\n")
    assert result.returncode == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["-p", "flatten-lops"],
            "error: unknown pass 'flatten-lops'; did you mean 'flatten-loops'",
        ),
        (["-p", "cse"], "error: 'cse' is a pass of Triton"),
        (["-p", "flatten-loops{mode=maybe}"], "error: pass 'flatten-loops', option 'mode'"),
        (
            ["-p", "flatten-loops@end:trace"],
            "error: pass 'flatten-loops' cannot run at 'end:trace'",
        ),
        (["-p", "flatten-loops,,"], "error: pipeline: expected a pass name"),
        (["-p", "flatten-loops", "--load", "nowhere.py"], "error: --load nowhere.py: no such file"),
        (["-p", "flatten-loops", "--remarks", "al"], "error: remarks: 'al' is not one of"),
    ],
)
def test_errors_end_the_command_before_the_program(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *options, "--", sys.executable, "-c", "print('started')"]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_a_program_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-p", "flatten-loops", "--", "no-such-program"]) == 1
    expected = "error: cannot run 'no-such-program': No such file or directory\n"
    assert capsys.readouterr().err == expected
    with pytest.raises(SystemExit) as caught:
        main(["run", "-p", "flatten-loops"])
    assert caught.value.code == 2


def test_errors_in_the_environment_end_the_program() -> None:
    """Even where the program expects that importing triton may fail."""
    program = "try: import triton\nexcept BaseException: pass\nprint('went on')"
    for pipeline, message in [
        ("flatten-lops", "unknown pass 'flatten-lops'; did you mean 'flatten-loops'?\n"),
        ("flatten-loops{", "pipeline: expected an option name"),
    ]:
        result = run(program, with_pipeline(pipeline))
        assert result.stderr.startswith(f"error: TILEPASS: {message}")
        assert "Traceback" not in result.stderr
        assert result.stdout == ""
        assert result.returncode == 2


@pytest.mark.parametrize("closed", ["1", "2", "1 2"])
def test_a_program_whose_streams_are_closed(closed: str, rewrite: Path, tmp_path: Path) -> None:
    """A pipeline that is in error ends it all the same; remarks do not go elsewhere."""
    program = (
        "from frontend_support import compile_kernel, operation_of\n"
        f"open({str(tmp_path / 'result')!r}, 'w').write(operation_of(compile_kernel()))\n"
    )
    closing = "".join(f" {number}>&-" for number in closed.split())
    for pipeline, status in (("flatten-lops", 2), ("rewrite-add", 0)):
        environment = with_pipeline(pipeline, rewrite, TRITON_CACHE_DIR=str(tmp_path / "cache"))
        environment["TILEPASS_REMARKS"] = "all"
        command = ["sh", "-c", f'exec "$@"{closing}', "sh", sys.executable, "-c", program]
        result = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert result.returncode == status
        assert result.stdout == ""
    assert (tmp_path / "result").read_text() == "mul"


def test_errors_while_compiling_have_no_traceback(tmp_path: Path) -> None:
    idle = write_pass(tmp_path, "idle", "pass")
    program = "from frontend_support import compile_kernel\ncompile_kernel()"
    environment = with_pipeline(
        "idle@after:no-such-pass", idle, TRITON_CACHE_DIR=str(tmp_path / "cache")
    )
    result = run(program, environment)
    assert "error: pass 'idle': triton 3." in result.stderr
    assert "note: raised from" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.returncode == 1


def test_nothing_happens_without_a_pipeline() -> None:
    program = (
        "import sys\n"
        "assert not [name for name in sys.modules if name.startswith('tilepass')]\n"
        "from triton import knobs\n"
        f"print({IS_ON})"
    )
    environment = {**os.environ, "PYTHONPATH": str(SITE)}
    assert run(program, environment).stdout == "False\n"
    assert run(program, {**environment, "TILEPASS": ""}).stdout == "False\n"


def test_the_environment_counts_as_it_was_at_the_start(rewrite: Path) -> None:
    """Programs clear it, and change folders."""
    program = (
        f"import os\nos.environ.clear(); os.chdir('/')\nfrom triton import knobs\nprint({IS_ON})"
    )
    environment = with_pipeline("rewrite-add") | {"TILEPASS_LOAD": rewrite.name}
    command = [sys.executable, "-c", program]
    result = subprocess.run(
        command, cwd=rewrite.parent, env=environment, capture_output=True, text=True
    )
    assert result.stdout == "True\n", result.stderr


def test_a_start_loads_nothing_more(rewrite: Path) -> None:
    """Every Python program that runs under a pipeline pays for what is loaded at its start."""
    program = "import sys; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": ""}
    before = run(program, environment).stdout.split()
    after = run(program, with_pipeline("rewrite-add", rewrite)).stdout.split()
    own = {
        "sitecustomize",
        *(
            f"tilepass{name}"
            for name in ("", ".executed", "._startup", ".after_import", ".variables")
        ),
    }
    assert set(after) - set(before) <= {*own, "__future__"}
    assert own <= set(after)


def test_an_interpreter_that_is_too_old(tmp_path: Path) -> None:
    """It cannot read the start-up module; nor is there a Triton for it that could be meant."""
    package = tmp_path / "tilepass"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_startup.py").write_text("no Python of its time")
    (tmp_path / "sitecustomize.py").write_text("print('own')")
    command = [str(Path(sys.base_prefix, "bin", "python3")), "-s", "-c", "print(1)"]
    environment = with_pipeline("flatten-loops", PYTHONPATH=str(tmp_path))
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("own\n1\n", "")


def test_a_program_without_triton_loads_no_compiler(rewrite: Path) -> None:
    program = (
        "import importlib.util, sys\n"
        "importlib.util.find_spec('triton')\n"
        "print({'triton', 'cutlass', 'tilepass.activate'} & set(sys.modules))"
    )
    result = run(program, with_pipeline("rewrite-add", rewrite))
    assert result.stdout == "set()\n", result.stderr


def test_looking_for_triton_is_not_importing_it(rewrite: Path) -> None:
    program = (
        "import importlib.util\n"
        "for _ in range(2): importlib.util.find_spec('triton')\n"
        "from triton import knobs\n"
        f"print({IS_ON})"
    )
    assert run(program, with_pipeline("rewrite-add", rewrite)).stdout == "True\n"


def test_child_processes_are_included(rewrite: Path, tmp_path: Path) -> None:
    program = tmp_path / "parent.py"
    program.write_text(
        "import multiprocessing, subprocess, sys\n"
        "def is_on(_):\n"
        "    from triton import knobs\n"
        f"    return {IS_ON}\n"
        "if __name__ == '__main__':\n"
        "    for method in ('fork', 'spawn', 'forkserver'):\n"
        "        with multiprocessing.get_context(method).Pool(1) as pool:\n"
        "            print(*pool.map(is_on, [0]), flush=True)\n"
        f"    child = 'from triton import knobs; print({IS_ON})'\n"
        "    subprocess.run([sys.executable, '-c', child])\n"
    )
    environment = with_pipeline("rewrite-add", rewrite)
    result = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True
    )
    assert result.stdout == "True\n" * 4, result.stderr


def test_the_users_sitecustomize_is_imported_too(rewrite: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('own')")
    program = f"import sitecustomize\nfrom triton import knobs\nprint({IS_ON}, {SITE.name!r})"
    environment = with_pipeline("rewrite-add", rewrite, PYTHONPATH=str(tmp_path))
    assert run(program, environment).stdout == "own\nTrue _site\n"
    del environment["TILEPASS"]
    assert run(program, environment).stdout == "own\nFalse _site\n"


def test_an_interpreter_without_tilepass(tmp_path: Path) -> None:
    """Programs start other interpreters; only one that imports triton is concerned."""
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("")
    base = Path(sys.base_prefix, "bin", "python3")
    for program, status in [("print(1)", 0), ("import triton; print(1)", 2)]:
        environment = with_pipeline("flatten-loops", PYTHONPATH=str(tmp_path))
        command = [str(base), "-s", "-c", program]
        result = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert result.returncode == status, result.stderr
        assert ("error: TILEPASS: " in result.stderr) == (status == 2)
        assert (result.stdout == "1\n") == (status == 0)


def test_the_environment_of_a_program() -> None:
    base = {"PYTHONPATH": f"{SITE}{os.pathsep}/a", "TILEPASS": "old", "X": "1"}
    made = program_environment(base, "new", ["a.py", "/b.py"], "all")
    assert made["PYTHONPATH"] == f"{SITE}{os.pathsep}/a"
    assert made["TILEPASS"] == "new"
    assert made["TILEPASS_LOAD"] == os.pathsep.join([str(Path("a.py").resolve()), "/b.py"])
    assert made["TILEPASS_REMARKS"] == "all"
    assert made["X"] == "1"


def test_importing_tilepass_loads_nothing() -> None:
    program = (
        "import sys, tilepass, tilepass.activate\n"
        "print({'triton', 'cutlass', 'torch'} & set(sys.modules))\n"
        "print(tilepass.enabled is tilepass.activate.enabled, hasattr(tilepass, 'no_such_name'))"
    )
    assert run(program, os.environ).stdout == "set()\nTrue False\n"


def test_the_startup_hook_activates_by_itself(rewrite: Path, tmp_path: Path) -> None:
    """As in an interpreter that tilepass is installed for: its `.pth` file, no `sitecustomize`."""
    hook = Path(tilepass.__file__).parents[1] / "tilepass_startup.pth"
    site_packages = tmp_path / "site"
    site_packages.mkdir()
    (site_packages / hook.name).write_text(hook.read_text())
    program = (
        f"import site; site.addsitedir({str(site_packages)!r})\n"
        f"from triton import knobs\nprint({IS_ON})"
    )
    on = {"TILEPASS": "rewrite-add", "TILEPASS_LOAD": str(rewrite)}
    assert run(program, {**os.environ, **on}).stdout == "True\n"
    assert run(program, os.environ).stdout == "False\n"


def test_a_crash_in_a_pass_shows_the_pass(tmp_path: Path) -> None:
    """No process looks after a program: the stack on its stderr tells what was under way."""
    file = write_pass(tmp_path, "crashing", "import os; os.abort()")
    environment = with_pipeline("crashing", file, TRITON_CACHE_DIR=str(tmp_path / "cache"))
    result = run("from frontend_support import compile_kernel; compile_kernel()", environment)
    assert result.returncode == -signal.SIGABRT
    assert f'File "{file}", line ' in result.stderr
    match = re.search(r"in pass 'crashing' of (.*) \(module before it: (.*)\)", result.stderr)
    assert match is not None
    assert match[1] == str(file)
    assert "pass 'crashing' crashed" in Path(match[2]).read_text()
    Path(match[2]).unlink()


def test_the_traceback_of_a_pass_that_fails(tmp_path: Path) -> None:
    file = write_pass(tmp_path, "failing", "raise ValueError('no luck')")
    program = "from frontend_support import compile_kernel; compile_kernel()"
    for wanted in ("", "1"):
        cache = str(tmp_path / "cache")
        variables = {"TRITON_CACHE_DIR": cache, "TILEPASS_TRACEBACK": wanted}
        result = run(program, with_pipeline("failing", file, **variables))
        assert result.returncode == 1
        assert f"error: pass 'failing' raised ValueError: no luck ({file}:" in result.stderr
        assert (f'File "{file}", line' in result.stderr) == bool(wanted)


@pytest.mark.parametrize("value", ["rubbish", "{}", "[1]", '{"folder": 3}'])
def test_a_dump_that_nobody_asked_for_so(value: str) -> None:
    result = run("import triton", with_pipeline("builtin.module()", TILEPASS_DUMP=value))
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: TILEPASS: TILEPASS_DUMP is '{value}': only tilepass")
    assert "Traceback" not in result.stderr
