"""Running the passes of a pipeline on a module that the DSL has just traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilepass.core.errors import PassFailure
from tilepass.core.pass_base import BinaryFigures, Pass, PassContext, Target
from tilepass.frontends.cute import dsl as cute_dsl
from tilepass.frontends.cute.lowering import clone, lower_for_analysis
from tilepass.frontends.placed import Placed
from tilepass.frontends.triton.reproducer import Failure
from tilepass.ir import engine
from tilepass.ir.checked_run import checked_run
from tilepass.ir.engine import Module, ir

# Where a module that passes have run on says so: in the module itself, as the DSL's caches are
# keyed by its text.
STAMP = "tilepass.pipeline"

MakeTrial = Callable[[str, Target], Callable[[Module], BinaryFigures]]
MakeContext = Callable[[Pass, Target, Mapping[str, object]], PassContext]


class Tracing:
    """One traced module and the compilation that it is for."""

    def __init__(self, dsl: Any, module: Module, make_context: MakeContext, make_trial: MakeTrial):
        self.module = module
        self.target = cute_dsl.target_of(dsl)
        self.pipeline = cute_dsl.compile_pipeline(dsl)
        self.options = cute_dsl.compile_options(dsl)
        self._make_context = make_context
        self._make_trial = make_trial

    def run(self, passes: Sequence[Placed], stamp: str) -> None:
        """Run passes in place, each verified; stamps the module if one of them ran.

        Raises PassFailure, with a reproducer.
        """
        ran = False
        for placed in passes:
            a_pass = placed.instance
            if a_pass.touches and engine.operation_names(self.module).isdisjoint(a_pass.touches):
                continue
            self._run_one(a_pass)
            ran = True
        if ran:
            text = ir.StringAttr.get(stamp, self.module.context)
            self.module.operation.attributes[STAMP] = text

    def _run_one(self, a_pass: Pass) -> None:
        before = clone(self.module)
        context = self._context(a_pass)
        with self.module.context, ir.Location.unknown():
            reason = checked_run(a_pass, self.module, context)
        if reason:
            text = engine.print_generic(before)
            raise PassFailure(Failure([a_pass], context, text, reason).message)

    def _context(self, a_pass: Pass) -> PassContext:
        context = self._make_context(a_pass, self.target, self.options)
        context.lower = self._lower
        context.trial = self._trial
        return context

    def _lower(self, module: Module) -> Module:
        return lower_for_analysis(module, self.pipeline)

    def _trial(self, module: Module) -> BinaryFigures:
        return self._make_trial(self.pipeline, self.target)(module)
