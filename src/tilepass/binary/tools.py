"""NVIDIA's command-line tools that come with Triton's wheel: ptxas, nvdisasm, cuobjdump."""

from __future__ import annotations

import importlib
import os
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilepass.core.errors import TilepassError


@dataclass(frozen=True)
class Tools:
    """Paths of the tools with which Triton compiles for one architecture, and ptxas's name of it
    (`sm_90a`)."""

    ptxas: str
    nvdisasm: str
    cuobjdump: str
    gpu_name: str


def find_tools(arch: int) -> Tools:
    """The tools of the installed Triton for `arch` (90 for sm_90): wheels hold two ptxas.

    TRITON_PTXAS_PATH and its like win. Raises TilepassError where one is missing.
    """
    backend: Any = importlib.import_module("triton.backends.nvidia.compiler")
    knobs: Any = importlib.import_module("triton.knobs")
    return Tools(
        ptxas=_path(backend.get_ptxas(arch), "ptxas"),
        nvdisasm=_path(knobs.nvidia.nvdisasm, "nvdisasm"),
        cuobjdump=_path(knobs.nvidia.cuobjdump, "cuobjdump"),
        gpu_name=backend.sm_arch_from_capability(arch),
    )


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
    """The path of a temporary file that holds `content`. Raises TilepassError."""
    descriptor, path = tempfile.mkstemp(suffix=suffix, prefix="tilepass-")
    try:
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
        except OSError as error:
            # The error of a full disk names no file.
            raise TilepassError(f"cannot write {path}: {error.strerror}") from error
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
