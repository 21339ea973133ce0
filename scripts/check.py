"""Run every check of this source tree and print the test runners' closing lines.

Usage: .venv/bin/python scripts/check.py [--gpu] [--only NAME ...]

Without `--gpu`: ruff, pyright, lit and pytest in the environments of Triton 3.6 and 3.9; nothing
needs a GPU. With `--gpu`: the tests marked `gpu`, and it fails where there is none.
Every step runs whatever the others give; the whole output of each is kept in `out/check`.
Exits non-zero if one failed.
"""

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
LOGS = SOURCE / "out" / "check"
PYTHON = SOURCE / ".venv" / "bin" / "python"
PYTHON_TRITON39 = SOURCE / ".venv-triton39" / "bin" / "python"
# Ends a step that hangs. One that other work on the machine slows down is left alone.
STEP_LIMIT_SECONDS = 4 * 3600
TIMED_OUT = 124  # as the command `timeout` exits
JOBS = os.cpu_count() or 1
# Tests of statistics, packaging, ..., and of the kernels in Triton's interpreter, which do
# not touch the Triton that is installed, or do so in a way that other tests cover for both.
ONE_TRITON_IS_ENOUGH = (
    "test_ab_counters.py",
    "test_ab_library.py",
    "test_ab_nvml.py",
    "test_ab_point.py",
    "test_ab_protocol.py",
    "test_ab_quoted_tables.py",
    "test_ab_statistics.py",
    "test_ab_studies.py",
    "test_ab_supervisor.py",
    "test_ab_warp_specialize_study.py",
    "test_core.py",
    "test_cute_*.py",
    "test_dump_lexers.py",
    "test_flashinfer*.py",
    "test_ir_dialect_modules.py",
    "test_kernels_cute*.py",
    "test_kernels_interpreted.py",
    "test_packaging.py",
    "test_setup.py",
    "test_rule_mutants.py",
    "test_sim_protocol_mutants.py",
    "test_sim_protocol_rules.py",
    "test_sim_scalars.py",
    "test_tutorials.py",
    "test_zero_structure*.py",
)


@dataclass(frozen=True)
class Step:
    """One command; its closing lines begin with the first one in which `closing` is found.

    A test runner that ends well without such a line has run no test, which is a failure.
    """

    name: str
    command: tuple[str, ...]
    closing: str | None = None

    @property
    def slug(self) -> str:
        """The name as a file name."""
        return self.name.replace(" ", "-").replace(",", "")


@dataclass(frozen=True)
class Outcome:
    """What a step gave: exit code, output and wall-clock seconds."""

    step: Step
    code: int
    output: str
    seconds: float

    def closing_lines(self) -> list[str]:
        """The lines that sum the output up."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        if self.step.closing is None:
            return []
        pattern = re.compile(self.step.closing)
        return list(itertools.dropwhile(lambda line: not pattern.search(line), lines))

    @property
    def problem(self) -> str | None:
        """Why the step failed, or None."""
        if self.code == TIMED_OUT:
            return f"stopped after {STEP_LIMIT_SECONDS} s"
        if self.code != 0:
            return f"exit code {self.code}"
        if self.step.closing and not self.closing_lines():
            return "it printed no closing line, so it ran nothing"
        return None


def static_steps() -> list[Step]:
    """Format, lint and types. Types are checked against the main environment only."""
    python = str(PYTHON)
    return [
        Step("ruff check", (python, "-m", "ruff", "check", ".")),
        Step("imports", (str(PYTHON.with_name("lint-imports")), "--no-cache")),
        Step("ruff format", (python, "-m", "ruff", "format", "--check", ".")),
        Step("docs", (python, "-m", "mkdocs", "build", "--strict", "--quiet")),
        Step("pyright", (python, "-m", "pyright", "--pythonpath", python), r"^\d+ errors?, "),
    ]


def lit_step(name: str, python: Path, *arguments: str) -> Step:
    """The lit suite in one environment."""
    run_lit = "import sys; from lit.main import main; sys.exit(main())"  # it has no `python -m lit`
    command = (str(python), "-c", run_lit, "-sv", f"-j{JOBS}", *arguments)
    return Step(name, command, r"^Total Discovered Tests: [1-9]")


def pytest_step(name: str, python: Path, *arguments: str) -> Step:
    """The pytest suite in one environment."""
    return Step(name, (str(python), "-m", "pytest", *arguments), r"^=+ .*\b[1-9]\d* passed.* =+$")


def test_steps() -> Iterator[Step]:
    """The test suites, in both environments: all of them, but for what one Triton is enough for."""
    workers = ("-n", str(JOBS), "--dist", "worksteal", "-m", "not gpu")
    warm = ("--param", "warm=1")
    skipped = tuple(f"--ignore-glob=tests/{pattern}" for pattern in ONE_TRITON_IS_ENOUGH)
    yield lit_step("lit, Triton 3.6", PYTHON, *warm, "lit_tests")
    yield pytest_step("pytest, Triton 3.6", PYTHON, *workers)
    without_cute = ("--filter-out", "passes/cute", "lit_tests")
    yield lit_step("lit, Triton 3.9", PYTHON_TRITON39, *warm, *without_cute)
    yield pytest_step("pytest, Triton 3.9", PYTHON_TRITON39, *workers, *skipped)


def gpu_steps() -> list[Step]:
    """The tests that need a GPU; pytest's one at a time, since they measure."""
    steps = [pytest_step("pytest, GPU", PYTHON, "-m", "gpu")]
    folder = SOURCE / "lit_tests" / "gpu"
    # lit takes a folder without tests for an error.
    if any(path.suffix != ".cfg" for path in folder.iterdir()):
        steps.append(lit_step("lit, GPU", PYTHON, "--param", "gpu=required", str(folder)))
    return steps


def clean_environment(step: Step) -> dict[str, str]:
    """A step's environment: nobody's settings of Triton or tilepass, and a cache of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TRITON_", "TILEPASS"))}
    # Hundreds of processes start: none should have to compile Python's modules again.
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    cache = LOGS / f"{step.slug}.triton-cache"
    shutil.rmtree(cache, ignore_errors=True)
    return kept | {"TRITON_CACHE_DIR": str(cache)}


def run_step(step: Step) -> Outcome:
    """Run one step and tell how it went; the output of a failed one is printed whole."""
    start = time.monotonic()
    log = LOGS / f"{step.slug}.log"
    with log.open("wb") as output:
        try:
            code = subprocess.run(
                step.command,
                cwd=SOURCE,
                env=clean_environment(step),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=STEP_LIMIT_SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = TIMED_OUT
    outcome = Outcome(step, code, log.read_text(errors="replace"), time.monotonic() - start)
    verdict = "FAIL " if outcome.problem else "ok   "
    text = f"{verdict} {step.name} ({outcome.seconds:.0f} s)"
    if outcome.problem:
        text += f"\n{outcome.output}\n^ {step.name}: {outcome.problem}"
    print(text, flush=True)
    return outcome


def run_in_order(steps: Sequence[Step]) -> list[Outcome]:
    """Run steps one after the other."""
    return [run_step(step) for step in steps]


def gpu_problem() -> str | None:
    """Why the GPU tests cannot run here, or None."""
    import torch

    if not torch.cuda.is_available():
        return f"torch {torch.__version__} finds no CUDA GPU on this machine"
    print(f"GPU: {torch.cuda.get_device_name()}", flush=True)
    return None


def main() -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Run every check of this source tree.")
    parser.add_argument("--gpu", action="store_true", help="run the tests that need a CUDA GPU")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="steps whose name holds a NAME")
    arguments = parser.parse_args()
    if arguments.gpu and (problem := gpu_problem()):
        print(f"error: the GPU checks need a CUDA GPU: {problem}", file=sys.stderr)
        return 1
    # Two queues: the static checks keep one core busy at most, the test suites spread over all.
    queues = [gpu_steps()] if arguments.gpu else [static_steps(), list(test_steps())]
    if arguments.only:
        queues = [[s for s in q if any(word in s.name for word in arguments.only)] for q in queues]
    if not any(queues):
        parser.error(f"no step is named like {arguments.only}")
    commands = dict.fromkeys(step.command[0] for queue in queues for step in queue)
    if missing := [python for python in commands if not Path(python).is_file()]:
        made_by = "cmake --workflow --preset check makes the environments"
        print(f"error: there is no {' and no '.join(missing)} ({made_by})", file=sys.stderr)
        return 1
    LOGS.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with ThreadPoolExecutor(max_workers=len(queues)) as pool:
        outcomes = [outcome for queue in pool.map(run_in_order, queues) for outcome in queue]
    failed = [outcome.step.name for outcome in outcomes if outcome.problem]
    print(f"\n{len(outcomes)} steps in {time.monotonic() - start:.0f} s")
    for outcome in outcomes:
        if lines := outcome.closing_lines():
            print(f"-- {outcome.step.name}", *lines, sep="\n")
    print(f"check: FAILED: {', '.join(failed)}" if failed else "check: everything passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
