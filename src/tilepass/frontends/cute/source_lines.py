"""Giving every traced operation its source line, at next to no cost.

Without the option for line tables the DSL traces without locations, and remarks could name no line.
With locations, tracing a large kernel takes three times as long, most of it to find the same places
in the same code objects again; here each is found once. Without that option the compiler strips the
locations before it makes PTX, so that the binary does not depend on them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

_SWITCH = "_ENABLE_FRAME_FILTERING"


def replacements() -> Iterator[tuple[Any, str, Any]]:
    """What functions of the DSL are replaced by: owner, name, function."""
    dsl: Any = importlib.import_module("cutlass.base_dsl.dsl")
    places: Any = importlib.import_module("cutlass._mlir_helpers.op")
    yield dsl, "_set_enable_frame_filtering", _always(dsl._set_enable_frame_filtering)
    # Parts of the search that 4.6 does not have as separate functions.
    if hasattr(places, "_fast_frameinfo"):
        yield places, "_fast_frameinfo", _once_per_place(places._fast_frameinfo)
    if hasattr(places, "_is_framework_stack_frame"):
        is_framework = _once_per_file(places._is_framework_stack_frame)
        yield places, "_is_framework_stack_frame", is_framework


@contextmanager
def paused() -> Generator[None]:
    """Inside, the DSL looks for no source lines: it would for every value that a pass reads.

    What passes build has the locations that they give it.
    """
    places: Any = importlib.import_module("cutlass._mlir_helpers.op")
    before: bool = getattr(places, _SWITCH, False)
    try:
        setattr(places, _SWITCH, False)
        yield
    finally:
        setattr(places, _SWITCH, before)


def _always(switch: Callable[[bool], None]) -> Callable[[bool], None]:
    """A switch that is turned on whatever it is told."""

    def turn_on(enable: bool) -> None:
        del enable
        switch(True)

    return turn_on


def _once_per_place(describe: Callable[[FrameType], Any]) -> Callable[[FrameType], Any]:
    # By identity: code objects compare by what they hold. They are kept, for theirs to stay unique.
    known: dict[tuple[int, int], tuple[Any, CodeType]] = {}

    def describe_once(frame: FrameType) -> Any:
        place = (id(frame.f_code), frame.f_lasti)
        found = known.get(place)
        if found is None:
            found = known[place] = (describe(frame), frame.f_code)
        return found[0]

    return describe_once


def _once_per_file(ask: Callable[[FrameType], bool]) -> Callable[[FrameType], bool]:
    known: dict[tuple[str | None, str], bool] = {}

    def ask_once(frame: FrameType) -> bool:
        file = (frame.f_globals.get("__name__"), frame.f_code.co_filename)
        found = known.get(file)
        if found is None:
            found = known[file] = ask(frame)
        return found

    return ask_once
