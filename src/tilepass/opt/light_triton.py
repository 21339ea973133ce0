"""Triton's native part without the Python around it."""

from __future__ import annotations

from importlib import import_module

from tilepass.core.versions import triton_version
from tilepass.ir.light_import import without_package_init


def load_libtriton() -> None:
    """Import `triton._C.libtriton` alone: 30 ms instead of 150 for all of triton.

    A pass that imports triton afterwards gets all of it. Raises UnsupportedVersionError.
    """
    triton_version()
    with without_package_init("triton"):
        import_module("triton._C.libtriton")
