"""Compiling a module for recording: scalars as the value interpreter computes them, tensors without
contents, everything asynchronous by `steps`."""

from __future__ import annotations

from tilepass.core.diagnostics import Diagnostic
from tilepass.core.errors import ParseError
from tilepass.ir import engine
from tilepass.sim.compiler import Function, FunctionCompiler, Program
from tilepass.sim.protocol.steps import make_step
from tilepass.sim.site import Site
from tilepass.sim.table import CannotSimulate, Step, Suspending


class ProtocolProgram(Program):
    """A module and one of its functions, compiled for recording. Raises as Program does."""

    def function(self, name: str) -> Function:
        """A function of the module, compiled when it is asked for first."""
        if name not in self._functions:
            function = self._functions[name] = Function(name)
            _Compiler(self, function).compile(self._operations[name])
        return self._functions[name]


class _Compiler(FunctionCompiler):
    def _step(self, operation: engine.Operation, lifted: bool) -> Step | Suspending:
        try:
            return make_step(Site(self, operation, lifted))
        except (CannotSimulate, ParseError) as error:
            location = engine.location_of(operation)
            self.program.unsupported.append(
                Diagnostic("error", f"{operation.name} cannot be followed: {error}", location)
            )
            return lambda _: None
