"""Run every check of this source tree and print the test runners' closing lines.

Usage: .venv/bin/python scripts/check.py [--quick | --gpu] [--only NAME ...]

Without an option: ruff, pyright, docs, lit and pytest in the environments of Triton 3.6 and 3.9;
nothing needs a GPU. With `--gpu`: the tests marked `gpu`, and it fails where there is none.
With `--quick`, in less than a minute: ruff, and of the tests in `.venv` those nearest to what was
changed since the last commit (where nothing was: by the last one), as many as fit into the time.
Every step runs whatever the others give; the whole output of each is kept in `out/check`.
At the end come the wall-clock and CPU seconds of each. Exits non-zero if one failed.
"""

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
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
# Two steps run at a time: the static ones keep one core busy at most, and so does a test that has
# to be waited for.
SLOTS = 2
JOBS = max(1, (os.cpu_count() or 1) // SLOTS)
# Pytest starts no test after so many seconds, and takes so many files at most.
QUICK_SECONDS = 35
QUICK_FILES = 20
# Tests of statistics, packaging, the simulator's own rules, ..., and of the kernels
# in Triton's interpreter, which do not touch the Triton that is installed (importing it for nothing
# but an example), or do so in a way that other tests cover for both.
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
    "test_analysis_dots.py",
    "test_analysis_nest_facts.py",
    "test_analysis_trip_count.py",
    "test_core.py",
    "test_cute_*.py",
    "test_diff.py",
    "test_digest.py",
    "test_dump_diff.py",
    "test_dump_lexers.py",
    "test_dump_register_hazards.py",
    "test_flashinfer*.py",
    "test_frontend_placed.py",
    "test_ir_aliases.py",
    "test_ir_dialect_modules.py",
    "test_ir_loops.py",
    "test_kernels_cute*.py",
    "test_kernels_interpreted.py",
    "test_opt_requirement.py",
    "test_opt_source.py",
    "test_opt_verify.py",
    "test_packaging.py",
    "test_passes_cost_model.py",
    "test_rule_mutants.py",
    "test_setup.py",
    "test_sim_protocol_exact.py",
    "test_sim_protocol_mutants.py",
    "test_sim_protocol_rules.py",
    "test_sim_scalars.py",
    "test_supervise.py",
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
    """What a step gave: exit code, output, wall-clock seconds, and CPU seconds of all processes."""

    step: Step
    code: int
    output: str
    seconds: float
    cpu: float

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


def lint_steps() -> list[Step]:
    """Style, format, and which module may import which."""
    python = str(PYTHON)
    return [
        Step("ruff check", (python, "-m", "ruff", "check", ".")),
        Step("ruff format", (python, "-m", "ruff", "format", "--check", ".")),
        Step("imports", (str(PYTHON.with_name("lint-imports")), "--no-cache")),
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
    """The test suites, the longest first: in both environments, but for what one Triton is enough
    for."""
    workers = ("-n", str(JOBS), "--dist", "worksteal") if JOBS > 1 else ()
    common = (*workers, "-m", "not gpu")
    warm = ("--param", "warm=1")
    skipped = tuple(f"--ignore-glob=tests/{pattern}" for pattern in ONE_TRITON_IS_ENOUGH)
    alone = [path for pattern in ONE_TRITON_IS_ENOUGH for path in SOURCE.glob(f"tests/{pattern}")]
    files = sorted({str(path.relative_to(SOURCE)) for path in alone})
    yield pytest_step("pytest, Triton 3.6", PYTHON, *common, *skipped)
    yield pytest_step("pytest, Triton 3.9", PYTHON_TRITON39, *common, *skipped)
    yield pytest_step("pytest, any Triton", PYTHON, *common, *files)
    yield lit_step("lit, Triton 3.6", PYTHON, *warm, "lit_tests")
    without_cute = ("--filter-out", "passes/cute", "lit_tests")
    yield lit_step("lit, Triton 3.9", PYTHON_TRITON39, *warm, *without_cute)


def all_steps() -> list[Step]:
    """First what ends at once, then the longest; the last ones end at nearly the same time."""
    python = str(PYTHON)
    pyright = (python, "-m", "pyright", "--pythonpath", python)
    docs = (python, "-m", "mkdocs", "build", "--strict", "--quiet")
    return [
        *lint_steps(),
        *test_steps(),
        # Types are checked against the main environment only.
        Step("pyright", pyright, r"^\d+ errors?, "),
        Step("docs", docs),
    ]


def quick_steps() -> list[Step]:
    """Ruff, and the tests in the main environment that are nearest to what was changed."""
    changed = changed_files()
    tests, irs = nearest_tests(changed), nearest_irs(changed)
    some = ("-n", str(JOBS * SLOTS), "--dist", "load", "--maxschedchunk", "1", "-m", "not gpu")
    steps = lint_steps()
    if tests:
        steps.append(pytest_step("pytest", PYTHON, *some, f"--seconds={QUICK_SECONDS}", *tests))
    if irs:
        steps.append(lit_step("lit", PYTHON, "--param", "warm=1", *irs))
    return steps


def changed_files() -> list[str]:
    """The files that differ from the last commit; where none does, those that it changed."""

    def git(*arguments: str) -> list[str]:
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    own = [*git("diff", "--name-only", "HEAD"), *git("ls-files", "-o", "--exclude-standard")]
    return own or git("diff", "--name-only", "HEAD~1")


def nearest_tests(changed: Iterable[str]) -> list[str]:
    """The test files from which the fewest imports lead to one of these files, nearest first."""
    folders = ("src/tilepass", "passes", "kernels", "benchmarks", "tests", "scripts")
    paths = [path for folder in folders for path in sorted(SOURCE.glob(f"{folder}/**/*.py"))]
    files = [str(path.relative_to(SOURCE)) for path in paths]
    mentioned = {file: names_in((SOURCE / file).read_text()) for file in files}
    near, found = set(changed), list[str]()
    while near and len(found) < QUICK_FILES:
        found += sorted(file for file in near if re.match(r"tests/test_\w+\.py", file))
        names = {name for file in near for name in names_of(file)}
        mentioned = {file: known for file, known in mentioned.items() if file not in near}
        near = {file for file, known in mentioned.items() if known & names}
    return [file for file in found if (SOURCE / file).is_file()][:QUICK_FILES]


def names_in(source: str) -> set[str]:
    """The modules that a file may import, and the scripts and other files that it names."""
    found = set(re.findall(r"[\w-]+\.(?:py|md|json|toml|txt)\b", source))
    imports = re.findall(r"^ *from ([\w.]+) import (\([^)]*\)|.*)", source, re.MULTILINE)
    for module, names in imports:
        found |= {module, *(f"{module}.{name}" for name in re.findall(r"\w+", names))}
    return found | set(re.findall(r"^ *import ([\w.]+)", source, re.MULTILINE))


def names_of(file: str) -> set[str]:
    """The names under which `names_in` finds a file."""
    path = Path(file)
    parts = list(path.with_suffix("").parts)
    if path.suffix != ".py" or parts[0] == "scripts":
        return {path.name}
    parts = parts[1:] if parts[0] == "src" else parts
    parts = ["tilepass", *parts] if parts[0] in ("passes", "kernels") else parts
    name = ".".join(parts).removesuffix(".__init__")
    return {name, name.removeprefix("tests.")}


def nearest_irs(changed: Iterable[str]) -> list[str]:
    """The lit tests among these files, and those of a pass that is."""
    found = set[str]()
    for file in changed:
        if re.match(r"lit_tests/.*/[^/]*\.(mlir|ttir|ttgir|test|py)$", file):
            found |= {file} if "Inputs/" not in file else set()
        elif named := re.match(r"passes/\w+/(\w+)", file):
            pattern = f"lit_tests/passes/*/{named[1].replace('_', '-')}*"
            found |= {str(each.relative_to(SOURCE)) for each in SOURCE.glob(pattern)}
    return sorted(each for each in found if (SOURCE / each).is_file())


def gpu_steps() -> list[Step]:
    """The tests that need a GPU; pytest's one at a time, since they measure."""
    steps = [pytest_step("pytest, GPU", PYTHON, "-m", "gpu")]
    folder = SOURCE / "lit_tests" / "gpu"
    # lit takes a folder without tests for an error.
    if any(path.suffix != ".cfg" for path in folder.iterdir()):
        steps.append(lit_step("lit, GPU", PYTHON, "--param", "gpu=required", str(folder)))
    return steps


def clean_environment(step: Step) -> dict[str, str]:
    """A step's environment: nobody's settings of Triton or tilepass, and its own cache."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TRITON_", "TILEPASS"))}
    # Hundreds of processes start: none should have to compile Python's modules again.
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    cache = LOGS / f"{step.slug}.triton-cache"
    shutil.rmtree(cache, ignore_errors=True)
    # Two steps keep two cores busy; more threads of one would wait for each other, spinning.
    settings = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(JOBS))
    # Pyright makes much garbage.
    settings |= {"NODE_OPTIONS": "--max-semi-space-size=64", "TRITON_CACHE_DIR": str(cache)}
    return kept | settings


def run_step(step: Step) -> Outcome:
    """Run one step and tell how it went; the output of a failed one is printed whole."""
    start = time.monotonic()
    log = LOGS / f"{step.slug}.log"
    stopped = threading.Event()
    with log.open("wb") as output:
        process = subprocess.Popen(
            step.command,
            cwd=SOURCE,
            env=clean_environment(step),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        timer = threading.Timer(STEP_LIMIT_SECONDS, lambda: (stopped.set(), process.kill()))
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
    process.returncode = TIMED_OUT if stopped.is_set() else os.waitstatus_to_exitcode(status)
    seconds, cpu = time.monotonic() - start, usage.ru_utime + usage.ru_stime
    outcome = Outcome(step, process.returncode, log.read_text(errors="replace"), seconds, cpu)
    verdict = "FAIL " if outcome.problem else "ok   "
    text = f"{verdict} {step.name} ({seconds:.0f} s)"
    if outcome.problem:
        text += f"\n{outcome.output}\n^ {step.name}: {outcome.problem}"
    print(text, flush=True)
    return outcome


def gpu_problem() -> str | None:
    """Why the GPU tests cannot run here, or None."""
    import torch

    if not torch.cuda.is_available():
        return f"torch {torch.__version__} finds no CUDA GPU on this machine"
    print(f"GPU: {torch.cuda.get_device_name()}", flush=True)
    return None


def summary(outcomes: Sequence[Outcome], seconds: float) -> Iterator[str]:
    """A table of what took how long, and the closing lines of the test runners."""
    width = max(len(outcome.step.name) for outcome in outcomes)
    yield f"\n{'':{width}}  wall s   CPU s"
    for outcome in outcomes:
        yield f"{outcome.step.name:{width}}  {outcome.seconds:6.0f}  {outcome.cpu:6.0f}"
    cpu = sum(outcome.cpu for outcome in outcomes)
    yield f"{f'{len(outcomes)} steps':{width}}  {seconds:6.0f}  {cpu:6.0f}"
    for outcome in outcomes:
        if lines := outcome.closing_lines():
            yield "\n".join([f"-- {outcome.step.name}", *lines])


def main() -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Run every check of this source tree.")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="what is nearest to your changes")
    which.add_argument("--gpu", action="store_true", help="run the tests that need a CUDA GPU")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="steps whose name holds a NAME")
    arguments = parser.parse_args()
    if arguments.gpu and (problem := gpu_problem()):
        print(f"error: the GPU checks need a CUDA GPU: {problem}", file=sys.stderr)
        return 1
    steps = gpu_steps() if arguments.gpu else quick_steps() if arguments.quick else all_steps()
    if arguments.only:
        steps = [step for step in steps if any(word in step.name for word in arguments.only)]
    if not steps:
        parser.error(f"no step is named like {arguments.only}")
    commands = dict.fromkeys(step.command[0] for step in steps)
    if missing := [python for python in commands if not Path(python).is_file()]:
        made_by = "cmake --workflow --preset check makes the environments"
        print(f"error: there is no {' and no '.join(missing)} ({made_by})", file=sys.stderr)
        return 1
    LOGS.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    # What runs on a GPU is timed, so it is alone there.
    with ThreadPoolExecutor(max_workers=1 if arguments.gpu else SLOTS) as pool:
        outcomes = list(pool.map(run_step, steps))
    print(*summary(outcomes, time.monotonic() - start), sep="\n")
    failed = [outcome.step.name for outcome in outcomes if outcome.problem]
    print(f"check: FAILED: {', '.join(failed)}" if failed else "check: everything passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
