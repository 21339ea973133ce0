"""What a pipeline adds to the keys of Triton's caches: everything that can change its output."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import tilepass
from tilepass.core.registry import source_hash
from tilepass.frontends.placed import Placed

# What can be part of a pass's run. Commands, dumps and measurements are not.
_TOOL_PACKAGES = ("analysis", "core", "frontends", "ir")
_PROCESS = os.urandom(8).hex()


class CacheKey(NamedTuple):
    """What Triton's inspection hook returns: part of the compile key, and of the in-memory key."""

    key: str
    hash: str


EMPTY = CacheKey("", "")


def pipeline_key(passes: Iterable[Placed]) -> CacheKey:
    """The key of a pipeline; the empty pipeline's is the key of stock Triton.

    Passes count with every option, their anchors, and their sources as they were imported. The
    in-memory key is good in this process alone: specialization data recorded in another one holds
    keys too, and preloading would store the stock kernel under a pipeline's key.
    """
    described = [(str(placed), source_hash(type(placed.instance))) for placed in passes]
    if not described:
        return EMPTY
    text = json.dumps([tilepass.__version__, tool_hash(), _bindings_version(), described])
    digest = hashlib.sha256(text.encode()).hexdigest()
    return CacheKey(f"-tilepass-{digest}", f"{digest[:16]}{_PROCESS}")


@functools.cache
def tool_hash() -> str:
    """Hash of tilepass's own sources, taken once per process."""
    root = Path(tilepass.__file__).parent
    digest = hashlib.sha256()
    for package in _TOOL_PACKAGES:
        for source in sorted((root / package).rglob("*.py")):
            digest.update(f"{source.relative_to(root)}\0".encode() + source.read_bytes() + b"\0")
    return digest.hexdigest()


@functools.cache
def _bindings_version() -> str:
    return version("nvidia-cutlass-dsl")
