"""Compiling although a cache has the kernel: no pass sees what a cache answers."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

ANEW = {
    "TRITON_ALWAYS_COMPILE": "1",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
}
"""What a process needs in its environment so that Triton and Inductor compile every kernel."""


@contextmanager
def compiled_anew() -> Generator[None]:
    """In the block every kernel is compiled, and stored; so it is in processes started there."""
    before = {name: os.environ.get(name) for name in ANEW}
    os.environ.update(ANEW)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
