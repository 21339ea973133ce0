"""The versions of Python and of the packages that tilepass stands on."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from tilepass.core.errors import UnsupportedVersionError
from tilepass.core.versions import CUTE, PYTHON, TRITON, Requirement, parse_version
from tilepass.doctor.finding import Finding, Status

# What each is for; the last three tilepass can do without.
_CUTE = "the MLIR bindings, passes on CuTe kernels"
_OPTIONAL = (
    (Requirement("torch", (2, 9)), "kernels' inputs, tilepass ab"),
    (Requirement("lit", (18,)), "the lit tests"),
    (Requirement("filecheck", (1, 0)), "the lit tests"),
)


def check_python() -> Sequence[Finding]:
    """The interpreter and the platform."""
    found = f"{platform.python_version()} ({sys.executable})"
    supported = PYTHON.allows(sys.version_info[:3])
    advice = "" if supported else f"supported: {PYTHON.supported}"
    findings = [Finding("Python", "ok" if supported else "FAIL", found, advice)]
    if sys.platform != "linux":
        findings.append(Finding("platform", "FAIL", sys.platform, "supported: Linux"))
    return findings


def check_triton() -> Sequence[Finding]:
    """Triton, whose range of versions is closed on both sides."""
    try:
        text = version("triton")
        TRITON.check(text)
    except PackageNotFoundError:
        return [Finding("triton", "FAIL", "not installed", f"supported: {TRITON.supported}")]
    except UnsupportedVersionError as error:
        return [Finding("triton", "FAIL", str(error))]
    return [Finding("triton", "ok", f"{text} (supported: {TRITON.supported})")]


def check_packages() -> Sequence[Finding]:
    """The other packages."""
    optional = [_check_package(each, purpose, "note") for each, purpose in _OPTIONAL]
    return [_check_package(CUTE, _CUTE, "FAIL"), *optional]


def _check_package(wanted: Requirement, purpose: str, failure: Status) -> Finding:
    name = wanted.distribution
    try:
        text = version(name)
    except PackageNotFoundError:
        advice = f"needed for {purpose}: pip install '{name}{wanted.supported}'"
        return Finding(name, failure, "not installed", advice)
    if not wanted.allows(parse_version(text)):
        return Finding(name, failure, text, f"supported: {wanted.supported}")
    return Finding(name, "ok", f"{text} (supported: {wanted.supported})")
