"""The versions of Python and of the packages that tilepass stands on."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from tilepass.core.errors import UnsupportedVersionError
from tilepass.doctor.finding import Finding
from tilepass.frontends.triton.versions import SUPPORTED, check_version, parse_version

_PYTHON_OLDEST, _PYTHON_BELOW = (3, 11), (3, 14)


@dataclass(frozen=True)
class _Package:
    """A distribution, the oldest supported version, and what it is for."""

    name: str
    oldest: tuple[int, ...]
    purpose: str
    required: bool = True

    @property
    def supported(self) -> str:
        return f">= {'.'.join(map(str, self.oldest))}"


_PACKAGES = (
    _Package("nvidia-cutlass-dsl", (4, 6), "the MLIR bindings, passes on CuTe kernels"),
    _Package("torch", (2, 9), "kernels' inputs, tilepass ab", required=False),
    _Package("lit", (18,), "the lit tests", required=False),
    _Package("filecheck", (1, 0), "the lit tests", required=False),
)


def check_python() -> Sequence[Finding]:
    """The interpreter and the platform."""
    found = f"{platform.python_version()} ({sys.executable})"
    supported = _PYTHON_OLDEST <= sys.version_info[:2] < _PYTHON_BELOW
    advice = "" if supported else "supported: >= 3.11, < 3.14"
    findings = [Finding("Python", "ok" if supported else "FAIL", found, advice)]
    if sys.platform != "linux":
        findings.append(Finding("platform", "FAIL", sys.platform, "supported: Linux"))
    return findings


def check_triton() -> Sequence[Finding]:
    """Triton, whose range of versions is closed on both sides."""
    try:
        text = version("triton")
        check_version(text)
    except PackageNotFoundError:
        return [Finding("triton", "FAIL", "not installed", f"supported: {SUPPORTED}")]
    except UnsupportedVersionError as error:
        return [Finding("triton", "FAIL", str(error))]
    return [Finding("triton", "ok", f"{text} (supported: {SUPPORTED})")]


def check_packages() -> Sequence[Finding]:
    """The other packages."""
    return [_check_package(package) for package in _PACKAGES]


def _check_package(package: _Package) -> Finding:
    failure = "FAIL" if package.required else "note"
    try:
        text = version(package.name)
    except PackageNotFoundError:
        advice = f"needed for {package.purpose}: pip install '{package.name}{package.supported}'"
        return Finding(package.name, failure, "not installed", advice)
    if parse_version(text) < package.oldest:
        return Finding(package.name, failure, text, f"supported: {package.supported}")
    return Finding(package.name, "ok", f"{text} (supported: {package.supported})")
