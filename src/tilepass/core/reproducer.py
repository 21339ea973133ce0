"""The file that replays a failing pass, and the message that names it."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tilepass.core import underway
from tilepass.core.pass_base import Pass, PassContext

_Result = TypeVar("_Result")


class Replayable(Protocol):
    """One of Triton's passes; as text it is in pipeline syntax."""

    @property
    def name(self) -> str: ...
    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Failure:
    """The last of `passes` failed; `module_text` is the module before the first of them.

    `flags` are those that `tilepass-opt` needs besides to read the module.
    """

    passes: Sequence[Pass | Replayable]
    context: PassContext
    module_text: str
    reason: str
    flags: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """What the user reads: the pass, the reason, and how to replay it."""
        return f"pass '{self.passes[-1].name}' {self.reason}\n{write_reproducer(self)}"

    def command(self, file: str) -> str:
        """The command that shows the failure again, `file` being that with the module."""
        words = ["tilepass-opt", file, *self.flags]
        if self.context.target:
            words += ["--target", str(self.context.target)]
        words += ["-p", shlex.quote(",".join(map(str, self.passes)))]
        for path in dict.fromkeys(filter(None, map(_loaded_from, self.passes))):
            words += ["--load", shlex.quote(path)]
        return " ".join(words)


def write_reproducer(failure: Failure) -> str:
    """Write the file; returns the line that names it and the command that replays it."""
    try:
        path = write_file(failure)
    except OSError as error:
        return f"the reproducer could not be written: {error}"
    return f"reproducer: {path}\nreplay: {failure.command(shlex.quote(path))}"


def write_file(failure: Failure) -> str:
    """Write the file that replays a failure; returns its path. Raises OSError."""
    header = [
        f"// RUN: {failure.command('%s')}",
        f"// {failure.context.compiler}: pass '{failure.passes[-1].name}' "
        f"{failure.reason.splitlines()[0]}",
    ]
    if failure.context.compile_options:
        options = ", ".join(f"{k}={v}" for k, v in failure.context.compile_options.items())
        header.append(f"// compile options: {' '.join(options.split())}")
    prefix = f"tilepass-{failure.passes[-1].name}-"
    descriptor, path = tempfile.mkstemp(prefix=prefix, suffix=".mlir")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("\n".join([*header, failure.module_text]))
    return path


def watched(failure: Failure, function: Callable[[], _Result]) -> _Result:
    """The result of `function`; a crash in it is attributed to the failure's last pass.

    The reproducer is there for the time being, where crashes are attributed at all.
    """
    if not underway.is_attributed():
        return function()
    a_pass = failure.passes[-1]
    author = getattr(sys.modules.get(type(a_pass).__module__), "__file__", None)
    name, path = f"pass '{a_pass.name}' of {author}", None
    with suppress(OSError):
        path = write_file(failure)
        name += f" (module before it: {path})"
    try:
        return underway.under_name(name, function)
    finally:
        if path is not None:
            os.unlink(path)


def _loaded_from(a_pass: Pass | Replayable) -> str | None:
    """The file of a pass that no installed package provides: `tilepass-opt` must load it."""
    module = sys.modules.get(type(a_pass).__module__)
    if module is None or "." in module.__name__:
        return None
    return getattr(module, "__file__", None)
