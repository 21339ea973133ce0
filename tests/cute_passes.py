"""Passes for tests of the CuTe front end; loaded as a user's file would be."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Anchor, BinaryFigures, Pass, PassContext
from tilepass.core.registry import register
from tilepass.ir.engine import Module, ir, operations, print_generic
from tilepass.ir.loops import Loop, loops_in


@register
class DropGemms(Pass):
    """Erase the first `count` gemms."""

    name = "drop-gemms"
    anchor = Anchor.end_of("trace")
    touches = ("cute.gemm",)

    @dataclass(frozen=True)
    class Options:
        count: int = 1

    def run(self, module: Module, context: PassContext) -> None:
        """Erase, and say so at each."""
        gemms = [operation for operation in operations(module) if operation.name == "cute.gemm"]
        for gemm in gemms[: self.options.count]:
            context.remarks.passed(gemm, "a gemm is dropped")
            gemm.erase()


@register
class LookGemms(Pass):
    """Change nothing; say what lowering and compiling a copy give."""

    name = "look-gemms"
    anchor = Anchor.end_of("trace")
    touches = ("cute.gemm",)

    def run(self, module: Module, context: PassContext) -> None:
        """Two remarks."""
        if context.lower is None or context.trial is None:
            raise TilepassError("nothing to look with")
        # The operations of a module die with it.
        lowered = context.lower(module)
        names = [operation.name for operation in operations(lowered)]
        context.remarks.analysis(None, f"lowered to {names.count('nvvm.mma.sync')} loops of mma")
        figures = context.trial(module)
        assert isinstance(figures, BinaryFigures)
        context.remarks.analysis(None, f"compiled to {figures.mma_count} mma")


@register
class BreakModule(Pass):
    """Leave IR that does not verify, or raise."""

    name = "break-module"
    anchor = Anchor.end_of("trace")

    @dataclass(frozen=True)
    class Options:
        raises: bool = False

    def run(self, module: Module, context: PassContext) -> None:
        """A function without its terminator does not verify."""
        if self.options.raises:
            raise ValueError("as asked")
        names = ("func.return", "cuda.return")
        ends = [operation for operation in operations(module) if operation.name in names]
        ends[0].erase()


@register
class ReadEverything(Pass):
    """Look at every value in every way, as in a module of Triton's, and change nothing."""

    name = "read-everything"
    anchor = Anchor.end_of("trace")

    def run(self, module: Module, context: PassContext) -> None:
        """Raises AssertionError where a value is not a plain one, or looking leaves a trace."""
        before, seen = print_generic(module), set[ir.Value]()
        for operation in operations(module):
            blocks = [block for region in operation.regions for block in region.blocks]
            arguments = [argument for block in blocks for argument in block.arguments]
            for value in (*operation.operands, *operation.results, *arguments):
                assert isinstance(value, ir.OpResult | ir.BlockArgument), type(value)
                seen.add(value)
                assert value in seen
        loops = loops_in(module)
        for loop in loops:
            assert loop.induction_variable in seen
            assert {carried.argument for carried in loop.carried} <= seen
            assert loop.carried == Loop(loop.operation).carried
        assert print_generic(module) == before
        any_value: Any = next(iter(seen))
        with suppress(TypeError):
            _ = any_value + any_value
            raise AssertionError("a value was added to a value")
        context.remarks.analysis(None, f"values: {len(seen)}, loops: {len(loops)}")
