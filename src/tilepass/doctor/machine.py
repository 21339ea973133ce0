"""The GPU, Triton's assembler and cache folder, and the hook in the interpreter's start-up."""

from __future__ import annotations

import os
import re
import site
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tilepass.doctor.finding import Finding

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
