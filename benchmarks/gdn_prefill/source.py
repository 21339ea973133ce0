"""FlashInfer's gated-delta-rule classes out of an unpacked wheel, without FlashInfer's package.

Importing `flashinfer` itself needs a CUDA machine and a dozen packages; the kernel classes need
only their own folder. Its parents are stood in for by empty packages.
"""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path
from typing import Any

from tilepass.core.errors import TilepassError

KERNELS = "flashinfer.gdn_kernels.delta_rule_dsl"
PREFILL = ("delta_rule_sm120", "_FullyFusedDeltaRuleSm120")
"""Module and class of the prefill kernel for SM12x, which runs on sm_90 as well."""


def load_class(folder: Path, module: str = PREFILL[0], name: str = PREFILL[1]) -> Any:
    """A class of `delta_rule_dsl` in the FlashInfer that is unpacked in `folder`.

    Another folder's classes, loaded before, are forgotten by the import system. Raises
    TilepassError where the folder holds no such module or class.
    """
    package = folder.joinpath(*KERNELS.split("."))
    if not (package / f"{module}.py").is_file():
        raise TilepassError(f"{folder}: no {KERNELS.replace('.', '/')}/{module}.py in it")
    _stand_in(folder)
    try:
        return getattr(importlib.import_module(f"{KERNELS}.{module}"), name)
    except (ImportError, AttributeError) as error:
        raise TilepassError(f"{folder}: {module}.{name}: {error}") from error


def _stand_in(folder: Path) -> None:
    """Empty packages for the parents; a module for `flashinfer.utils` whose functions are not
    called while a class is compiled."""
    for name in [name for name in sys.modules if name.split(".")[0] == "flashinfer"]:
        del sys.modules[name]
    path = folder
    full = ""
    for part in KERNELS.split("."):
        path, full = path / part, f"{full}.{part}".lstrip(".")
        package = types.ModuleType(full)
        package.__path__ = [str(path)]
        sys.modules[full] = package
    utilities: Any = types.ModuleType("flashinfer.utils")
    utilities.__getattr__ = _refuse
    sys.modules["flashinfer.utils"] = utilities


def _refuse(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)

    def called(*arguments: object, **named: object) -> None:
        raise TilepassError(f"flashinfer.utils.{name} is not there: only classes can be compiled")

    return called
