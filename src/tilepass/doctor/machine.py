"""What is installed: versions, the GPU, Triton's assembler and cache folder, and the hook in the
interpreter's start-up."""

from __future__ import annotations

import os
import platform
import re
import site
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from tilepass.core.errors import TilepassError, UnsupportedVersionError
from tilepass.core.extras import EXTRAS
from tilepass.core.versions import CUTE, PYTHON, TRITON, Requirement, parse_version

# `note`: tilepass works, but something that it can use is missing.
Status = Literal["ok", "note", "FAIL"]


@dataclass(frozen=True)
class Finding:
    """What was found and, where it is not ok, what to do about it."""

    subject: str
    status: Status
    found: str
    advice: str = ""

    def format(self) -> str:
        """One line, and one more for the advice."""
        line = f"{self.status:<4}  {self.subject:<20}  {self.found}"
        return f"{line}\n{'':28}{self.advice}" if self.advice else line


Check = Callable[[], Sequence[Finding]]


def run_check(check: Check) -> Sequence[Finding]:
    """The findings of a check. One that cannot be carried out is a finding that fails."""
    try:
        return check()
    except (TilepassError, ImportError, OSError, RuntimeError) as error:
        subject = check.__name__.removeprefix("check_").replace("_", " ")
        return [Finding(subject, "FAIL", f"{type(error).__name__}: {error}")]


# What each is for; the last four tilepass can do without.
_CUTE = "the MLIR bindings, passes on CuTe kernels"
_OPTIONAL = (
    (Requirement("torch", (2, 9)), "kernels' inputs, tilepass ab"),
    (Requirement("lit", (18,)), "the lit tests"),
    (Requirement("filecheck", (1, 0)), "the lit tests"),
    (Requirement("matplotlib", (3, 8)), "charts of tilepass ab"),
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
        wanted_by_pip = (
            f"tilepass[{EXTRAS[name]}]" if name in EXTRAS else f"{name}{wanted.supported}"
        )
        advice = f"needed for {purpose}: pip install '{wanted_by_pip}'"
        return Finding(name, failure, "not installed", advice)
    if not wanted.allows(parse_version(text)):
        return Finding(name, failure, text, f"supported: {wanted.supported}")
    return Finding(name, "ok", f"{text} (supported: {wanted.supported})")


STARTUP_HOOK = "tilepass_startup.pth"
# Which of the two assembles for sm_90 depends on the version of Triton.
_PTXAS = {"ptxas": "TRITON_PTXAS_PATH", "ptxas-blackwell": "TRITON_PTXAS_BLACKWELL_PATH"}


def check_ptxas() -> Sequence[Finding]:
    """The assemblers that Triton calls, for old and new GPUs: the variables', or its wheel's."""
    spec = find_spec("triton")
    if spec is None or spec.origin is None:
        return [Finding("ptxas", "FAIL", "Triton is not installed")]
    bundled = Path(spec.origin).parent / "backends" / "nvidia" / "bin"
    return [
        _check_ptxas(name, os.environ.get(variable) or str(bundled / name))
        for name, variable in _PTXAS.items()
    ]


def _check_ptxas(name: str, path: str) -> Finding:
    done = subprocess.run(
        [path, "--version"], capture_output=True, text=True, timeout=30, check=False
    )
    match = re.search(r"V(\d+\.\d+\.\d+)", done.stdout)
    if done.returncode or not match:
        return Finding(name, "FAIL", f"{path} does not run: {done.stderr.strip()}")
    return Finding(name, "ok", f"{match[1]} ({path})")


def check_gpu() -> Sequence[Finding]:
    """The driver and the GPUs; none is needed to compile and to test passes."""
    try:
        nvml: Any = import_module("pynvml")
    except ImportError:
        return [Finding("GPU", "note", "unknown", "pip install nvidia-ml-py")]
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        advice = "compiling and lit tests work without; tilepass ab only compares static figures"
        return [Finding("GPU", "note", f"none ({error})", advice)]
    try:
        driver = Finding("driver", "ok", _text(nvml.nvmlSystemGetDriverVersion()))
        gpus = [_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        return [driver, *(gpus or [Finding("GPU", "note", "none")])]
    finally:
        nvml.nvmlShutdown()


def check_cache_folder() -> Sequence[Finding]:
    """Whether Triton can write its cache."""
    home = Path(os.environ.get("TRITON_HOME") or Path.home())
    folder = Path(os.environ.get("TRITON_CACHE_DIR") or home / ".triton" / "cache")
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        advice = "set TRITON_CACHE_DIR to a folder that can be written"
        return [Finding("cache folder", "FAIL", f"{folder}: {error.strerror}", advice)]
    return [Finding("cache folder", "ok", str(folder))]


def check_startup_hook() -> Sequence[Finding]:
    """Whether the variable TILEPASS alone activates a pipeline."""
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    for folder in folders:
        if (Path(folder) / STARTUP_HOOK).is_file():
            return [Finding("start-up hook", "ok", str(Path(folder) / STARTUP_HOOK))]
    advice = "TILEPASS works only under `tilepass run`; installing tilepass anew adds the hook"
    return [Finding("start-up hook", "note", "not installed", advice)]


def _gpu(nvml: Any, index: int) -> Finding:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle).total / 2**30
    name = _text(nvml.nvmlDeviceGetName(handle))
    return Finding(f"GPU {index}", "ok", f"{name}, sm_{major}{minor}, {memory:.0f} GiB")


def _text(value: str | bytes) -> str:
    """Older NVML bindings return bytes."""
    return value.decode() if isinstance(value, bytes) else value
