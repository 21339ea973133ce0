"""One dump for all tests of dump-ir, made once per process, and a way to make others."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import triton
from dump_kernels import SM90, compile_matmul

from tilepass.activate import enabled
from tilepass.dump.html import write_pages
from tilepass.dump.kernel_files import RecorderOptions
from tilepass.dump.recorder import Recorder
from tilepass.dump.report import KernelReport, finish_dump

# Marks each loop, with a remark and a decision.
MARK_LOOPS = """
from tilepass.core.decisions import Choice
from tilepass.core.pass_base import Anchor, Pass
from tilepass.core.registry import register
from tilepass.ir.engine import ir


@register
class MarkLoops(Pass):
    name = "mark-loops"
    anchor = Anchor.end_of("ttir")
    touches = ("scf.for",)

    def run(self, module, context):
        loops = []

        def visit(operation):
            if operation.name == "scf.for":
                loops.append(operation)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for loop in loops:
            default = Choice("on", "loops <are> marked")
            decision = context.decide(
                "mark", loop, {"loops": len(loops)}, model=lambda facts: None, default=default
            )
            loop.attributes["test.mark"] = ir.UnitAttr.get(loop.context)
            context.remarks.passed(loop, str(decision))
"""


def record(folder: Path, **options: Any) -> None:
    """Compile the small matmul with `mark-loops` while a recorder looks on."""
    pass_file = folder.with_suffix(".passes.py")
    pass_file.write_text(MARK_LOOPS)
    recorder = Recorder(
        RecorderOptions(folder, **options), compiler="triton", pipeline="mark-loops"
    )
    compile_always(pass_file, recorder)


def compile_always(pass_file: Path, recorder: Recorder, target: Any = SM90) -> Any:
    """Compile whatever Triton's cache holds."""
    compilation: Any = triton.knobs.compilation
    with compilation.scope():
        compilation.always_compile = True
        with enabled("mark-loops", observers=[recorder], load=[pass_file]):
            return compile_matmul(target)


@functools.cache
def finished_dump() -> tuple[Path, KernelReport]:
    """The dump of the small matmul for sm_90 with its page, and the report of its kernel."""
    root = Path(tempfile.mkdtemp(prefix="tilepass-test-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    dump = root / "dump"
    dump.mkdir()
    record(dump)
    (report,) = finish_dump(dump)
    write_pages(dump, [report])
    return dump, report
