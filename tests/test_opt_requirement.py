"""Packages that are missing or too old are told before they are imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilepass.core.errors import UnsupportedVersionError
from tilepass.core.versions import Requirement

SOME_PACKAGE = Requirement("some-package", (4, 6), package="some_package")


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `__init__.py` of a package `some_package` that must not be executed."""
    monkeypatch.syspath_prepend(str(tmp_path))  # pyright: ignore[reportUnknownMemberType]
    file = tmp_path / "some_package" / "__init__.py"
    file.parent.mkdir()
    return file


@pytest.mark.parametrize("version", ["4.6.0", "4.10", "5", "4.6.0.dev1"])
def test_supported(install: Path, version: str) -> None:
    install.write_text(f'1 / 0\n__version__ = "{version}"\n')
    SOME_PACKAGE.installed()


@pytest.mark.parametrize("version", ["4.5.2", "4", "3.9"])
def test_too_old(install: Path, version: str) -> None:
    install.write_text(f"__version__ = '{version}'\n")
    expected = rf"some-package {version} is not supported \(tilepass needs some-package >= 4\.6\)"
    with pytest.raises(UnsupportedVersionError, match=expected):
        SOME_PACKAGE.installed()


def test_without_version(install: Path) -> None:
    install.write_text("")
    with pytest.raises(UnsupportedVersionError, match="does not say which version"):
        SOME_PACKAGE.installed()


def test_missing() -> None:
    with pytest.raises(UnsupportedVersionError, match="no_such_package is not installed"):
        Requirement("no-such", (1,), package="no_such_package").installed()


@pytest.mark.parametrize(
    "arguments",
    [
        ("-m", "tilepass", "opt", "f.mlir", "-p", "flatten-loops"),
        ("-m", "tilepass", "explain", "f.mlir", "-p", "flatten-loops"),
        ("-m", "tilepass", "run", "-p", "flatten-loops", "--", "true"),
        ("-m", "tilepass", "ab", "matmul", "--b", "flatten-loops", "--compile-only"),
        ("-c", "import triton"),
    ],
)
def test_an_incomplete_installation(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """As nvidia-cutlass-dsl refuses one: an exception while it is imported."""
    package = tmp_path / "first" / "cutlass"
    (package / "_mlir").mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '4.8.1'\n")
    (package / "_mlir" / "__init__.py").write_text("raise RuntimeError('cu13 is incomplete')\n")
    # Before what the package's own .pth file puts in front.
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys; sys.path.insert(0, {str(tmp_path / 'first')!r})\n"
    )
    (tmp_path / "f.mlir").write_text("tt.func @f() { tt.return }\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    if arguments[0] == "-c":
        environment["TILEPASS"] = "flatten-loops"
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == (2 if arguments[0] == "-c" else 1)
    assert "Traceback" not in done.stderr
    message = "nvidia-cutlass-dsl is installed but cannot be imported: RuntimeError: cu13 is incom"
    assert message in done.stderr
    assert "pip install --force-reinstall nvidia-cutlass-dsl" in done.stderr
