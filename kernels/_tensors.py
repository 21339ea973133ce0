"""Tensors for the kernels: random values, rows padded for TMA, descriptors, device facts.

torch is imported by the functions, not by the module: compiling a kernel needs none.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tilepass.core.errors import TilepassError

if TYPE_CHECKING:
    import torch

TMA_ALIGNMENT = 16
"""Bytes that base addresses and row strides of a TMA tensor are multiples of (CUDA driver API,
cuTensorMapEncodeTiled)."""
MAX_TMA_BOX = 256
"""Elements that a TMA box has at most along each dimension (same source)."""
CPU_PROGRAMS = 4
"""Grid size of a persistent kernel in Triton's interpreter, where there are no SMs."""


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def dtype_of(name: str) -> torch.dtype:
    import torch

    return {
        "bf16": torch.bfloat16,
        "fp16": torch.float16,
        "fp32": torch.float32,
        "fp8e4m3": torch.float8_e4m3fn,
    }[name]


def seeded(seed: int, device: str) -> torch.Generator:
    """A generator on `device`. Raises TilepassError where a GPU is asked for and there is none."""
    import torch

    if device.startswith("cuda") and not torch.cuda.is_available():
        raise TilepassError(f"device '{device}' asked for, but torch finds no GPU")
    return torch.Generator(device).manual_seed(seed)


def uniform(shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    """fp32 in [-1, 1]: random data, because the values decide the power a matmul draws."""
    import torch

    return torch.rand(shape, generator=generator, device=generator.device) * 2 - 1


def empty_rows(
    rows: int, columns: int, dtype: torch.dtype, device: torch.device | str
) -> torch.Tensor:
    """[rows, columns] of NaN with a row stride of a positive multiple of TMA_ALIGNMENT bytes."""
    import torch

    step = TMA_ALIGNMENT // dtype.itemsize
    stride = max(ceil_div(columns, step), 1) * step
    whole = torch.full((rows, stride), float("nan"), dtype=torch.float32, device=device)
    return whole.to(dtype)[:, :columns]


def padded_rows(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`values` [rows, columns] in `dtype`, rows padded as by `empty_rows`, the padding NaN."""
    result = empty_rows(values.shape[0], values.shape[1], dtype, values.device)
    result.copy_(values.to(dtype))
    return result


def require_tma_strides(what: str, tensor: torch.Tensor) -> None:
    """Raises TilepassError unless TMA can address the rows of a 2-D tensor."""
    size = tensor.element_size()
    if tensor.stride(-1) != 1:
        raise TilepassError(f"{what}: TMA needs the last dimension contiguous")
    if tensor.stride(0) * size % TMA_ALIGNMENT:
        raise TilepassError(
            f"{what}: TMA needs a row stride of a multiple of {TMA_ALIGNMENT} bytes, "
            f"this is {tensor.stride(0) * size} (pad the rows)"
        )
    if tensor.data_ptr() % TMA_ALIGNMENT:
        raise TilepassError(f"{what}: TMA needs a base address aligned to {TMA_ALIGNMENT} bytes")


def check_blocks(name: str, **blocks: int) -> None:
    """Raises TilepassError for a tile size that Triton or a TMA box cannot have."""
    for key, size in blocks.items():
        if size < TMA_ALIGNMENT or size > MAX_TMA_BOX or size & (size - 1):
            raise TilepassError(
                f"{name}: {key} is a power of two from {TMA_ALIGNMENT} to {MAX_TMA_BOX}, not {size}"
            )


def host_descriptor(tensor: torch.Tensor, block: Sequence[int]) -> Any:
    """A TMA descriptor made on the host. An empty dimension, which no descriptor can have, counts
    as one element: the kernel loads nothing from it."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    shape = [max(size, 1) for size in tensor.shape]
    return TensorDescriptor(tensor, shape, list(tensor.stride()), list(block))


def use_torch_allocator(device: torch.device) -> None:
    """Let Triton take the memory of descriptors made in a kernel from torch."""
    import torch
    import triton

    def allocate(size: int, alignment: int, stream: int | None) -> torch.Tensor:
        return torch.empty(size, dtype=torch.int8, device=device)

    triton.set_allocator(allocate)


def program_slots(device: torch.device, occupancy: int = 1) -> int:
    """How many programs a persistent kernel starts: SMs times programs per SM."""
    import torch

    if device.type != "cuda":
        return CPU_PROGRAMS
    cuda: Any = torch.cuda  # its properties have no types
    return cuda.get_device_properties(device).multi_processor_count * occupancy


@contextmanager
def exact_fp32() -> Generator[None]:
    """References are computed without TF32, whatever the program has chosen."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
