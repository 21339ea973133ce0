"""Versions that a result depends on."""

from __future__ import annotations

import os
import platform
from importlib import metadata

import tilepass

_PACKAGES = ("triton", "torch", "nvidia-cutlass-dsl", "numpy")
_VARIABLES = ("TRITON_DEFAULT_FP_FUSION", "TRITON_PTXAS_PATH", "CUDA_VISIBLE_DEVICES")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages involved, and the variables that change a binary."""
    found = {"Python": platform.python_version(), "tilepass": tilepass.__version__}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    found.update({name: os.environ[name] for name in _VARIABLES if name in os.environ})
    return found
