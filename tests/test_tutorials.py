"""The tutorials, carried out: their files are written, their commands are run.

This happens in a copy of the source tree with a Python environment of its own, in which the copy's
tilepass comes before the installed one.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1]
# Opening fence with language and what follows it, then the block's text.
FENCED = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = {
    "tilepass": "from tilepass.cli.main import main",
    "tilepass-opt": "from tilepass.cli.opt import main",
    "lit": "from lit.main import main",
}


TRITON, CUTE = "tutorial_triton.md", "tutorial_cute.md"


def blocks(page: str) -> list[tuple[str, str, str]]:
    """Language, attributes and text of a page's fenced blocks."""
    found: list[tuple[str, str, str]] = FENCED.findall(text_of(page))
    return found


def text_of(page: str) -> str:
    """A page of the documentation."""
    return (SOURCE / "docs" / page).read_text()


def make_environment(tree: Path) -> Path:
    """An environment for the copied tree; the folder of its programs."""
    folder = tree / ".venv"
    venv.create(folder, symlinks=True)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    shared = sysconfig.get_path("purelib")
    link = f"{tree / 'src'}\nimport site; site.addsitedir({shared!r})\n"
    (packages / "copied_tree.pth").write_text(link)
    for name, load in PROGRAMS.items():
        program = folder / "bin" / name
        program.write_text(f"#!{folder}/bin/python\nimport sys\n{load}\nsys.exit(main())\n")
        program.chmod(0o755)
    return folder / "bin"


def write_files(tree: Path) -> list[Path]:
    """Write the blocks that name a file; none may exist already."""
    written: list[Path] = []
    for _, attributes, text in [*blocks(TRITON), *blocks(CUTE)]:
        if found := re.search(r"file=(\S+)", attributes):
            path = tree / found[1]
            assert not path.exists(), f"{found[1]} is in the repository: choose another example"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            written.append(path)
    return written


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copied tree with the files of both tutorials."""
    copy = tmp_path_factory.mktemp("tree")
    # With the compiled modules, which are as good in another folder, but for unfinished ones.
    ignore = shutil.ignore_patterns("*.pyc.*", "*.egg-info", "Output")
    for name in ("src", "passes", "kernels", "lit_tests"):
        shutil.copytree(SOURCE / name, copy / name, symlinks=True, ignore=ignore)
    assert len(write_files(copy)) == 4
    make_environment(copy)
    return copy


def run_block(tree: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a shell block in the tree with its environment active."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TILEPASS", "TRITON_"))}
    path = os.pathsep.join([str(tree / ".venv" / "bin"), os.environ["PATH"]])
    variables = {"PATH": path, "TRITON_CACHE_DIR": str(tree / "out" / "triton-cache")}
    return subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=tree,
        env=kept | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def commands(page: str) -> list[str]:
    """The shell blocks in order: steps 3, 4 and 5."""
    return [text for language, _, text in blocks(page) if language == "sh"]


@pytest.mark.parametrize("page", [TRITON, CUTE])
def test_there_are_five_steps(page: str) -> None:
    assert re.findall(r"^\*\*(\d)\. ", text_of(page), re.MULTILINE) == ["1", "2", "3", "4", "5"]
    assert len(commands(page)) == 3


def test_step_3_shows_the_rewrite_and_its_remark(tree: Path) -> None:
    result = run_block(tree, commands(TRITON)[0])
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("tt.num_stages = 4 : i32") == 1
    remark = (
        r"loop-num-stages\.mlir:\d+:\d+: remark: \[loop-num-stages\] passed: tt\.num_stages = 4"
    )
    assert re.search(remark, result.stderr), result.stderr


def test_step_3_for_cute(tree: Path) -> None:
    result = run_block(tree, commands(CUTE)[0])
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("cute.gemm(") == 1
    assert result.stderr.count("removed: nobody reads the sum") == 1


@pytest.mark.parametrize("page", [TRITON, CUTE])
def test_step_4_passes(tree: Path, page: str) -> None:
    result = run_block(tree, commands(page)[1])
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"Passed *: 1 ", result.stdout), result.stdout


@pytest.mark.parametrize(
    ("page", "file", "line", "broken"),
    [
        (TRITON, "triton/loop_num_stages.py", "if not holds_dot(loop)", "if holds_dot(loop)"),
        (CUTE, "cute/cute_unread_gemms.py", "                gemm.erase()\n", ""),
    ],
)
def test_step_4_would_notice_a_pass_that_does_nothing(
    tree: Path, page: str, file: str, line: str, broken: str
) -> None:
    written = tree / "passes" / file
    text = written.read_text()
    assert line in text
    written.write_text(text.replace(line, broken))
    result = run_block(tree, commands(page)[1])
    written.write_text(text)
    assert result.returncode != 0


def test_step_5_runs_in_the_compiler(tree: Path) -> None:
    result = run_block(tree, commands(TRITON)[2])
    assert result.returncode == 0, result.stdout + result.stderr
    dumped = [path.read_text(errors="replace") for path in (tree / "out").rglob("*.ttir")]
    assert any("tt.num_stages = 2 : i32" in text for text in dumped)


def test_step_5_for_cute(tree: Path) -> None:
    result = run_block(tree, commands(CUTE)[2])
    assert result.returncode == 0, result.stdout + result.stderr
    assert "something else uses the accumulator" in result.stderr


@pytest.mark.parametrize("file", ["triton/loop_num_stages.py", "cute/cute_unread_gemms.py"])
@pytest.mark.parametrize("tool", [["ruff", "check"], ["ruff", "format", "--check"]])
def test_the_example_passes_follow_the_style(tree: Path, tool: list[str], file: str) -> None:
    command = [sys.executable, "-m", *tool, "--config", str(SOURCE / "pyproject.toml")]
    written = tree / "passes" / file
    result = subprocess.run([*command, str(written)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
