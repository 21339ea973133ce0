"""A CuTe workload executed on the CPU, from its PTX (see `ptx_machine`)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from ptx_machine import run_grid
from ptx_memory import GlobalMemory

from tilepass.kernels.cute_workload import CuteConfig, CuteWorkload
from tilepass.kernels.workload import Inputs

Outputs = tuple[torch.Tensor, ...]


def execute(
    workload: CuteWorkload[Any],
    ptx: str,
    inputs: Inputs,
    config: CuteConfig,
    grid: tuple[int, ...] | None = None,
) -> Outputs:
    """The outputs of one launch. Raises KernelFault for what is undefined on a GPU.

    The host function must hand its arguments on to the kernel as they are. `grid` replaces the
    number of CTAs that it would start.
    """
    operands = workload.operands(inputs, config)
    memory = GlobalMemory()
    addresses = {
        tensor.data_ptr(): memory.place(as_bits(tensor))
        for tensor in (*inputs.tensors.values(), *operands.outputs)
    }
    parameters = [
        packed_parameter(argument, lambda pointer: addresses[pointer])
        for argument in operands.arguments
        if argument is not None
    ]
    run_grid(ptx, memory, parameters, grid or operands.grid)
    memory.read_back()
    return operands.outputs


def as_bits(tensor: torch.Tensor) -> Any:
    """The tensor's own memory as integers, for numpy has no bf16."""
    kinds = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.view(kinds[tensor.element_size()]).numpy()


def packed_parameter(argument: Any, address: Callable[[int], int]) -> bytes:
    """An argument as the kernel gets it: of a tensor the pointer, the sizes that are not known when
    it is compiled (32 bits each) and the strides that are not (64 bits each)."""
    if not hasattr(argument, "data_ptr"):
        return struct.pack("<f" if isinstance(argument.value, float) else "<i", argument.value)
    mask: tuple[int, ...] = argument.dynamic_shapes_mask
    sizes = zip(argument.shape, mask, strict=True)
    # Of a contiguous tensor: a stride is the product of the sizes to its right.
    unknown = [any(mask[index + 1 :]) for index in range(len(mask))]
    strides = zip(argument.stride, unknown, strict=True)
    data = struct.pack("<q", address(argument.data_ptr))
    data += b"".join(struct.pack("<i", size) for size, dynamic in sizes if dynamic)
    data += bytes(-len(data) % 8)
    return data + b"".join(struct.pack("<q", stride) for stride, dynamic in strides if dynamic)


def differing_bits(first: Outputs, second: Outputs) -> int:
    """Elements of two sets of outputs that are not equal bit by bit."""
    pairs = zip(first, second, strict=True)
    return sum(int(np.count_nonzero(as_bits(a) != as_bits(b))) for a, b in pairs)
