"""Runs tests on mutants of a module: a copy of the package by links, one file of it changed.

A mutant's process is forked from one that has imported everything but tilepass, so that it costs
an import of tilepass and the tests up to the first that fails. What those start finds the same
copy. A mutant that is not done within its share of CPU time is one that was noticed.
"""

from __future__ import annotations

import importlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rule_mutants import Mutant

ROOT = Path(__file__).resolve().parents[1]
ACCEPTED = ROOT / "tests" / "rule_mutants_accepted.toml"
_PRELOADED = ("numpy", "hypothesis", "ml_dtypes", "cutlass", "triton", "torch", "tests")
_CPU_SECONDS, _WALL_SECONDS = 200, 900


@dataclass(frozen=True)
class Subject:
    """A module (its path in the package) and the tests that concern it, the quickest first: the
    first file of pytest's, then lit's tests, then the other files."""

    module: str
    tests: tuple[str, ...]
    lit: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The file, by its path in the package."""
        return ROOT / "src" / "tilepass" / self.module


@dataclass(frozen=True)
class Verdict:
    """Whether the tests noticed a mutant, by which, and the CPU time that took."""

    mutant: Mutant
    killed: bool
    by: str
    seconds: float
    log: str


def preload() -> None:
    """Import what tilepass and its tests stand on."""
    os.environ.setdefault("CUTE_DSL_ARCH", "sm_90a")
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in _PRELOADED:
        importlib.import_module(name)
    assert "tilepass" not in sys.modules


def accepted(module: str, mutants: Sequence[Mutant]) -> dict[Mutant, str]:
    """The mutants of a module that no test can or need notice, and why.

    Raises KeyError for a name that none of them has: the list is out of date.
    """
    found: dict[Mutant, str] = {}
    for group in tomllib.loads(ACCEPTED.read_text())["accepted"]:
        for name in group["mutants"] if group["module"] == module else ():
            named = [each for each in mutants if _has_name(each, name)]
            if not named:
                raise KeyError(f"{ACCEPTED.name}: {module} has no mutant {name!r}")
            found |= dict.fromkeys(named, str(group["reason"]))
    return found


def _has_name(mutant: Mutant, name: str) -> bool:
    if name.endswith("*"):
        return mutant.name.startswith(name.removesuffix("*"))
    return mutant.name == name


class NotTestable(Exception):
    """The tests fail on the module as it is: nothing can be said of its mutants."""


def require_tests_to_pass(subject: Subject) -> None:
    """Raises NotTestable."""
    unchanged = judge(subject, Mutant("unchanged", 0, subject.path.read_text()))
    if unchanged.killed:
        raise NotTestable(f"{subject.module} as it is fails {unchanged.by}\n{unchanged.log}")


def judge(subject: Subject, mutant: Mutant) -> Verdict:
    """Run the tests of a module on one of its mutants."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name)
        source = folder / "source"
        parts = ("tilepass", *Path(subject.module).parts)
        _overlay(ROOT / "src", source, parts, mutant.source)
        process = os.fork()
        if not process:
            _run(subject, source, folder)
        status, seconds = _wait(process)
        log = (folder / "log").read_text(errors="replace") if (folder / "log").exists() else ""
    if os.WIFSIGNALED(status):
        return Verdict(mutant, True, f"signal {os.WTERMSIG(status)}", seconds, log)
    return Verdict(mutant, os.WEXITSTATUS(status) != 0, _first_failure(log), seconds, log)


def _overlay(real: Path, copy: Path, parts: tuple[str, ...], text: str) -> None:
    """A folder like `real`, by links, in which the file at `parts` holds `text`."""
    copy.mkdir()
    for entry in real.iterdir():
        target = copy / entry.name
        if entry.name == parts[0]:
            if len(parts) == 1:
                target.write_text(text)
            else:
                _overlay(entry, target, parts[1:], text)
        elif entry.name == "__pycache__":
            unchanged = f"{Path(parts[0]).stem}.*"
            shutil.copytree(entry, target, ignore=shutil.ignore_patterns(unchanged))
        else:
            target.symlink_to(entry.resolve())


def _run(subject: Subject, source: Path, folder: Path) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ["HYPOTHESIS_PROFILE"] = "first-failure"
    os.environ["PYTHONPATH"] = str(source)
    os.environ["TRITON_CACHE_DIR"] = str(folder / "cache")
    sys.path.insert(0, str(source))
    status = 3
    try:
        options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore"]
        first, rest = subject.tests[:1], subject.tests[1:]
        status = pytest.main([*options, *first])
        if status == 0 and subject.lit:
            status = _lit(subject, source)
        if status == 0 and rest:
            status = pytest.main([*options, *rest])
    finally:
        sys.stdout.flush()
        os._exit(int(status))


def _lit(subject: Subject, source: Path) -> int:
    program = str(Path(sys.executable).with_name("lit"))
    options = ["-v", "-j1", "--max-failures=1", "--param=warm=1", f"--param=source={source}"]
    return subprocess.run([program, *options, *subject.lit], check=False).returncode


def _wait(process: int) -> tuple[int, float]:
    end = time.monotonic() + _WALL_SECONDS
    while True:
        done, status, usage = os.wait4(process, os.WNOHANG)
        if done:
            _kill_group(process)
            return status, usage.ru_utime + usage.ru_stime
        if time.monotonic() > end:
            _kill_group(process)
        time.sleep(0.02)


def _kill_group(process: int) -> None:
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def _first_failure(log: str) -> str:
    found = re.search(r"^(?:FAILED|ERROR|FAIL:) (?:tilepass :: )?(\S+)", log, re.MULTILINE)
    return found[1] if found else ""
