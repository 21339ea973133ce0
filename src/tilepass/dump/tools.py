"""NVIDIA's command-line tools that come with Triton's wheel: ptxas, nvdisasm, cuobjdump."""

from __future__ import annotations

import importlib
import os
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from tilepass.core.errors import TilepassError


def tool_path(tool: Literal["nvdisasm", "cuobjdump"]) -> str:
    """Where Triton finds the tool (TRITON_NVDISASM_PATH and its like win). Raises TilepassError."""
    knobs: Any = importlib.import_module("triton.knobs")
    return _path(getattr(knobs.nvidia, tool), tool)


def ptxas_path(arch: int) -> str:
    """The ptxas that Triton uses for `arch` (90 for sm_90): wheels hold two."""
    backend: Any = importlib.import_module("triton.backends.nvidia.compiler")
    return _path(backend.get_ptxas(arch), "ptxas")


def gpu_name(arch: int) -> str:
    """What Triton passes to ptxas as `--gpu-name`, e.g. `sm_90a` for 90."""
    backend: Any = importlib.import_module("triton.backends.nvidia.compiler")
    return backend.sm_arch_from_capability(arch)


def run_tool(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end. Raises TilepassError, with what it printed, where it fails."""
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise TilepassError(f"cannot run {command[0]}: {error.strerror}") from error
    if result.returncode:
        said = (result.stderr or result.stdout).strip()
        raise TilepassError(
            f"{Path(command[0]).name} failed with exit status {result.returncode}: {said}"
        )
    return result


@contextmanager
def as_file(content: bytes, suffix: str) -> Generator[str]:
    """The path of a temporary file that holds `content`."""
    descriptor, path = tempfile.mkstemp(suffix=suffix, prefix="tilepass-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield path
    finally:
        os.unlink(path)


def _path(knob: Any, tool: str) -> str:
    path: str | None = knob.path
    if path is None or not Path(path).is_file():
        raise TilepassError(
            f"Triton's wheel holds no {tool} (set TRITON_{tool.upper()}_PATH to use another)"
        )
    return path
