"""Reading what ptxas prints while Triton runs it, which Triton throws away.

As in recording.py, the stage's own code object is instantiated again, with a stand-in for
`subprocess` among its globals; nothing global is touched and nothing runs twice.
"""

from __future__ import annotations

import inspect
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import CellType, FunctionType
from typing import Any, cast

from tilepass.frontends.triton.recording import Stage, copy_function

STAGE = "cubin"


def read_log(stage: Stage, backend: Any, take: Callable[[str], None]) -> Stage:
    """The stock stage that assembles; `take` is given what the assembler wrote to its log file."""
    assembling = _AssemblingBackend(backend, take)
    function = cast("FunctionType", stage)
    closure = tuple(
        CellType(assembling) if cell.cell_contents is backend else cell
        for cell in function.__closure__ or ()
    )
    return copy_function(function, function.__globals__, closure)


class _AssemblingBackend:
    """Stands for a backend whose stage functions start processes through `_Processes`."""

    def __init__(self, backend: Any, take: Callable[[str], None]) -> None:
        self._backend = backend
        self._take = take

    def __getattr__(self, name: str) -> Any:
        member: Any = inspect.getattr_static(self._backend.__class__, name, None)
        if not isinstance(member, FunctionType):
            return getattr(self._backend, name)
        names = {**member.__globals__, "subprocess": _Processes(self._take)}
        return copy_function(member, names, member.__closure__).__get__(self)


class _Processes:
    """Stands for the module `subprocess`: `run` reads the file that stderr went to."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def run(self, *arguments: Any, **named: Any) -> Any:
        """As `subprocess.run`."""
        start: Any = subprocess.run
        done = start(*arguments, **named)
        log = getattr(named.get("stderr"), "name", None)
        if isinstance(log, str):
            self._take(Path(log).read_text())
        return done
