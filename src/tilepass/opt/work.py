"""The module that `tilepass-opt` works on: in Triton's context, or in the IR engine alone.

Triton's passes and Triton's printed form need the first. CuTe modules, which libtriton cannot
read, and modules with operations of unknown dialects take the second.
"""

from __future__ import annotations

import re
from typing import Literal, Protocol

from tilepass.core.diagnostics import Diagnostic
from tilepass.core.pass_base import CompilerVersion, PassContext
from tilepass.ir.aliases import in_quotes
from tilepass.opt.source import Part
from tilepass.opt.steps import Step

Form = Literal["pretty", "generic"]
_COMMENT = re.compile(r"//.*")
_TRITON_NAME = re.compile(r"(?<![\w.$%@])(?:tt|ttg|ttng)\.\w")
_CUTE_NAME = re.compile(r"(?<![\w.$%@])(?:cute|cute_nvgpu)\.\w")
_IMPLICIT_LOCATION = re.compile(r'(?<=loc\()"-"(?=:\d+:\d+\))')


class Work(Protocol):
    """A module that passes run on."""

    @property
    def compiler(self) -> CompilerVersion:
        """The compiler whose IR it is."""
        ...

    def run(self, step: Step, context: PassContext) -> list[Diagnostic]:
        """Run one pass; returns the diagnostics that it emitted besides its remarks.

        Raises PassFailure.
        """
        ...

    def operation_names(self) -> set[str]:
        """The names of all operations in the module."""
        ...

    def text(self, form: Form, *, debug_info: bool) -> str:
        """The module as text, without a newline at the end."""
        ...


def open_work(part: Part, *, allow_unregistered_dialect: bool) -> Work:
    """Parse a part of the input. Raises ParseError with the diagnostics."""
    if allow_unregistered_dialect or is_cute(part.text):
        # Here and not above: a run of Triton's passes alone must not load the engine.
        from tilepass.opt.engine_work import EngineWork

        return EngineWork(part)
    from tilepass.opt.triton_work import TritonWork

    return TritonWork(part)


def without_comments(text: str) -> str:
    """The text without what follows `//`; for searching, as strings may lose their end."""
    return _COMMENT.sub("", text)


def is_cute(text: str) -> bool:
    """Whether a module holds names of CuTe's dialects and none of Triton's."""
    code = without_comments(text)
    return bool(_CUTE_NAME.search(code)) and not _TRITON_NAME.search(code)


def with_file_name(text: str, file: str) -> str:
    """Printed MLIR whose implicit locations name `file` instead of the text in memory."""
    return _IMPLICIT_LOCATION.sub(lambda _: in_quotes(file), text)
