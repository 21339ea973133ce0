"""Causal attention in CuTe DSL with warp-level MMA (Dao, FlashAttention-2, arXiv 2307.08691).

O = softmax(scale Q K^T, masked) V for each sequence and head, a query attending to itself and to
what is before it. The kernel, whose diagonal blocks have provably zero tiles, is in
`_causal_attention_kernel_cute`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cutlass

from tilepass.core.errors import TilepassError
from tilepass.kernels._causal_attention_kernel_cute import BLOCK, HEAD, CausalAttention
from tilepass.kernels._tensors import ceil_div, dtype_of, exact_fp32, seeded
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

SCALE = HEAD**-0.5


class CausalAttentionWorkload(CuteWorkload[CuteConfig]):
    """Causal self-attention; the output is [sequences, length, heads, HEAD]."""

    name = "causal_attention_cute"
    dims = ("sequences", "length", "heads")
    default_config = CuteConfig()
    default_shapes = ((128, 64, 16), (16, 512, 16), (2, 4096, 16))

    def host_function(self, config: CuteConfig) -> Any:
        return CausalAttention()

    def signature(self, config: CuteConfig) -> tuple[Any, ...]:
        dtype = element_type(config.dtype)
        tensors = [stand_in(dtype, None, None, None, HEAD) for _ in range(4)]
        return (*tensors, cutlass.Float32(SCALE))

    def make_inputs(
        self, shape: Shape, seed: int, device: str = "cuda", config: CuteConfig | None = None
    ) -> Inputs:
        """q, k, v [sequences, length, heads, HEAD], normal."""
        import torch

        self.checked_shape(shape)
        if 0 in shape:
            raise TilepassError(f"{self.name}: {self.describe(shape)}: nothing to do")
        config = config or self.config_for(shape)
        generator = seeded(seed, device)
        tensors = {
            name: torch.randn((*shape, HEAD), generator=generator, device=device).to(
                dtype_of(config.dtype)
            )
            for name in ("q", "k", "v")
        }
        return Inputs(shape, seed, config, tensors)

    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        import torch

        # A sequence at a time: all scores at once would not fit.
        out = torch.empty(inputs.tensors["v"].shape, device=inputs.device)
        length = inputs.shape[1]
        mask = torch.ones(length, length, device=inputs.device).triu(1).bool()
        with exact_fp32():
            for sequence in range(inputs.shape[0]):
                q, k, v = (inputs.tensors[name][sequence].float() for name in ("q", "k", "v"))
                scores = torch.einsum("thd,shd->hts", q, k) * SCALE
                weights = scores.masked_fill(mask, float("-inf")).softmax(dim=-1)
                out[sequence] = torch.einsum("hts,shd->thd", weights, v)
        return (out,)

    def tolerance(self, inputs: Inputs) -> Tolerance:
        """Rounding of the weights and of the output to the operands' type."""
        unit = {"bf16": 2.0**-8, "fp16": 2.0**-11}[self.own_config(inputs).dtype]
        return Tolerance(relative=2 * unit, absolute=4 * unit)

    def operands(self, inputs: Inputs, config: CuteConfig) -> Operands:
        import torch

        if config.dtype != self.own_config(inputs).dtype:
            raise TilepassError(f"{self.name}: inputs are not {config.dtype}")
        t = inputs.tensors
        out = torch.full_like(t["v"], float("nan"))
        tensors = [argument(x, None, None, None, HEAD) for x in (t["q"], t["k"], t["v"], out)]
        sequences, length, heads = inputs.shape
        grid = (ceil_div(length, BLOCK), heads, sequences)
        return Operands((*tensors, cutlass.Float32(SCALE)), (out,), grid)

    def own_config(self, inputs: Inputs) -> CuteConfig:
        """The configuration the inputs were made for. Raises TilepassError on another kernel's."""
        if not isinstance(inputs.config, CuteConfig) or set(inputs.tensors) != {"q", "k", "v"}:
            raise TilepassError(f"{self.name}: these inputs were made for another kernel")
        return inputs.config

    def flops(self, shape: Shape, config: CuteConfig) -> float:
        """Two products; of the diagonal block, which is computed whole, the lower half counts."""
        sequences, length, heads = shape
        return 2.0 * sequences * heads * length * (length + 1) * HEAD

    def bytes_moved(self, shape: Shape, config: CuteConfig) -> float:
        sequences, length, heads = shape
        return 4.0 * sequences * length * heads * HEAD * 2


WORKLOAD = CausalAttentionWorkload()
make_inputs = WORKLOAD.make_inputs
reference = WORKLOAD.reference
