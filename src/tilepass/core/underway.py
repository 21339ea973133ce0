"""What a process was about when native code ended it: shown by the Python stack of the crash.

No handler can go on after an assertion or a segmentation fault in native code, but `faulthandler`
prints the stack from within the signal. `under_name` calls a function from a frame that is called
what is under way: `pass 'a' of FILE (module before it: FILE)`, `reading FILE`. Under `tilepass run`
that stack goes to stderr; commands read it from a file (see cli.guard).
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

_Result = TypeVar("_Result")

NOTED = "under way: "
# faulthandler cuts names after 500 characters.
_LONGEST = 480

_stacks_to: int | None = None
native_output: int | None = None
"""A descriptor for what native code prints while it is captured, for whoever finds a crash."""


def attribute_crashes(stacks_to: int, output_to: int | None = None) -> None:
    """From now on crashes are attributed: the stack goes to the descriptor `stacks_to`."""
    global _stacks_to, native_output
    _stacks_to, native_output = stacks_to, output_to


def is_attributed() -> bool:
    """Whether names are of any use."""
    return _stacks_to is not None


def under_name(name: str, function: Callable[[], _Result]) -> _Result:
    """The result of `function`, which a crash in it is attributed to under `name`."""
    if _stacks_to is None:
        return function()
    # A program may have its own handler, and wants no other outside of what is done here.
    install = not faulthandler.is_enabled()
    if install:
        faulthandler.enable(_stacks_to)
    try:
        with _noted(name):
            return _named(name)(function)
    finally:
        if install:
            faulthandler.disable()


@contextmanager
def _noted(name: str) -> Generator[None]:
    """The name before the stack, of which faulthandler shows the last 100 frames, in a file."""
    if _stacks_to is None or native_output is None:
        yield
        return
    before = os.lseek(_stacks_to, 0, os.SEEK_CUR)
    os.write(_stacks_to, f"{NOTED}{name}\n".encode())
    try:
        yield
    finally:
        os.ftruncate(_stacks_to, before)
        os.lseek(_stacks_to, before, os.SEEK_SET)


def _named(name: str) -> Any:
    def call(function: Callable[[], object]) -> object:
        return function()

    call.__code__ = call.__code__.replace(co_name=name[:_LONGEST])
    return call
