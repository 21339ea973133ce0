"""Passes for the tests of tilepass-opt; each does one thing that a pass may do, or must not."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Literal

from tilepass.core.decisions import Choice
from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Anchor, Pass, PassContext
from tilepass.core.registry import register
from tilepass.ir import engine


@register
class RenameAttribute(Pass):
    """Rename the attribute `test.old` wherever it occurs."""

    name = "test-rename-attribute"
    anchor = Anchor.end_of("ttir")

    @dataclass(frozen=True)
    class Options:
        to: str = "test.new"
        times: int = 1
        mode: Literal["all", "none"] = "all"

    def run(self, module: engine.Module, context: PassContext) -> None:
        if self.options.mode == "none":
            return
        for operation in engine.operations(module):
            if "test.old" in operation.attributes:
                operation.attributes[self.options.to] = operation.attributes["test.old"]
                del operation.attributes["test.old"]


@register
class Remarks(Pass):
    """Emit one remark of each kind on every `arith.addi`."""

    name = "test-remarks"
    anchor = Anchor.end_of("ttir")
    touches = ("arith.addi",)

    def run(self, module: engine.Module, context: PassContext) -> None:
        for operation in engine.operations(module):
            if operation.name == "arith.addi":
                context.remarks.passed(operation, "added")
                context.remarks.missed(operation, "not multiplied: it is an addition")
                context.remarks.analysis(
                    operation, f"target is {context.target} of {context.compiler}"
                )


@register
class Raises(Pass):
    """Raise an exception that no pass should."""

    name = "test-raises"
    anchor = Anchor.end_of("ttir")

    def run(self, module: engine.Module, context: PassContext) -> None:
        raise ValueError("no such luck")


@register
class Exits(Pass):
    """End the process, as a pass that calls a script's `main` may."""

    name = "test-exits"
    anchor = Anchor.end_of("ttir")

    def run(self, module: engine.Module, context: PassContext) -> None:
        raise SystemExit(0)


@register
class Crashes(Pass):
    """End the process from native code, as an assertion does, and print before that."""

    name = "test-crashes"
    anchor = Anchor.end_of("ttir")

    def run(self, module: engine.Module, context: PassContext) -> None:
        print("about to crash")
        os.abort()


@register
class Recurses(Pass):
    """Walk inside of walks until the C stack is full."""

    name = "test-recurses"
    anchor = Anchor.end_of("ttir")

    def run(self, module: engine.Module, context: PassContext) -> None:
        def walk(_: engine.Operation) -> engine.ir.WalkResult:
            module.operation.walk(walk)
            return engine.ir.WalkResult.ADVANCE

        sys.setrecursionlimit(1 << 24)
        module.operation.walk(walk)


@register
class EndsTheProcess(Pass):
    """End the process past all that cleans up."""

    name = "test-ends-the-process"
    anchor = Anchor.end_of("ttir")

    def run(self, module: engine.Module, context: PassContext) -> None:
        os._exit(7)


@register
class Prints(Pass):
    """Print, as whoever looks for a mistake does."""

    name = "test-prints"
    anchor = Anchor.end_of("ttir")

    def run(self, module: engine.Module, context: PassContext) -> None:
        print(f"{len(engine.operations(module))} operations")


@register
class Refuses(Pass):
    """Refuse with an error meant for the user."""

    name = "test-refuses"
    anchor = Anchor.end_of("ttir")

    def run(self, module: engine.Module, context: PassContext) -> None:
        for operation in engine.operations(module):
            if operation.name == "arith.addi":
                place = engine.location_of(operation)
                raise TilepassError(f"{place}: error: cannot be forced here")


@register
class InvalidIr(Pass):
    """Erase a terminator (`where` = engine), or give a return no operand (`where` = triton)."""

    name = "test-invalid-ir"
    anchor = Anchor.end_of("ttir")

    @dataclass(frozen=True)
    class Options:
        where: Literal["engine", "triton"] = "triton"

    def run(self, module: engine.Module, context: PassContext) -> None:
        for operation in engine.operations(module):
            if self.options.where == "engine" and operation.name == "arith.constant":
                del operation.attributes["value"]
                return
            if operation.name == "tt.return":
                place = engine.ir.InsertionPoint(operation)
                engine.ir.Operation.create("tt.return", loc=operation.location, ip=place)
                operation.erase()
                return


@register
class Decides(Pass):
    """Decide on a color for every `arith.addi`."""

    name = "test-decides"
    anchor = Anchor.end_of("ttir")

    @dataclass(frozen=True)
    class Options:
        color: Literal["auto", "blue", "green"] = "auto"

    def run(self, module: engine.Module, context: PassContext) -> None:
        for operation in engine.operations(module):
            if operation.name != "arith.addi":
                continue
            facts = {"operands": len(operation.operands), "type": str(operation.results[0].type)}
            context.decide(
                "color",
                operation,
                facts,
                forced=None if self.options.color == "auto" else self.options.color,
                model=lambda facts: Choice("green", "it is an addition"),
                default=Choice("red", "nothing is known"),
            )
