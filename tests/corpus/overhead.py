"""What tilepass costs a program that uses it: CPU time and memory."""

from __future__ import annotations

import gc
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tilepass.activate import enabled
from tilepass.core.pass_base import Anchor, Pass, PassContext
from tilepass.core.registry import register
from tilepass.frontends.triton import bridge
from tilepass.ir import engine
from tilepass.kernels import get_workload
from tilepass.passes.triton.test_round_trip import TestRoundTrip
from tilepass.subjects.anew import compiled_anew

from .compiling import run_stages
from .entries import HOPPER, Entry, all_entries
from .pass_context import make_context


@register
class TouchesNothing(Pass):
    """A pass whose operations occur in no module."""

    name = "touches-nothing"
    anchor = Anchor.end_of("ttir")
    touches = ("nosuch.operation",)

    def run(self, module: engine.Module, context: PassContext) -> None:
        raise AssertionError("the module holds no operation of this pass")


def compile_overhead(pipeline: str, entries: list[Entry], rounds: int) -> list[float]:
    """Per kernel, the share of the CPU time from source to cubin that `pipeline` adds.

    What is added is measured where it arises, over the IR stages: compilations to TTGIR without and
    with the pipeline alternate, the fastest of `rounds` of each counts. The whole compilation's
    time is the less of two; that of the assembler, a separate process, is included.
    """
    shares: list[float] = []
    for entry in entries:
        plain, with_pipeline = list[float](), list[float]()
        for index in range(2 * rounds):
            # The order alternates too: the second of two compilations finds warm caches.
            if (index + index // 2) % 2:
                with enabled(pipeline, remarks="none"):
                    with_pipeline.append(_cpu_time(entry, "ttgir"))
            else:
                plain.append(_cpu_time(entry, "ttgir"))
        whole = min(_cpu_time(entry, "cubin") for _ in range(2))
        shares.append((min(with_pipeline) - min(plain)) / whole)
    return shares


def pass_shares(
    kernel: str, variants: Sequence[Mapping[str, object]], pipeline: str, rounds: int
) -> list[float]:
    """Per variant of a kernel of tilepass, the share of the CPU time to cubin that goes into the
    passes of `pipeline` and the trips they take; the fastest of `rounds` compilations counts.

    For passes that change the kernel: what the compiler then does with it is not their cost.
    """
    workload, spent = get_workload(kernel), 0.0
    run_passes: Any = bridge.run_passes

    def timed(*arguments: Any) -> Any:
        nonlocal spent
        start = time.process_time()
        try:
            return run_passes(*arguments)
        finally:
            spent += time.process_time() - start

    shares: list[float] = []
    with patch.object(bridge, "run_passes", timed), compiled_anew():
        for fields in variants:
            config = workload.config_for(workload.default_shapes[0], **fields)
            inside, whole = list[float](), list[float]()
            for _ in range(rounds):
                spent, start = 0.0, _cpu()
                with enabled(pipeline, remarks="none"):
                    workload.compile(config, HOPPER)
                inside.append(spent)
                whole.append(_cpu() - start)
            shares.append(min(inside) / min(whole))
    return shares


def compilable(limit: int | None = None) -> list[Entry]:
    """The Triton entries for NVIDIA targets, evenly thinned to `limit`."""
    entries = [e for e in all_entries() if e.target.backend == "cuda" and not e.gluon]
    step = 1 if limit is None else max(1, len(entries) // limit)
    return entries[::step]


def module_of_size(operations: int) -> tuple[str, int, bridge.TritonModule]:
    """The module after make_ttgir with the number of operations closest to that asked for."""
    best: tuple[str, int, bridge.TritonModule] | None = None
    for entry in compilable():
        *_, (_, module) = run_stages(entry, "ttgir")
        count = _count(module)
        if best is None or abs(count - operations) < abs(best[1] - operations):
            best = (entry.name, count, module)
    assert best is not None
    return best


def trip_times(module: bridge.TritonModule, rounds: int) -> list[float]:
    """CPU time of each of `rounds` trips, in ms."""
    times: list[float] = []
    for _ in range(rounds):
        start = time.process_time()
        bridge.run_passes(module, [TestRoundTrip()], make_context)
        times.append((time.process_time() - start) * 1e3)
    return times


def trip_memory(megabytes: float) -> tuple[float, float]:
    """Size of a module's text in MB, and by how many MB a trip raises the process's peak.

    To be called in a process that has done nothing large before.
    """
    module = _module_of_megabytes(megabytes)
    size = len(module.str()) / 1e6
    _, _, small = module_of_size(200)
    bridge.run_passes(small, [TestRoundTrip()], make_context)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    bridge.run_passes(module, [TestRoundTrip()], make_context)
    return size, _status("VmHWM") - before


def command_times(command: list[str], rounds: int) -> list[float]:
    """Wall time of each of `rounds` runs of a command, in ms."""
    times: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - start) * 1e3)
    return times


def _cpu_time(entry: Entry, last: str) -> float:
    start = _cpu()
    for _ in run_stages(entry, last):
        pass
    return _cpu() - start


def _cpu() -> float:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _count(module: bridge.TritonModule) -> int:
    return len(engine.operations(bridge.to_engine(module)))


def _module_of_megabytes(megabytes: float) -> bridge.TritonModule:
    """A module with as many copies of one function as it takes."""
    _, _, module = module_of_size(200)
    copies = round(megabytes * 1e6 / len(module.str()) * 1.15)
    whole = bridge.to_engine(module)
    function = whole.body.operations[0].operation
    for index in range(copies):
        copy = function.clone(ip=engine.ir.InsertionPoint(whole.body))
        copy.attributes["sym_name"] = engine.ir.StringAttr.get(f"copy_{index}", whole.context)
    return bridge.from_engine(whole, bridge.new_context())


def _status(key: str) -> float:
    """A line of the process's status, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) / 1024
    raise KeyError(key)
