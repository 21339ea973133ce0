"""What a process was about when native code ended it: shown by the Python stack of the crash.

No handler can go on after an assertion or a segmentation fault in native code, but `faulthandler`
prints the stack from within the signal. `under_name` calls a function from a frame that is called
what is under way: `pass 'a' of FILE (module before it: FILE)`, `reading FILE`. Under `tilepass run`
that stack goes to stderr; commands read it from a file (see cli.supervise).
"""

from __future__ import annotations

import faulthandler
from collections.abc import Callable
from typing import Any, TypeVar

_Result = TypeVar("_Result")

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
    # A program may have a handler of its own, and wants no other outside of what is done here.
    install = not faulthandler.is_enabled()
    if install:
        faulthandler.enable(_stacks_to)
    try:
        return _named(name)(function)
    finally:
        if install:
            faulthandler.disable()


def _named(name: str) -> Any:
    def call(function: Callable[[], object]) -> object:
        return function()

    call.__code__ = call.__code__.replace(co_name=name[:_LONGEST])
    return call
