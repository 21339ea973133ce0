"""Kernels of tilepass for the simulator: compiled without a GPU, run on numpy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import ml_dtypes
import numpy as np
import torch
from numpy.typing import NDArray
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend

from tilepass.frontends.triton import bridge
from tilepass.frontends.triton.modules import triton_ir
from tilepass.kernels import get_workload
from tilepass.kernels._workload import Inputs, Launch, Workload
from tilepass.sim.arguments import Argument, HostDescriptor, Uninitialized, grouped
from tilepass.sim.compiler import Program
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


def simulated(name: str, shape: tuple[int, ...], arch: int = 90, **fields: Any) -> Simulated:
    """A kernel of tilepass compiled for an NVIDIA GPU, with inputs of `shape`."""
    workload: Workload[Any] = get_workload(name)
    config = workload.config_for(shape, **fields)
    inputs = workload.make_inputs(shape, 0, device="cpu", config=config)
    launch = workload.prepare(inputs, config)
    source, options = workload.ast_source(config)
    return Simulated(
        workload, inputs, launch, _stages(source, options, GPUTarget("cuda", arch, 32))
    )


def _stages(source: Any, given: Mapping[str, Any], target: Any) -> Mapping[str, str]:
    """The IR of the stages that the simulator takes; what comes after them is not compiled."""
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
