"""Showing a compilation by the DSL to observers.

The DSL compiles the module itself, in one go. What observers see is made of a copy, by the same
compiler with the same options: the IR after each of the passes that run alone, the PTX, the cubin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from tilepass.core.anchor import TRACE
from tilepass.core.pass_base import Pass, PassContext
from tilepass.frontends.cute.lowering import compile_copy, lower_for_analysis
from tilepass.frontends.cute.tracing import Trace
from tilepass.frontends.observing import (
    Compilation,
    ContextObserver,
    LocationObserver,
    StageObserver,
)
from tilepass.ir.engine import Module, print_readable

LOWERING = "lower"


class Watched:
    """One compilation that observers look at."""

    def __init__(
        self, trace: Trace, kernels: Sequence[str], observers: Sequence[StageObserver]
    ) -> None:
        self._trace = trace
        self._observers = observers
        self._passes = 0
        # A module of several kernels has the name of the function that launches them.
        kernel = kernels[0] if len(kernels) == 1 else trace.function
        options = {**trace.options, "kernels": list(kernels)}
        compilation = Compilation(trace.key, kernel, "cute", trace.target, options)
        for observer in observers:
            observer.begin(compilation, _printer(trace.module, observer))

    def before_pass(self, context: PassContext) -> None:
        """A pass is about to run on the traced module."""
        for observer in self._observers:
            if isinstance(observer, ContextObserver):
                observer.before_pass(context)

    def after_pass(self, a_pass: Pass) -> None:
        """It has run."""
        self._show(TRACE, str(a_pass), "tilepass", self._trace.module)

    def finish(self) -> None:
        """Show what the compiler makes of the module. Raises TilepassError where it fails."""
        trace = self._trace
        lower_for_analysis(
            trace.module,
            trace.pipeline,
            lambda text, copy: self._show(LOWERING, text, "cute", copy),
        )
        binary = compile_copy(trace.module, trace.pipeline)
        for observer in self._observers:
            observer.after_stage("ptx", lambda: binary.ptx)
            observer.after_stage("cubin", lambda: binary.cubin)

    def _show(
        self, stage: str, text: str, origin: Literal["cute", "tilepass"], module: Module
    ) -> None:
        for observer in self._observers:
            observer.after_pass(stage, self._passes, text, origin, _printer(module, observer))
        self._passes += 1


def _printer(module: Module, observer: StageObserver) -> Callable[[], str]:
    locations = observer.locations if isinstance(observer, LocationObserver) else True
    return lambda: print_readable(module, locations=locations)
