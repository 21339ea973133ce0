"""What a pipeline adds to the keys of caches: everything that can change its output."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from collections.abc import Iterable
from importlib.metadata import version
from typing import NamedTuple

from tilepass.core.digest import tool_hash, unforeseen_hash
from tilepass.core.pass_base import Placed
from tilepass.core.registry import source_hash

_PROCESS = os.urandom(8).hex()


class CacheKey(NamedTuple):
    """What Triton's inspection hook returns: part of the compile key, and of the in-memory key."""

    key: str
    hash: str


EMPTY = CacheKey("", "")


def pipeline_key(passes: Iterable[Placed]) -> CacheKey:
    """The key of a pipeline; the empty pipeline's is the key of stock Triton.

    Passes count with every option, their anchors, what happens where they fail, and all code that
    takes part, as it ran. The in-memory key is good in this process alone: specialization data
    recorded in another one holds keys too, and preloading would store the stock kernel under a
    pipeline's key.
    """
    described = [
        (str(placed), placed.on_failure, source_hash(type(placed.instance))) for placed in passes
    ]
    if not described:
        return EMPTY
    tool = (tool_hash(), unforeseen_hash(), sys.version, _bindings_version())
    text = json.dumps([tool, described])
    digest = hashlib.sha256(text.encode()).hexdigest()
    return CacheKey(f"-tilepass-{digest}", f"{digest[:16]}{_PROCESS}")


@functools.cache
def _bindings_version() -> str:
    return version("nvidia-cutlass-dsl")
