"""Files that Triton takes in place of what a stage has made: a kernel's overrides.

With TRITON_KERNEL_OVERRIDE they are in a folder per kernel, named by its source; without it, the
option `ir_override` of a configuration may name one. Triton reads them after the stage's function
has returned, so whatever passes did in that stage or before is not in the binary.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from triton import knobs

_cache_module: Any = importlib.import_module("triton.runtime.cache")

VARIABLE = "TRITON_KERNEL_OVERRIDE"
OPTION = "ir_override"

# (file, the setting that it comes from) for the result of a stage, if there is one.
Overrides = Callable[[str], tuple[str, str] | None]


def no_overrides(stage: str) -> None:
    """For compilations that `triton.compile` has no part in."""
    del stage


def overrides_of(source: Any, options: Mapping[str, Any]) -> Overrides:
    """The overrides of the kernel that `triton.compile` makes of `source`."""

    def override(stage: str) -> tuple[str, str] | None:
        if not knobs.compilation.override:
            file: str | None = options.get(OPTION)
            return (file, OPTION) if file and file.endswith(f".{stage}") else None
        # Triton cuts the name for the file system's sake.
        manager = _cache_module.get_override_manager(source.hash())
        file = manager.get_file(f"{source.name[:150]}.{stage}")
        return (file, VARIABLE) if file else None

    return override
