"""What wheel, source distribution and editable install hold, and that an unpacked wheel works.

The builds run in a copy of the tree, without network and without build isolation.
"""

import io
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import tilepass
from tilepass.cli.guard import run_guarded
from tilepass.core.extras import EXTRAS

SOURCE = Path(__file__).resolve().parents[1]
INPUTS = (
    "pyproject.toml",
    "setup.py",
    "MANIFEST.in",
    "LICENSE",
    "README.md",
    "src",
    "passes",
    "kernels",
)
BUILD = """
import sys
from setuptools import build_meta
getattr(build_meta, sys.argv[1])(sys.argv[2])
"""
STARTUP_HOOK = "tilepass_startup.pth"


def build(tree: Path, kind: str, output: Path) -> Path:
    """Run a PEP 517 hook in a source tree; the one file that it leaves in `output`."""
    output.mkdir()
    result = subprocess.run(
        [sys.executable, "-c", BUILD, kind, str(output)],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "would be ignored" not in result.stderr
    (built,) = output.iterdir()
    return built


def modules(tree: Path, folder: str) -> set[str]:
    """The Python files of a package folder, relative to `src`, links followed."""
    names = {
        Path(root, name).relative_to(tree / "src").as_posix()
        for root, _, names in os.walk(tree / "src" / folder, followlinks=True)
        for name in names
        if name.endswith(".py")
    }
    assert names, f"{folder} holds no modules"
    return names


def wheel_contents(wheel: Path) -> Mapping[str, zipfile.ZipInfo]:
    """The entries of a wheel by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry for entry in archive.infolist()}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the build reads, links kept, without leftovers of earlier builds."""
    copy = tmp_path_factory.mktemp("tree")
    for name in INPUTS:
        source = SOURCE / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, copy / name, symlinks=True, ignore=ignore)
        else:
            shutil.copy(source, copy / name)
    return copy


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from the tree."""
    return build(tree, "build_wheel", tmp_path_factory.mktemp("wheel") / "out")


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the wheel's files."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run_unpacked(unpacked: Path, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run code as if the wheel's files were installed, before any other tilepass."""
    folder = repr(str(unpacked))
    prologue = f"import site, sys\nsys.path.insert(0, {folder})\nsite.addsitedir({folder})\n"
    return subprocess.run(
        [sys.executable, "-S", "-c", f"{prologue}site.main()\n{code}"],
        env={k: v for k, v in os.environ.items() if k != "TILEPASS"} | variables,
        cwd=unpacked,
        capture_output=True,
        text=True,
        check=False,
    )


def test_wheel_holds_passes_and_kernels_as_real_files(tree: Path, wheel: Path) -> None:
    contents = wheel_contents(wheel)
    assert modules(tree, "tilepass/passes") <= contents.keys()
    assert modules(tree, "tilepass/kernels") <= contents.keys()
    # The upper half of the external attributes is the Unix mode; 0o120000 marks a link.
    links = [n for n, e in contents.items() if (e.external_attr >> 16) & 0o170000 == 0o120000]
    assert links == []


def test_wheel_holds_all_modules_and_nothing_else(tree: Path, wheel: Path) -> None:
    packed = {name for name in wheel_contents(wheel) if name.endswith(".py")}
    assert packed == modules(tree, "tilepass")


def test_wheel_holds_data_files(tree: Path, wheel: Path) -> None:
    contents = wheel_contents(wheel)
    templates = (tree / "src" / "tilepass" / "dump" / "templates").iterdir()
    expected = {path.relative_to(tree / "src").as_posix() for path in templates}
    assert expected
    assert expected | {"tilepass/py.typed", STARTUP_HOOK} <= contents.keys()
    assert any(name.endswith("licenses/LICENSE") for name in contents)


def test_wheel_from_source_distribution_is_the_same(
    tree: Path, wheel: Path, tmp_path: Path
) -> None:
    sdist = build(tree, "build_sdist", tmp_path / "sdist")
    shutil.unpack_archive(sdist, tmp_path)
    extracted = tmp_path / sdist.name.removesuffix(".tar.gz")
    rebuilt = build(extracted, "build_wheel", tmp_path / "wheel")
    assert wheel_contents(rebuilt).keys() == wheel_contents(wheel).keys()


def test_editable_install_has_the_startup_hook(tree: Path, tmp_path: Path) -> None:
    editable = build(tree, "build_editable", tmp_path / "editable")
    with zipfile.ZipFile(editable) as archive:
        names = archive.namelist()
        record = next(name for name in names if name.endswith("RECORD"))
        # What is not on record would stay behind when the project is uninstalled.
        recorded = io.TextIOWrapper(archive.open(record)).read()
    assert STARTUP_HOOK in names
    assert f"{STARTUP_HOOK}," in recorded


def test_entry_points_of_the_unpacked_wheel_work(unpacked: Path) -> None:
    code = f"""
from importlib import metadata
import tilepass
assert tilepass.__file__.startswith({str(unpacked)!r}), tilepass.__file__
for name in ("tilepass", "tilepass-opt"):
    (point,) = [p for p in metadata.distribution("tilepass").entry_points if p.name == name]
    sys.argv = [name, "--help"]
    try:
        status = point.load()()
    except SystemExit as exit:
        status = exit.code
    assert not status, (name, status)
"""
    result = run_unpacked(unpacked, code)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("usage: ") == 2


def test_startup_hook_activates_the_pipeline_of_the_environment(unpacked: Path) -> None:
    loaded = "print('tilepass._startup' in sys.modules)"
    assert run_unpacked(unpacked, loaded).stdout == "False\n"
    assert run_unpacked(unpacked, loaded, TILEPASS="flatten-loops").stdout == "True\n"
    misspelt = run_unpacked(unpacked, "import triton", TILEPASS="flaten-loops")
    assert misspelt.returncode != 0
    assert "error: TILEPASS: unknown pass 'flaten-loops'" in misspelt.stderr


@pytest.mark.parametrize("name", ["matplotlib.pyplot", "torch", "lit", "other"])
def test_what_an_extra_would_have_brought_is_said(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(_: Sequence[str]) -> int:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    if name == "other":
        with pytest.raises(ModuleNotFoundError):
            run_guarded(command, [])
        return
    assert run_guarded(command, []) == 1
    package = name.partition(".")[0]
    extra = f"pip install 'tilepass[{EXTRAS[package]}]'"
    said = f"error: this needs {package}, which is not installed: {extra}\n"
    assert capsys.readouterr().err == said


def test_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    extras = {
        requirement.partition(">")[0]: extra
        for extra, requirements in project["optional-dependencies"].items()
        for requirement in requirements
        if extra not in ("all", "dev")
    }
    assert extras == EXTRAS
    (everything,) = project["optional-dependencies"]["all"]
    assert everything == f"tilepass[{','.join(dict.fromkeys(EXTRAS.values()))}]"
    assert "tilepass[all]" in project["optional-dependencies"]["dev"]
    assert not extras.keys() & {each.partition(">")[0] for each in project["dependencies"]}
    assert project["version"] == tilepass.__version__
