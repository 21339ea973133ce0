"""Kernels of tilepass for the simulator: compiled without a GPU, run on numpy arrays.

Their IR is taken after every stage, or after every pass of Triton that changed it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import ml_dtypes
import numpy as np
import torch
from numpy.typing import NDArray
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend

from tilepass.activate import enabled
from tilepass.frontends.observing import Compilation, Origin
from tilepass.frontends.triton import bridge
from tilepass.frontends.triton.modules import triton_ir
from tilepass.kernels import get_workload
from tilepass.kernels.workload import Inputs, Launch, Workload
from tilepass.sim.arguments import Argument, HostDescriptor, Uninitialized
from tilepass.sim.compiler import Program
from tilepass.sim.parameter_groups import grouped
from tilepass.sim.values import run

DTYPES: Mapping[torch.dtype, Any] = {
    torch.bfloat16: ml_dtypes.bfloat16,
    torch.float16: np.float16,
    torch.float32: np.float32,
    torch.float8_e4m3fn: ml_dtypes.float8_e4m3fn,
    torch.int8: np.int8,
    torch.uint8: np.uint8,
    torch.int32: np.int32,
    torch.int64: np.int64,
}


def as_array(tensor: torch.Tensor) -> NDArray[Any]:
    """A CPU tensor's own memory, strides kept, as an array."""
    dtype = np.dtype(DTYPES[tensor.dtype])
    spans = zip(tensor.shape, tensor.stride(), strict=True)
    extent = (sum((size - 1) * step for size, step in spans) + 1) * dtype.itemsize
    if not tensor.numel():
        return np.empty(tuple(tensor.shape), dtype)
    memory: Any = (ctypes.c_uint8 * extent).from_address(tensor.data_ptr())
    strides = tuple(step * dtype.itemsize for step in tensor.stride())
    return np.ndarray(tuple(tensor.shape), dtype, memory, 0, strides)


@dataclass
class Simulated:
    """A workload's launch, to be run by the simulator at any stage."""

    workload: Workload[Any]
    inputs: Inputs
    launch: Launch
    texts: Mapping[str, str]

    def run(self, stage: str) -> bytes:
        """Execute one stage's IR; returns the bits of the outputs."""
        self.launch.poison()
        program = Program(bridge.to_engine(bridge.load(self.texts[stage], stage)))
        given = cast("Any", self.launch.run).keywords
        arguments = {
            group.name: self._argument(given[group.name]) for group in grouped(program.parameters)
        }
        run(program, arguments, self.launch.grid)
        return b"".join(as_array(output).tobytes() for output in self.launch.outputs)

    def problem(self) -> str | None:
        """What differs from the workload's reference."""
        return self.workload.check(self.launch, self.inputs)

    def stages(self) -> Iterator[str]:
        """The stages whose IR can be executed."""
        yield from self.texts

    def disagreement(self) -> str | None:
        """Execute every stage: the first that is not right, or has not the bits of the first."""
        first = None
        for stage in self.stages():
            bits = self.run(stage)
            if first is None:
                first = bits
                if problem := self.problem():
                    return f"{stage}: {problem}"
            if bits != first:
                return f"{stage}: other bits than those of the source"
        return None

    def _argument(self, value: Any) -> Argument:
        if isinstance(value, torch.Tensor):
            outputs = [output.data_ptr() for output in (*self.launch.outputs, *self.launch.scratch)]
            array = as_array(value)
            return Uninitialized(array) if value.data_ptr() in outputs else array
        if hasattr(value, "block_shape"):
            fill = float("nan") if getattr(value, "padding", "zero") == "nan" else 0.0
            array = self._argument(value.base)
            assert isinstance(array, np.ndarray | Uninitialized)
            return HostDescriptor(array, fill)
        return value


def simulated(
    name: str, shape: tuple[int, ...], arch: int = 90, *, every_pass: bool = False, **fields: Any
) -> Simulated:
    """A kernel of tilepass compiled for an NVIDIA GPU, with inputs of `shape`."""
    workload: Workload[Any] = get_workload(name)
    config = workload.config_for(shape, **fields)
    inputs = workload.make_inputs(shape, 0, device="cpu", config=config)
    launch = workload.prepare(inputs, config)
    source, options = workload.ast_source(config)
    texts = (texts_of_passes if every_pass else texts_of_stages)(source, options, arch)
    return Simulated(workload, inputs, launch, texts)


def texts_of_stages(source: Any, given: Mapping[str, Any], arch: int) -> dict[str, str]:
    """The IR of the stages that the simulator takes; what comes after them is not compiled."""
    target = GPUTarget("cuda", arch, 32)
    backend: Any = make_backend(target)
    options = backend.parse_options({**given, **source.parse_options()})
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    backend.load_dialects(context)
    functions = backend.get_codegen_implementation(options)
    module = source.make_ir(target, options, functions, backend.get_module_map(), context)
    texts = {"source": module.str()}
    metadata: dict[str, Any] = {"hash": "", "target": target, **vars(options)}
    for stage in ("ttir", "ttgir"):
        module = stages[stage](module, metadata)
        texts[stage] = module.str()
    return texts


def texts_of_passes(source: Any, given: Mapping[str, Any], arch: int) -> dict[str, str]:
    """The IR of the front end, and after each pass that changed it."""
    changes = _Changes()
    with enabled("", observers=[changes]):
        texts_of_stages(source, given, arch)
    return changes.texts


class _Changes:
    """An observer that keeps the IR after each pass that changed it."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._last = ""

    def begin(self, compilation: Compilation, source: Callable[[], str]) -> None:
        self._add("source", source())

    def after_pass(
        self, stage: str, index: int, pass_text: str, origin: Origin, module_text: Callable[[], str]
    ) -> None:
        self._add(f"{stage} {index} {pass_text.partition('{')[0]}", module_text())

    def after_stage(self, stage: str, artifact: Callable[[], str | bytes]) -> None: ...

    def _add(self, name: str, text: str) -> None:
        if text != self._last:
            self.texts[name] = self._last = text
