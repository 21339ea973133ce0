"""The scripts behind the CMake workflows: environment, check and demo."""

import importlib.util
import itertools
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parents[1]


def load(path: str) -> Any:
    """A script of this repository as a module."""
    name = f"script_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, SOURCE / path)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


environment = load("cmake/environment.py")
check = load("scripts/check.py")


@pytest.mark.parametrize(
    ("version", "accepted"),
    [("3.5.1", False), ("3.6", True), ("3.6.0", True), ("3.9.1+git0", True), ("3.10.0", False)],
)
def test_range_of_a_requirement(version: str, accepted: bool) -> None:
    assert environment.in_range(version, "triton>=3.6,<3.10") is accepted


def test_pins_are_within_the_ranges_that_users_may_have() -> None:
    project = environment.pyproject()["project"]
    extras = project["optional-dependencies"].values()
    requirements = [*project["dependencies"], *itertools.chain.from_iterable(extras)]
    ranges = {requirement.split(">=")[0].split("[")[0]: requirement for requirement in requirements}
    pins = dict(line.split("==") for line in environment.pins_to_apply(reuse=False).split())
    assert pins
    for name, version in pins.items():
        assert environment.in_range(version, ranges[name]), name
    unpinned = ranges.keys() - pins.keys() - {"torch", "tilepass"}
    assert not unpinned, "an unpinned dependency makes the check change by itself"


def outcome(code: int, output: str, closing: str | None) -> Any:
    """What `scripts/check.py` makes of a command that ended so."""
    return check.Outcome(check.Step("a step", ("a-command",), closing), code, output, 0.0, 0.0)


def suite(kind: str) -> Any:
    """The closing pattern of a test runner's step."""
    step = check.lit_step if kind == "lit" else check.pytest_step
    return step("suite", Path("python")).closing


@pytest.mark.parametrize(
    ("kind", "output", "closing"),
    [
        (
            "lit",
            "Testing Time: 1.0s\n\nTotal Discovered Tests: 9\n  Passed: 9 (100.00%)\n",
            ["Total Discovered Tests: 9", "  Passed: 9 (100.00%)"],
        ),
        ("pytest", "...\n===== 7 passed, 2 skipped in 0.10s =====\n", None),
    ],
)
def test_a_suite_that_ran_has_closing_lines(
    kind: str, output: str, closing: list[str] | None
) -> None:
    result = outcome(0, output, suite(kind))
    assert result.problem is None
    assert result.closing_lines() == (closing or [output.splitlines()[-1]])


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("lit", ""),
        ("lit", "Total Discovered Tests: 0\n"),
        ("pytest", "=== no tests ran in 0s ===\n"),
    ],
)
def test_a_suite_that_ran_nothing_failed(kind: str, output: str) -> None:
    assert "ran nothing" in outcome(0, output, suite(kind)).problem


def test_quick_finds_the_tests_that_are_nearest() -> None:
    changed = ["passes/triton/flatten_loops.py", "lit_tests/ir/regions.mlir"]
    assert {"lit_tests/ir/regions.mlir", "lit_tests/passes/triton/flatten-loops.mlir"} < set(
        check.nearest_irs(changed)
    )
    assert check.nearest_tests(["scripts/check.py"])[0] == "tests/test_setup.py"
    assert "tests/test_digest.py" in check.nearest_tests(["src/tilepass/core/digest.py"])
    assert check.nearest_tests(["LICENSE"]) == []


def test_the_summary_adds_up() -> None:
    steps = [outcome(0, "=== 5 passed in 1s ===\n", suite("pytest"))] * 2
    lines = list(check.summary([replace(each, seconds=3.0, cpu=4.4) for each in steps], 5.0))
    assert lines[1].split() == ["a", "step", "3", "4"]
    assert lines[3].split() == ["2", "steps", "5", "9"]


def test_a_failed_step_keeps_its_exit_code() -> None:
    assert (
        outcome(3, "=== 1 failed, 5 passed in 1s ===\n", suite("pytest")).problem == "exit code 3"
    )
    assert outcome(0, "", None).problem is None


def test_gpu_check_fails_without_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    command = [sys.executable, str(SOURCE / "scripts" / "check.py"), "--gpu"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "error: the GPU checks need a CUDA GPU" in result.stderr


def test_check_without_the_environments_says_how_to_make_them(tmp_path: Path) -> None:
    script = tmp_path / "scripts" / "check.py"
    script.parent.mkdir()
    shutil.copy(SOURCE / "scripts" / "check.py", script)
    command = [sys.executable, str(script), "--only", "ruff"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    missing = f"error: there is no {tmp_path / '.venv' / 'bin' / 'python'} (cmake --workflow "
    assert result.stderr.startswith(missing)


@pytest.fixture(scope="module")
def demo() -> str:
    """What the demo prints on a machine without a GPU."""
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    command = [sys.executable, str(SOURCE / "scripts" / "demo.py")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_demo_without_a_gpu(demo: str) -> None:
    assert "[flatten-loops] passed: flatten = on" in demo
    assert "\n+     } {tt.flatten}\n" in demo
    assert demo.count("\nok: ") == 2


def test_readme_shows_what_the_demo_prints(demo: str) -> None:
    if not metadata.version("triton").startswith("3.6."):
        pytest.skip("the README shows the output with Triton 3.6")
    readme = (SOURCE / "README.md").read_text()
    shown = readme.split("<!-- demo -->\n```text\n")[1].split("```\n<!-- end of demo -->")[0]
    assert shown in demo


SLOWER = {"ratio": 1.1, "low": 1.09, "high": 1.11, "verdict": "SLOWER"}
REPORT: dict[str, Any] = {
    "schema": "tilepass-ab/1",
    "environment": {"GPU": "a GPU", "driver": "1.2", "triton": "3.6.0", "torch": "2.13.0"},
    "kernel": "a-kernel",
    "arms": [
        {"label": "A", "pipeline": "", "overrides": {}},
        {"label": "B", "pipeline": "a-pass{mode=on}", "overrides": {"x": "1"}},
        {"label": "C", "pipeline": "a-pass", "overrides": {}},
    ],
    "points": [
        {
            "shape": [1024, 1024, 512],
            "overrides": {},
            "status": "timed",
            "flops": 2e9,
            "duplicate": {"ratio": 1.0001, "low": 1.0, "high": 1.0002, "verdict": "SAME"},
            "arms": [
                {"arm": "A", "median_us": 20.0, "against_baseline": None, "same_binary_as": "A"},
                {"arm": "B", "median_us": 22.0, "against_baseline": SLOWER, "same_binary_as": "B"},
                {"arm": "C", "median_us": 22.0, "against_baseline": SLOWER, "same_binary_as": "B"},
            ],
        }
    ],
}


def test_table_says_what_the_report_says() -> None:
    caption, _, header, _, line = load("benchmarks/tables.py").table(REPORT).splitlines()
    assert caption.startswith("**a GPU**, driver 1.2, Triton 3.6.0, torch 2.13.0; `a-kernel`; ")
    assert "B: `a-pass{mode=on}, x=1`" in caption
    assert header.count("|") == line.count("|")
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:5] == ["1024x1024x512", "20.0", "22.0", "22.0", "100"]
    assert cells[5:7] == ["1.1000 [1.0900, 1.1100]", "SLOWER"]
    assert cells[7:] == ["the binary of B", "SLOWER", "1.0001 SAME"]


def test_tables_of_the_readme_agree_with_their_reports() -> None:
    command = [sys.executable, "-m", "benchmarks.tables", "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
