"""A module that the DSL has just traced, and what passes are given with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilepass.core.pass_base import BinaryFigures, Pass, PassContext, Target
from tilepass.frontends.cute import dsl as cute_dsl
from tilepass.frontends.cute.lowering import lower_for_analysis
from tilepass.ir import engine
from tilepass.ir.engine import Module, ir

MakeTrial = Callable[[str, Target], Callable[[Module], BinaryFigures]]
MakeContext = Callable[[Pass, Target, Mapping[str, object]], PassContext]
# Kernels have it, and functions that kernels call have not.
_KERNEL_MARK = "cute.kernel"


@dataclass(frozen=True)
class Trace:
    """One traced module and the compilation that it is for.

    `pipeline` is the DSL's own, with the options of this compilation. `key` is the hash under which
    the DSL's caches would keep the module as it was traced.
    """

    module: Module
    function: str
    target: Target
    pipeline: str
    options: Mapping[str, object]
    key: str

    @classmethod
    def of(cls, dsl: Any, module: Module, function: str) -> Trace:
        """What the DSL says of the module that it is tracing."""
        return cls(
            module,
            function,
            cute_dsl.target_of(dsl),
            cute_dsl.compile_pipeline(dsl, module),
            cute_dsl.compile_options(dsl),
            cute_dsl.module_hash(dsl, module, function),
        )

    def context(
        self, a_pass: Pass, make_context: MakeContext, make_trial: MakeTrial
    ) -> PassContext:
        """The context of one pass, with the two ways to see what becomes of a module."""
        context = make_context(a_pass, self.target, self.options)
        context.lower = lambda module: lower_for_analysis(module, self.pipeline)
        context.trial = lambda module: make_trial(self.pipeline, self.target)(module)
        return context

    def kernels(self) -> list[str]:
        """The names of the kernels in the module; none where it only runs on the host."""
        found = [
            operation
            for operation in engine.operations(self.module)
            if _KERNEL_MARK in operation.attributes
        ]
        return [ir.StringAttr(operation.attributes["sym_name"]).value for operation in found]
