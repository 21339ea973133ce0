"""The host side that the matmul kernels C = A B^T share: configuration, tensors, reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tilepass.core.errors import TilepassError
from tilepass.kernels._tensors import (
    ceil_div,
    check_blocks,
    dtype_of,
    exact_fp32,
    padded_rows,
    require_tma_strides,
    seeded,
    uniform,
)
from tilepass.kernels.workload import Config, Inputs, Shape, Tolerance, Workload

if TYPE_CHECKING:
    import torch

TRITON_TYPES = {"bf16": "bf16", "fp16": "fp16", "fp32": "fp32", "fp8e4m3": "fp8e4nv"}
ITEM_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8e4m3": 1}


@dataclass(frozen=True, kw_only=True)
class MatmulConfig(Config):
    """Tile and variant of C[M, N] = A[M, K] B[N, K]^T; fp8 inputs give a bf16 C."""

    dtype: Literal["bf16", "fp16", "fp8e4m3"] = "bf16"
    epilogue: Literal["none", "bias", "bias_gelu", "residual"] = "none"
    block_m: int = 128
    block_n: int = 256
    block_k: int = 64
    group_m: int = 8

    @property
    def output_dtype(self) -> str:
        return "bf16" if self.dtype == "fp8e4m3" else self.dtype


MatmulConfigT = TypeVar("MatmulConfigT", bound=MatmulConfig)


class MatmulWorkload(Workload[MatmulConfigT]):
    """Everything of a matmul workload but the kernels and their launch."""

    dims = ("M", "N", "K")

    def make_inputs(
        self, shape: Shape, seed: int, device: str = "cuda", config: MatmulConfigT | None = None
    ) -> Inputs:
        """A [M, K], B [N, K], and bias [N] or residual [M, N] where the epilogue wants one; uniform
        in [-1, 1]. Rows are padded to 16 bytes, as TMA needs; the padding holds NaN."""
        M, N, K = self.checked_shape(shape)
        if M == 0 or N == 0:
            raise TilepassError(f"{self.name}: {self.describe(shape)}: C is empty")
        config = config or self.default_config
        generator = seeded(seed, device)
        tensors = {
            "a": padded_rows(uniform((M, K), generator), dtype_of(config.dtype)),
            "b": padded_rows(uniform((N, K), generator), dtype_of(config.dtype)),
        }
        out = dtype_of(config.output_dtype)
        if config.epilogue in ("bias", "bias_gelu"):
            tensors["bias"] = uniform((N,), generator).to(out)
        if config.epilogue == "residual":
            tensors["residual"] = padded_rows(uniform((M, N), generator), out)
        return Inputs(shape, seed, config, tensors)

    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        import torch

        config = self.matmul_config(inputs)
        with exact_fp32():
            c = inputs.tensors["a"].float() @ inputs.tensors["b"].float().T
        if config.epilogue in ("bias", "bias_gelu"):
            c += inputs.tensors["bias"].float()
        if config.epilogue == "bias_gelu":
            c = torch.nn.functional.gelu(c, approximate="tanh")
        if config.epilogue == "residual":
            c += inputs.tensors["residual"].float()
        return (c,)

    def tolerance(self, inputs: Inputs) -> Tolerance:
        """Rounding of C (half a unit in the last place, doubled) and of the sums: fp32 adds in any
        order, and for fp8 Hopper's 14-bit accumulation, which cuts off up to 2^-13 of the largest
        partial sum (taken as 4 standard deviations) every 32 products. GELU's tanh is right to
        2^-11, which x / 2 multiplies; from x = 4 on it is 1."""
        config, K = self.matmul_config(inputs), inputs.shape[2]
        typical = (K**0.5) / 3  # standard deviation of a sum of K products of uniform numbers
        summing = K * 2.0**-20
        if config.dtype == "fp8e4m3":
            summing += 2.0**-13 * 4 * typical * K / 32
        relative = 2.0**-8 if config.output_dtype == "bf16" else 2.0**-10
        approximate = 2.0**-10 if config.epilogue == "bias_gelu" else 0.0
        return Tolerance(relative=relative, absolute=2.0**-14 + 1.2 * summing + approximate)

    def flops(self, shape: Shape, config: MatmulConfigT) -> float:
        M, N, K = shape
        return 2.0 * M * N * K

    def bytes_moved(self, shape: Shape, config: MatmulConfigT) -> float:
        M, N, K = shape
        out = ITEM_BYTES[config.output_dtype]
        extra = {"none": 0, "bias": N, "bias_gelu": N, "residual": M * N}[config.epilogue]
        return float((M + N) * K * ITEM_BYTES[config.dtype] + (M * N + extra) * out)

    def tiles(self, shape: Shape, config: MatmulConfigT) -> int:
        """Output tiles of a problem."""
        return ceil_div(shape[0], config.block_m) * ceil_div(shape[1], config.block_n)

    def matmul_config(self, inputs: Inputs) -> MatmulConfig:
        if not isinstance(inputs.config, MatmulConfig):
            raise TilepassError(f"{self.name}: these inputs were made for another kernel")
        return inputs.config

    def check_config(self, inputs: Inputs, config: MatmulConfigT) -> None:
        """Raises TilepassError unless `config` computes what `inputs` were made for, by tiles that
        the hardware has and tensors that TMA can address."""
        made = self.matmul_config(inputs)
        if (made.dtype, made.epilogue) != (config.dtype, config.epilogue):
            raise TilepassError(
                f"{self.name}: inputs made for {made.dtype}, epilogue {made.epilogue}; "
                f"the configuration has {config.dtype}, epilogue {config.epilogue}"
            )
        check_blocks(
            self.name, block_m=config.block_m, block_n=config.block_n, block_k=config.block_k
        )
        for name, tensor in inputs.tensors.items():
            if tensor.dim() == 2:
                require_tma_strides(f"{self.name}: operand '{name}'", tensor)

    def constants(self, config: MatmulConfigT) -> dict[str, Any]:
        """The compile-time arguments that all matmul kernels have."""
        return {
            "BLOCK_M": config.block_m,
            "BLOCK_N": config.block_n,
            "BLOCK_K": config.block_k,
            "GROUP_M": config.group_m,
            "EPILOGUE": config.epilogue,
        }
