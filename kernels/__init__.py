"""Kernels to run passes on, one file each; `get_workload(name)` finds them.

See `workload.py` for what a kernel file exports. Import as `tilepass.kernels`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tilepass.core.errors import TilepassError, nearest

if TYPE_CHECKING:
    from tilepass.kernels.workload import Workload

_NAMES = (
    "attention_triton",
    "grouped_matmul_triton",
    "matmul_triton",
    "mxfp4_matmul_triton",
    "persistent_matmul_epilogues_triton",
    "persistent_matmul_triton",
    "softmax_triton",
)


def workload_names() -> tuple[str, ...]:
    """The names that `get_workload` knows, sorted."""
    return _NAMES


def get_workload(name: str) -> Workload[Any]:
    """The workload of that file name; `-` stands for `_`, and the suffix `_triton` may be left out.

    Raises TilepassError with the nearest names when there is none.
    """
    wanted = name.replace("-", "_")
    for candidate in (wanted, f"{wanted}_triton"):
        if candidate in _NAMES:
            return import_module(f"tilepass.kernels.{candidate}").WORKLOAD
    known = ", ".join(_NAMES)
    raise TilepassError(f"no kernel '{name}'{nearest(wanted, _NAMES)} (kernels: {known})")
