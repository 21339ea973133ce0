"""Checking and timing the arms on the GPU: one case at a time, all arms interleaved.

Every arm is loaded `copies` times, and a timed span launches all of its copies in turn: where the
driver puts the code of a kernel changes its time by up to 1 %, which is not the arm's doing. The
baseline's duplicate has copies of its own, so that the control shows what is left of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from benchmarks.gdn_prefill.workload import Case, Inputs, Outputs, reference
from tilepass.ab.clocks import ClockMonitor
from tilepass.ab.cuda_device import CudaGpu, Graph, launches_for
from tilepass.ab.protocol import Plan, Samples, Summary, measure, summarise
from tilepass.core.errors import TilepassError

Function = Callable[..., object]


@dataclass(frozen=True)
class Loaded:
    """An arm on the GPU: the same kernel, loaded several times."""

    name: str
    functions: tuple[Function, ...]


@dataclass(frozen=True)
class Errors:
    """Largest absolute error of output and state against the fp64 recurrence."""

    output: float
    state: float


@dataclass(frozen=True)
class CaseResult:
    """What was found for one case and type. `equal_bits` says for each arm whether its output and
    final state are the dense kernel's bit for bit; `summary` is None where nothing was timed."""

    case: str
    dtype: str
    errors: Errors
    equal_bits: dict[str, bool]
    launches: int = 0
    rounds: int = 0
    summary: Summary | None = None

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """As JSON has it; arms by name."""
        result = {**asdict(self), "summary": None}
        if self.summary is None:
            return result
        duplicate = self.summary.duplicate
        result["median_us"] = dict(zip([*names, "dense'"], self.summary.medians, strict=True))
        result["duplicate"] = {**asdict(duplicate.estimate), "verdict": str(duplicate.verdict)}
        result["ratios"] = {
            names[each.arm]: {**asdict(each.estimate), "verdict": str(each.verdict)}
            for each in self.summary.comparisons
        }
        del result["summary"]
        return result


def check(case: Case, dtype: str, arms: Sequence[Loaded]) -> CaseResult:
    """Run every arm once: bits against the first arm's, errors against fp64."""
    inputs = Inputs(case, dtype, "cuda")
    dense = _run(arms[0].functions[0], inputs)
    equal = {arm.name: _same(dense, _run(arm.functions[0], inputs)) for arm in arms[1:]}
    exact = reference(inputs)
    errors = Errors(
        *(float((x.double() - y).abs().max()) for x, y in zip(dense, exact, strict=True))
    )
    return CaseResult(case.name, dtype, errors, equal)


def time_case(
    case: Case,
    dtype: str,
    arms: Sequence[Loaded],
    duplicate: Loaded,
    plan: Plan,
    monitor: ClockMonitor | None,
) -> CaseResult:
    """Check, then time. Raises TilepassError where the launches cannot be timed."""
    checked = check(case, dtype, arms)
    inputs = Inputs(case, dtype, "cuda")
    gpu = CudaGpu(monitor)
    outputs = inputs.new_outputs()
    probe = gpu.capture([_launcher(arms[0].functions[0], inputs, outputs)])
    copies = len(arms[0].functions)
    launches = copies * math.ceil(launches_for(gpu.launch_us(probe)) / copies)
    graphs = [_graph(gpu, arm, inputs, launches) for arm in (*arms, duplicate)]
    samples = Samples(len(arms))
    for batch in measure(gpu.timer(graphs), len(arms), plan):
        samples.add(batch)
    summary = summarise(samples, plan.criteria, plan.seed)
    if summary is None:
        raise TilepassError(f"{case.name}: no usable round")
    return CaseResult(
        case.name,
        dtype,
        checked.errors,
        checked.equal_bits,
        launches,
        len(samples.times()),
        summary,
    )


def _graph(gpu: CudaGpu, arm: Loaded, inputs: Inputs, launches: int) -> Graph:
    """Launches of all copies of an arm in turn; each has run before, as capturing requires."""
    outputs = inputs.new_outputs()
    for function in arm.functions:
        _launcher(function, inputs, outputs)()
    gpu.synchronize()
    turn = [arm.functions[index % len(arm.functions)] for index in range(launches)]
    return gpu.capture([_launcher(function, inputs, outputs) for function in turn])


def _launcher(function: Function, inputs: Inputs, outputs: Outputs) -> Callable[[], Outputs]:
    def launch() -> Outputs:
        stream = int(torch.cuda.current_stream().cuda_stream)
        function(*inputs.arguments(outputs, "call", stream))
        return outputs

    return launch


def _run(function: Function, inputs: Inputs) -> Outputs:
    outputs = inputs.new_outputs()
    _launcher(function, inputs, outputs)()
    torch.cuda.synchronize()
    return outputs


def _same(one: Outputs, other: Outputs) -> bool:
    """Bit for bit; NaN is never the same, as an output that was not written."""
    return all(
        not bool(x.isnan().any()) and torch.equal(_bits(x), _bits(y))
        for x, y in zip(one, other, strict=True)
    )


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(torch.int16 if tensor.element_size() == 2 else torch.int32)
