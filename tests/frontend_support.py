"""Kernels, passes and a driver without a GPU, for the tests of the Triton front end."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import triton
from corpus.stand_in import Driver
from frontend_kernels import add_kernel
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource
from triton.runtime.driver import driver

from tilepass.frontends.observing import Compilation, Origin

SM75 = GPUTarget("cuda", 75, 32)
SM90 = GPUTarget("cuda", 90, 32)
SM100 = GPUTarget("cuda", 100, 32)
GFX942 = GPUTarget("hip", "gfx942", 64)

# Rewrites every addition of floats; what it makes of them can be seen in the generated code.
REWRITE_ADD = """
from dataclasses import dataclass
from typing import Literal

from tilepass.core.pass_base import Anchor, Pass
from tilepass.core.registry import register
from tilepass.ir.engine import ir

@register
class RewriteAdd(Pass):
    name = "rewrite-add"
    anchor = Anchor.end_of("ttir")
    touches = ("arith.addf",)

    @dataclass(frozen=True)
    class Options:
        to: Literal["mulf", "subf"] = "mulf"

    def run(self, module, context):
        found = []
        def visit(operation):
            if operation.name == "arith.addf":
                found.append(operation)
            return ir.WalkResult.ADVANCE
        module.operation.walk(visit)
        for add in found:
            new = ir.Operation.create(
                f"arith.{self.options.to}",
                results=[add.results[0].type],
                operands=list(add.operands),
                loc=add.location,
                ip=ir.InsertionPoint(add),
            )
            add.results[0].replace_all_uses_with(new.results[0])
            add.erase()
            context.remarks.passed(None, f"rewrote to {self.options.to}")
        if not found:
            context.remarks.missed(None, "nothing to rewrite")
"""

# One pass per behaviour; `{name}` and `{body}` are filled in.
PASS = """
from tilepass.core.pass_base import Anchor, Pass
from tilepass.core.registry import register
from tilepass.ir.engine import ir

@register
class Sample(Pass):
    name = "{name}"
    anchor = Anchor.parse("{anchor}")

    def run(self, module, context):
        {body}
"""


def source(kernel: Any = add_kernel) -> Any:
    """A kernel of two pointers and a block size, ready for `triton.compile`."""
    make = GluonASTSource if kernel.is_gluon() else ASTSource
    signature = {"x_pointer": "*fp32", "y_pointer": "*fp32", "BLOCK": "constexpr"}
    return make(kernel, signature, {"BLOCK": 128})


def compile_kernel(kernel: Any = add_kernel, target: GPUTarget = SM90, **options: Any) -> Any:
    """The compiled kernel; no GPU is needed."""
    return triton.compile(source(kernel), target=target, options=options)


def operation_of(compiled: Any) -> str:
    """Which float operation of REWRITE_ADD's is in the generated PTX."""
    ptx = compiled.asm["ptx"]
    (found,) = set(re.findall(r"\t(add|mul|sub)(?:\.rn)?\.f32", ptx))
    return found


def write_pass(folder: Path, name: str, body: str, anchor: str = "end:ttir") -> Path:
    """A file with one pass; `body` may use `self`, `module`, `context` and `ir`."""
    file = folder / f"{name.replace('-', '_')}.py"
    file.write_text(PASS.format(name=name, body=body, anchor=anchor))
    return file


def write_rewrite(folder: Path) -> Path:
    """A file with the pass of REWRITE_ADD."""
    file = folder / "rewrite_add.py"
    file.write_text(REWRITE_ADD)
    return file


@contextmanager
def fake_driver() -> Generator[None]:
    """Make a fake driver Triton's active one."""
    active: Any = driver
    before = active._active
    active.set_active(Driver())
    yield
    # Kernels unload themselves from the active driver when they are collected.
    gc.collect()
    active._active = before


class Recorder:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.compilations: list[Compilation] = []
        self.passes: list[tuple[str, str, Origin]] = []
        self.texts: list[str] = []
        self.stages: dict[str, str | bytes] = {}
        self.indices: list[int] = []

    def begin(self, compilation: Compilation, source: Callable[[], str]) -> None:
        self.compilations.append(compilation)
        self.texts.append(source())

    def after_pass(
        self,
        stage: str,
        index: int,
        pass_text: str,
        origin: Origin,
        module_text: Callable[[], str],
    ) -> None:
        self.indices.append(index)
        self.passes.append((stage, pass_text.partition("{")[0], origin))
        self.texts.append(module_text())

    def after_stage(self, stage: str, artifact: Callable[[], str | bytes]) -> None:
        self.stages[stage] = artifact()
