"""Softmax over the rows of a matrix: one program for each row, the row in registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import triton
import triton.language as tl

from tilepass.core.errors import TilepassError
from tilepass.kernels._source import ast_source
from tilepass.kernels._tensors import dtype_of, seeded, uniform
from tilepass.kernels.workload import Config, Inputs, Launch, Shape, Tolerance, Workload

if TYPE_CHECKING:
    import torch

MAX_COLUMNS = 32768
"""Longest row: 32 fp32 registers a thread with 32 warps; the next power of two spills."""


@triton.jit
def softmax(x_ptr, y_ptr, x_stride, y_stride, columns, BLOCK: tl.constexpr):
    """y = exp(x - max x) / sum exp(x - max x), a row of `columns` elements, BLOCK at least that."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * x_stride + offsets, mask=inside, other=float("-inf")).to(tl.float32)
    weights = tl.exp(x - tl.max(x, axis=0))
    y = weights / tl.sum(weights, axis=0)
    tl.store(y_ptr + row * y_stride + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


@dataclass(frozen=True, kw_only=True)
class SoftmaxConfig(Config):
    """`block` is the number of columns in registers: a power of two, at least a row's."""

    dtype: Literal["bf16", "fp16", "fp32"] = "bf16"
    block: int = 8192


class Softmax(Workload[SoftmaxConfig]):
    """Row softmax of [M, N]."""

    name = "softmax_triton"
    dims = ("M", "N")
    default_config = SoftmaxConfig()
    default_shapes = ((8192, 8192), (32768, 1024), (1823, 781))

    def config_for(self, shape: Shape, **fields: Any) -> SoftmaxConfig:
        """The smallest block that holds a row; one warp for each 512 columns, 1 to 32."""
        _, columns = self.checked_shape(shape)
        block = fields.get("block", triton.next_power_of_2(max(columns, 1)))
        warps = min(max(block // 512, 1), 32)
        return self.with_fields(self.default_config, {"block": block, "num_warps": warps} | fields)

    def jit_function(self, config: SoftmaxConfig) -> Any:
        return softmax

    def ast_source(self, config: SoftmaxConfig) -> tuple[Any, dict[str, Any]]:
        pointer = f"*{config.dtype}"
        arguments = {
            "x_ptr": pointer,
            "y_ptr": pointer,
            **dict.fromkeys(("x_stride", "y_stride", "columns"), "i32"),
        }
        return ast_source(softmax, arguments, {"BLOCK": config.block}, arguments), config.options()

    def make_inputs(
        self, shape: Shape, seed: int, device: str = "cuda", config: SoftmaxConfig | None = None
    ) -> Inputs:
        """X [M, N], uniform in [-8, 8]: the largest weight is e^16 times the smallest."""
        rows, columns = self.checked_shape(shape)
        if rows == 0 or columns == 0:
            raise TilepassError(f"{self.name}: {self.describe(shape)}: nothing to do")
        config = config or self.config_for(shape)
        x = uniform((rows, columns), seeded(seed, device)) * 8
        return Inputs(shape, seed, config, {"x": x.to(dtype_of(config.dtype))})

    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        return (inputs.tensors["x"].float().softmax(dim=1),)

    def tolerance(self, inputs: Inputs) -> Tolerance:
        """Rounding of the output (doubled); for fp32 that of exp and of the sum."""
        bits = {"bf16": 8, "fp16": 10, "fp32": 18}
        dtype = self.softmax_config(inputs).dtype
        # Below fp16's normal numbers, 2^-14, its spacing is 2^-24.
        return Tolerance(relative=2.0 ** -bits[dtype], absolute=2.0**-24)

    def prepare(self, inputs: Inputs, config: SoftmaxConfig) -> Launch:
        import torch

        rows, columns = inputs.shape
        if config.dtype != self.softmax_config(inputs).dtype:
            raise TilepassError(f"{self.name}: inputs are not {config.dtype}")
        if config.block & (config.block - 1) or not columns <= config.block <= MAX_COLUMNS:
            raise TilepassError(
                f"{self.name}: block is a power of two from N={columns} to {MAX_COLUMNS}, "
                f"not {config.block}"
            )
        x = inputs.tensors["x"]
        y = torch.full_like(x, float("nan"))
        arguments = {
            "x_ptr": x,
            "y_ptr": y,
            "x_stride": x.stride(0),
            "y_stride": y.stride(0),
            "columns": columns,
        }
        return self.launch_of(config, (rows,), arguments, {"BLOCK": config.block}, (y,))

    def softmax_config(self, inputs: Inputs) -> SoftmaxConfig:
        if not isinstance(inputs.config, SoftmaxConfig):
            raise TilepassError(f"{self.name}: these inputs were made for another kernel")
        return inputs.config

    def flops(self, shape: Shape, config: SoftmaxConfig) -> float:
        """Subtract, exponential, divide, and one step of each reduction, for each element."""
        return 5.0 * shape[0] * shape[1]

    def bytes_moved(self, shape: Shape, config: SoftmaxConfig) -> float:
        return 2.0 * shape[0] * shape[1] * dtype_bytes(config.dtype)


def dtype_bytes(dtype: str) -> int:
    return {"bf16": 2, "fp16": 2, "fp32": 4}[dtype]


WORKLOAD = Softmax()
make_inputs = WORKLOAD.make_inputs
reference = WORKLOAD.reference
