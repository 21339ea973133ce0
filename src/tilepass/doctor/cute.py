"""Whether the installed CuTe DSL can be worked with: its hook, its pipeline, its compiler."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from typing import Any

from tilepass.core.pass_base import Target
from tilepass.doctor.machine import Finding
from tilepass.frontends.cute.lowering import (
    ANALYSIS_END,
    chip_of,
    compile_copy,
    front_passes,
    stock_pipeline,
)
from tilepass.ir import engine

_TARGET = Target("cuda", 90)
# A kernel that does nothing.
_MODULE = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    cuda.kernel @nothing() attributes {cute.kernel, gpu.kernel, nvvm.reqntid = array<i32: 32>} {
      cuda.return
    }
  }
}
"""


def check_cute_hook() -> Sequence[Finding]:
    """Passes run in the trace-finalize hook; the DSL is imported as a program does."""
    dsl: Any = importlib.import_module("cutlass.base_dsl.dsl")
    if hasattr(dsl.BaseDSL, "register_trace_finalize_hook"):
        return [Finding("CuTe hook", "ok", "the DSL has trace-finalize hooks")]
    advice = "passes cannot run in it: pip install 'nvidia-cutlass-dsl>=4.6'"
    return [Finding("CuTe hook", "FAIL", "the DSL has no trace-finalize hooks", advice)]


def check_cute_compiler() -> Sequence[Finding]:
    """The pipeline can be cut for analyses, and compiles without a GPU."""
    pipeline = stock_pipeline(chip_of(_TARGET))
    count = len(front_passes(pipeline))
    start = time.perf_counter()
    binary = compile_copy(engine.parse(_MODULE), pipeline)
    took = time.perf_counter() - start
    found = (
        f"{count} passes up to {ANALYSIS_END} run alone; an empty kernel gives "
        f"{len(binary.cubin)} bytes of cubin for {chip_of(_TARGET)} in {took:.2f} s"
    )
    return [Finding("CuTe compiler", "ok", found)]
