"""Matmul with a block-diagonal weight in CuTe DSL: Y = X W^T.

The dense tiles between the blocks of W are zero by construction (`_block_diagonal_kernel_cute`).
Such weights occur in grouped projections and in blockwise rotations before quantization.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tilepass.core.errors import TilepassError
from tilepass.kernels._block_diagonal_kernel_cute import (
    CTAS_PER_PANEL,
    PANEL,
    ROWS,
    BlockDiagonalMatmul,
)
from tilepass.kernels._tensors import ceil_div, dtype_of, exact_fp32, seeded, uniform
from tilepass.kernels.cute_workload import (
    CuteConfig,
    CuteWorkload,
    Operands,
    argument,
    element_type,
    stand_in,
)
from tilepass.kernels.workload import Inputs, Shape, Tolerance

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class BlockDiagonalConfig(CuteConfig):
    """`block`: rows and columns of a block of W."""

    block: Literal[16, 32, 64] = 32


class BlockDiagonalWorkload(CuteWorkload[BlockDiagonalConfig]):
    """Y [M, K] = X [M, K] W^T, K a multiple of PANEL."""

    name = "block_diagonal_matmul_cute"
    dims = ("M", "K")
    default_config = BlockDiagonalConfig()
    default_shapes = ((8192, 4096), (32768, 1024))

    def host_function(self, config: BlockDiagonalConfig) -> Any:
        return BlockDiagonalMatmul(config.block)

    def signature(self, config: BlockDiagonalConfig) -> tuple[Any, ...]:
        dtype = element_type(config.dtype)
        x, y = (stand_in(dtype, None, None, PANEL) for _ in range(2))
        return x, stand_in(dtype, None, PANEL, config.block), y

    def make_inputs(
        self,
        shape: Shape,
        seed: int,
        device: str = "cuda",
        config: BlockDiagonalConfig | None = None,
    ) -> Inputs:
        """x [M, K / PANEL, PANEL], blocks [K / PANEL, PANEL, block], uniform in [-1, 1]."""
        rows, columns = self.checked_shape(shape)
        if 0 in shape or columns % PANEL:
            raise TilepassError(f"{self.name}: {self.describe(shape)}: K is a multiple of {PANEL}")
        config = config or self.config_for(shape)
        generator, dtype = seeded(seed, device), dtype_of(config.dtype)
        panels = columns // PANEL
        tensors = {
            "x": uniform((rows, panels, PANEL), generator).to(dtype),
            "blocks": uniform((panels, PANEL, config.block), generator).to(dtype),
        }
        return Inputs(shape, seed, config, tensors)

    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        import torch

        block = self.own_config(inputs).block
        x, blocks = (inputs.tensors[name].float() for name in ("x", "blocks"))
        rows, columns = inputs.shape
        with exact_fp32():
            y = torch.einsum(
                "mgk,gnk->mgn",
                x.reshape(rows, columns // block, block),
                blocks.reshape(columns // block, block, block),
            )
        return (y.reshape(x.shape),)

    def tolerance(self, inputs: Inputs) -> Tolerance:
        """Rounding of the output."""
        unit = {"bf16": 2.0**-8, "fp16": 2.0**-11}[self.own_config(inputs).dtype]
        return Tolerance(relative=unit, absolute=unit / 16)

    def operands(self, inputs: Inputs, config: BlockDiagonalConfig) -> Operands:
        import torch

        made_for = self.own_config(inputs)
        if (config.dtype, config.block) != (made_for.dtype, made_for.block):
            raise TilepassError(f"{self.name}: inputs are not made for {config}")
        x, blocks = inputs.tensors["x"], inputs.tensors["blocks"]
        y = torch.full_like(x, float("nan"))
        arguments = (
            argument(x, None, None, PANEL),
            argument(blocks, None, PANEL, config.block),
            argument(y, None, None, PANEL),
        )
        grid = (min(ceil_div(x.shape[0], ROWS), CTAS_PER_PANEL), x.shape[1], 1)
        return Operands(arguments, (y,), grid)

    def own_config(self, inputs: Inputs) -> BlockDiagonalConfig:
        """The configuration the inputs were made for. Raises TilepassError on another kernel's."""
        if not isinstance(inputs.config, BlockDiagonalConfig):
            raise TilepassError(f"{self.name}: these inputs were made for another kernel")
        return inputs.config

    def flops(self, shape: Shape, config: BlockDiagonalConfig) -> float:
        """Inside the blocks: the zeros between them do not count."""
        return 2.0 * shape[0] * shape[1] * config.block

    def bytes_moved(self, shape: Shape, config: BlockDiagonalConfig) -> float:
        return 2.0 * (2 * shape[0] * shape[1] + shape[1] * config.block)


WORKLOAD = BlockDiagonalWorkload()
make_inputs = WORKLOAD.make_inputs
reference = WORKLOAD.reference
