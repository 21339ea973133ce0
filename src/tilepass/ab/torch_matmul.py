"""What PyTorch, on a GPU through cuBLAS and cuBLASLt, offers for the matmul kernels' problems.

Each function takes a matmul workload's inputs, computes what the epilogue it is named for asks of
C = A B^T, and returns C: `Arm("T", library="tilepass.ab.torch_matmul:mm")`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tilepass.kernels.workload import Inputs

if TYPE_CHECKING:
    import torch

MODULE = __name__


def mm(inputs: Inputs) -> torch.Tensor:
    """`torch.mm`, without an epilogue."""
    import torch

    return torch.mm(inputs.tensors["a"], inputs.tensors["b"].T)


def bias(inputs: Inputs) -> torch.Tensor:
    """`torch.nn.functional.linear` with a bias, which cuBLASLt fuses."""
    import torch

    tensors = inputs.tensors
    return torch.nn.functional.linear(tensors["a"], tensors["b"], tensors["bias"])


def bias_gelu(inputs: Inputs) -> torch.Tensor:
    """`torch._addmm_activation`: bias and GELU in its tanh form, fused by cuBLASLt."""
    torch_: Any = import_module("torch")  # its stubs do not have the function
    fused = torch_._addmm_activation
    tensors = inputs.tensors
    return fused(tensors["bias"], tensors["a"], tensors["b"].T, use_gelu=True)


def residual(inputs: Inputs) -> torch.Tensor:
    """`torch.addmm` with the residual as the added matrix, which cuBLAS reads as C."""
    import torch

    tensors = inputs.tensors
    return torch.addmm(tensors["residual"], tensors["a"], tensors["b"].T)


LIBRARIES = {
    "none": f"{MODULE}:mm",
    "bias": f"{MODULE}:bias",
    "bias_gelu": f"{MODULE}:bias_gelu",
    "residual": f"{MODULE}:residual",
}
"""The library arm of each epilogue."""
