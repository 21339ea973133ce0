"""Targets as Triton writes them."""

from __future__ import annotations

import importlib
from typing import Any

from tilepass.core.pass_base import Target


def gpu_target(target: Target) -> Any:
    """Triton's `GPUTarget` for a target."""
    compiler: Any = importlib.import_module("triton.backends.compiler")
    return compiler.GPUTarget(target.backend, target.arch, target.warp_size)


def target_of(found: Any) -> Target:
    """The target that a `GPUTarget` of Triton stands for."""
    return Target(found.backend, found.arch, found.warp_size)
