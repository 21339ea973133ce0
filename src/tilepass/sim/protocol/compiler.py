"""Compiling a module for recording: scalars as the value interpreter computes them, tensors without
contents, everything asynchronous by `steps`."""

from __future__ import annotations

import re

from tilepass.core.diagnostics import Diagnostic
from tilepass.core.errors import ParseError
from tilepass.ir import engine
from tilepass.sim.compiler import Function, FunctionCompiler, Program
from tilepass.sim.protocol.events import Place
from tilepass.sim.protocol.steps import make_step
from tilepass.sim.site import Site
from tilepass.sim.table import CannotSimulate, Step, Suspending

_ALLOCATION = re.compile(r"^\s*(%[\w$.-]+) = ttg\.local_alloc\b")


class ProtocolProgram(Program):
    """A module and one of its functions, compiled for recording. Raises as Program does.

    `text` is what the module was parsed from and `file` its name, to call allocations as it does.
    """

    def __init__(
        self, module: engine.Module, kernel: str | None = None, text: str = "", file: str = ""
    ) -> None:
        self._allocations = {
            number: match[1]
            for number, line in enumerate(text.split("\n"), 1)
            if (match := _ALLOCATION.match(line))
        }
        self._file = file
        super().__init__(module, kernel)

    def name_of(self, allocation: Place) -> str | None:
        """The name of what an operation allocates, if the text gives its own locations."""
        where = allocation.location
        if where is None or where.file != self._file:
            return None
        return self._allocations.get(where.line)

    def _compiler(self, function: Function) -> FunctionCompiler:
        return _Compiler(self, function)


class _Compiler(FunctionCompiler):
    program: ProtocolProgram

    def __init__(self, program: ProtocolProgram, function: Function) -> None:
        super().__init__(program, function)

    def _step(self, operation: engine.Operation, lifted: bool) -> Step | Suspending:
        try:
            return make_step(Site(self, operation, lifted), self.program.name_of)
        except (CannotSimulate, ParseError) as error:
            location = engine.location_of(operation)
            self.program.unsupported.append(
                Diagnostic("error", f"{operation.name} cannot be followed: {error}", location)
            )
            return lambda _: None
