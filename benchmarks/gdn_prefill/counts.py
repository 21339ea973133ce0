"""MMA instructions of FlashInfer's prefill classes, dense and rewritten, compiled without a GPU."""

from __future__ import annotations

import importlib
import inspect
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.gdn_prefill.build import content_of
from benchmarks.gdn_prefill.source import load_class
from benchmarks.gdn_prefill.wheels import WITH_SKIP, WITHOUT_SKIP
from benchmarks.gdn_prefill.workload import Inputs, case
from tilepass.activate import enabled
from tilepass.core.decisions import Decision
from tilepass.passes.cute.cute_zero_mma.choice import KIND

AUTO = "cute-zero-mma"
NAIVE = "cute-zero-mma{order=k,loads=keep}"
STRICT = "cute-zero-mma{order=k,strict=true}"

_WITH_ALL = {
    "needs_alpha": True,
    "needs_beta": True,
    "needs_init_state": True,
    "needs_checkpointing": False,
}


@dataclass(frozen=True)
class Kernel:
    """A class of a FlashInfer version, its constructor's flags, and the `mma.sync` expected.

    `counts` maps pipelines to counts for bf16; "" is the unmodified class. With the order left to
    the pass, the gemms before the loop stay dense.
    """

    version: str
    module: str
    name: str
    flags: Mapping[str, bool | int]
    counts: Mapping[str, int]


KERNELS: Mapping[str, Kernel] = MappingProxyType(
    {
        "sm120": Kernel(
            WITHOUT_SKIP,
            "delta_rule_sm120",
            "_FullyFusedDeltaRuleSm120",
            _WITH_ALL,
            MappingProxyType({"": 1194, NAIVE: 1122, STRICT: 1158, AUTO: 1146}),
        ),
        "sm80": Kernel(
            WITH_SKIP,
            "delta_rule_sm80",
            "_FullyFusedDeltaRuleSm80",
            _WITH_ALL | {"blk_v": 64},
            MappingProxyType({"": 1194, NAIVE: 1122, STRICT: 1158, AUTO: 1146}),
        ),
        "cp-sm120": Kernel(
            WITH_SKIP,
            "delta_rule_cp_sm120",
            "CPDeltaRulePrefillSm120",
            {"needs_initial_state": True},
            MappingProxyType({"": 1728, NAIVE: 1584, STRICT: 1728, AUTO: 1608}),
        ),
    }
)


@dataclass(frozen=True)
class Compiled:
    """A compilation: PTX, seconds for tracing (with the passes) and for compiling, remarks, and the
    decisions on the orders of the gemms that have zero tiles."""

    ptx: str
    trace_s: float
    compile_s: float
    remarks: tuple[str, ...]
    decisions: tuple[Decision, ...]

    @property
    def orders(self) -> dict[str, list[int]]:
        """The gemms by their order, `dense` for those that stay as they are."""
        found: dict[str, list[int]] = {}
        for decision in self.decisions:
            found.setdefault(decision.value, []).append(int(decision.facts["gemm"] or 0))
        return found

    @property
    def mma_count(self) -> int:
        """`mma.sync` instructions."""
        return self.ptx.count("mma.sync")

    @property
    def load_count(self) -> int:
        """`ldmatrix` instructions."""
        return self.ptx.count("ldmatrix")


def compile_kernel(kernel: Kernel, folder: Path, pipeline: str, chip: str, dtype: str) -> Compiled:
    """Compile a class for a chip with a pipeline in force. Raises TilepassError."""
    cutlass: Any = importlib.import_module("cutlass")
    cute: Any = importlib.import_module("cutlass.cute")
    element = {"bf16": cutlass.BFloat16, "f16": cutlass.Float16}[dtype]
    instance = load_class(folder, kernel.module, kernel.name)(**kernel.flags, dtype=element)
    inputs = Inputs(case(2, 128, 4), dtype, "cpu")
    named = inputs.named_for_chunks(inputs.new_outputs(), "trace")
    parameters = list(inspect.signature(type(instance).__call__).parameters)[1:]
    times = [time.perf_counter()]

    def note_time(*_: object) -> None:
        times.append(time.perf_counter())

    compiler: Any = importlib.import_module("cutlass.base_dsl.compiler")
    with (
        tempfile.TemporaryDirectory(prefix="tilepass-") as scratch,
        enabled(pipeline, remarks="none") as session,
    ):
        options = (cute.GPUArch(chip), cute.KeepPTX(True), compiler.DumpDir(scratch))
        compiled = cute.compile[options](
            instance, *(named.get(name) for name in parameters), trace_finalize_hooks=note_time
        )
        times.append(time.perf_counter())
        ptx = content_of(compiled.__ptx__).decode()
    remarks = tuple(remark.format() for remark in session.remarks)
    decisions = tuple(each for each in session.decisions if each.kind == KIND)
    return Compiled(ptx, times[1] - times[0], times[2] - times[1], remarks, decisions)
