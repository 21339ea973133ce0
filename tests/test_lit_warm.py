"""Commands that lit runs in forks of a warm process end as they would in their own process."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LIT = Path(__file__).parents[1] / "lit_tests"
PROGRAMS = Path(sys.executable).parent

STATE = """
import os, sys
import tilepass.core.remarks as module
found = hasattr(module, "left"), "tilepass.sim" in sys.modules
print(sys.argv[1:], os.getcwd(), sys.path[0], *found)
print("to stderr", file=sys.stderr)
module.left = True
if "abort" in sys.argv:
    os.abort()
sys.exit(3)
"""


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which programs are warm."""
    spec = importlib.util.spec_from_file_location("warm", LIT / "warm.py")
    assert spec
    assert spec.loader
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("warm")
    path = os.pathsep.join([str(folder), str(PROGRAMS), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    module.start(folder, environment, PROGRAMS)
    yield environment
    module.stop()


def run(*command: str, **named: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, **named)


@pytest.mark.parametrize(
    "arguments",
    [
        ["-", "-p", "test-round-trip", "--emit", "generic"],
        ["-", "-p", "no-such-pass"],
        ["no-such-file.mlir", "-p", "test-round-trip"],
        ["--help"],
        ["--no-such-option"],
    ],
)
def test_output_and_status_are_those_of_the_program(
    arguments: list[str], warm: dict[str, str]
) -> None:
    text = (LIT / "passes" / "triton" / "test-round-trip.mlir").read_text()
    cold = run(str(PROGRAMS / "tilepass-opt"), *arguments, input=text)
    found = run("tilepass-opt", *arguments, input=text, env=warm)
    assert (found.stdout, found.stderr) == (cold.stdout, cold.stderr)
    assert found.returncode == cold.returncode


def test_each_command_starts_anew(warm: dict[str, str], tmp_path: Path) -> None:
    """With its own folder and arguments, and nothing left of the one before."""
    script = tmp_path / "state.py"
    script.write_text(STATE)
    for words in (["one"], ["two", "three"]):
        done = run("python", str(script), *words, env=warm, cwd=tmp_path)
        assert done.stdout == f"{words} {tmp_path} {tmp_path} False True\n"
        assert (done.stderr, done.returncode) == ("to stderr\n", 3)


def test_a_crash_is_a_crash(warm: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "state.py"
    script.write_text(STATE)
    assert run("python", str(script), "abort", env=warm).returncode == -signal.SIGABRT


@pytest.mark.parametrize("name", ["TILEPASS_VALIDATE_SHAPES", "PYTHONPATH"])
def test_another_environment_is_a_process_of_its_own(
    name: str, warm: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "state.py"
    script.write_text(STATE)
    done = run("python", str(script), env={**warm, name: str(tmp_path)}, cwd=tmp_path)
    assert done.stdout == f"[] {tmp_path} {tmp_path} False False\n"
    assert done.returncode == 3


def test_python_without_a_program_is_a_process_of_its_own(warm: dict[str, str]) -> None:
    done = run("python", "-c", "import sys; print('tilepass.sim' in sys.modules)", env=warm)
    assert done.stdout == "False\n"
