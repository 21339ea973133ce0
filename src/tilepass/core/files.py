"""Files that appear under their name only when they are complete, and the user's cache."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from tilepass.core.errors import TilepassError

CACHE_VARIABLE = "TILEPASS_CACHE_DIR"


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file under a temporary name and rename it: readers see the whole file or none.

    Raises OSError.
    """
    data = content.encode() if isinstance(content, str) else content
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except BaseException:
        # On a disk that is in trouble, the first error is the one to report.
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def write_json(path: Path, content: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write a file of JSON, whole or not at all, and its folder. Raises TilepassError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(content, indent=1) + "\n")
    except OSError as error:
        raise TilepassError(f"{path}: cannot write: {error.strerror}") from error


def cache_folder(name: str) -> Path:
    """Where the user's cache keeps what is called `name`; the folder need not be there."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder) / name
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "tilepass" / name


def execute_file(path: Path, name: str, what: str, folder: Path) -> ModuleType:
    """Execute a Python file as the module `name`; `folder` is searched first for what it imports.

    Triton finds a kernel's globals, and its source, through the registered module. Raises
    TilepassError, about `what`.
    """
    if not path.is_file():
        raise TilepassError(f"{what}: no such file")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TilepassError(f"{what}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise TilepassError(f"{what}: {type(error).__name__}: {error}") from error
    return module
