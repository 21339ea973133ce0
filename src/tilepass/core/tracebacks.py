"""Where an error comes from: the line in the author's own code, and all of it for who asks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import FrameType

VARIABLE = "TILEPASS_TRACEBACK"
"""1: errors are printed with the traceback of what caused them, as by `--traceback`."""

_INSTALLED = f"{os.sep}site-packages{os.sep}"


def is_wanted() -> bool:
    """Whether the user asked for tracebacks."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def print_if_wanted(error: BaseException) -> None:
    """Print the traceback of what caused an error to stderr, if the user asked for it."""
    if is_wanted():
        import traceback

        traceback.print_exception(error)


def describe(error: BaseException, author: str) -> str:
    """`ValueError: no (file.py:12, in run)`: the exception and the author's line it came from.

    `author` is the module of the author's code. Of a message of several lines the place follows the
    first.
    """
    name = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{name}: {error.msg} ({error.filename}:{error.lineno or 1})"
    first, _, rest = f"{name}: {error}".rstrip(": ").partition("\n")
    where = place(error, author)
    return "\n".join(filter(None, [f"{first} ({where})" if where else first, rest]))


def place(error: BaseException, author: str) -> str:
    """`file.py:12, in run`: the innermost line in the author's folder.

    Without one it is the author's file, and nothing for a module that was not found.
    """
    file = getattr(sys.modules.get(author), "__file__", None)
    own = [one for one in _frames(error) if _is_of(one[0], author, file)]
    if not own:
        return file or ""
    frame, line = own[-1]
    name = frame.f_code.co_name
    return f"{frame.f_code.co_filename}:{line}" + ("" if name == "<module>" else f", in {name}")


def _frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _is_of(frame: FrameType, author: str, file: str | None) -> bool:
    """Whether a frame runs the author's module, or one in its folder."""
    if frame.f_globals.get("__name__") == author:
        return True
    if file is None or frame.f_code.co_filename.startswith("<"):
        return False
    folder = os.path.join(os.path.dirname(os.path.abspath(file)), "")
    found = os.path.abspath(frame.f_code.co_filename)
    return found.startswith(folder) and _INSTALLED not in found[len(folder) - 1 :]
