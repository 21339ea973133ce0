"""Packages that are missing or too old are told before they are imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilepass.core.errors import UnsupportedVersionError
from tilepass.ir.requirement import require


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
    require("some_package", (4, 6), "some-package")


@pytest.mark.parametrize("version", ["4.5.2", "4", "3.9"])
def test_too_old(install: Path, version: str) -> None:
    install.write_text(f"__version__ = '{version}'\n")
    expected = rf"some-package {version} is not supported \(tilepass needs some-package >= 4\.6\)"
    with pytest.raises(UnsupportedVersionError, match=expected):
        require("some_package", (4, 6), "some-package")


def test_without_version(install: Path) -> None:
    install.write_text("")
    with pytest.raises(UnsupportedVersionError, match="does not say which version"):
        require("some_package", (4, 6), "some-package")


def test_missing() -> None:
    with pytest.raises(UnsupportedVersionError, match="no_such_package is not installed"):
        require("no_such_package", (1,), "no-such")
