"""Attention forward, O = softmax(Q K^T / sqrt(D)) V, causal or not, with an online softmax.

Q, K, V, O are [B, H, S, D]. One program computes BLOCK_M rows of one head; K and V stream through
shared memory by TMA. The descriptors are three-dimensional, [B*H, S, D], so that rows past the end
of a head read as zeros and are not written, instead of belonging to the next head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import triton
import triton.language as tl

from tilepass.core.errors import TilepassError
from tilepass.kernels._source import ast_source
from tilepass.kernels._tensors import (
    MAX_TMA_BOX,
    ceil_div,
    check_blocks,
    dtype_of,
    empty_rows,
    exact_fp32,
    host_descriptor,
    padded_rows,
    require_tma_strides,
    seeded,
    uniform,
)
from tilepass.kernels.workload import Config, Inputs, Launch, Shape, Tolerance, Workload

if TYPE_CHECKING:
    import torch

LOG2_E = 1.4426950408889634


@triton.jit
def attend(
    accumulator,
    maximum,
    total,
    q,
    k_desc,
    v_desc,
    head,
    row,
    start,
    stop,
    length,
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    CAUSAL: tl.constexpr,
    MASKED: tl.constexpr,
):
    """Take the keys and values of [start, stop) into the running softmax of BLOCK_M rows: its
    maximum (of scores in units of log 2), its total weight, and the weighted sum of V."""
    rows = row + tl.arange(0, BLOCK_M)[:, None]
    for first in range(start, stop, BLOCK_N):
        k = k_desc.load([head, first, 0]).reshape(BLOCK_N, BLOCK_D)
        scores = tl.dot(q, k.T) * scale
        if MASKED:
            columns = first + tl.arange(0, BLOCK_N)[None, :]
            visible = columns < length
            if CAUSAL:
                visible = visible & (columns <= rows)
            scores = tl.where(visible, scores, float("-inf"))
        higher = tl.maximum(maximum, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(maximum - higher)
        total = total * shrink + tl.sum(weights, axis=1)
        v = v_desc.load([head, first, 0]).reshape(BLOCK_N, BLOCK_D)
        accumulator = tl.dot(weights.to(v.dtype), v, accumulator * shrink[:, None])
        maximum = higher
    return accumulator, maximum, total


@triton.jit
def attention(
    q_desc,
    k_desc,
    v_desc,
    o_desc,
    length,
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """`scale` is log2(e) / sqrt(D). Blocks that every row sees whole need no mask; they come first,
    then the ones on the diagonal or over the end. Each row sees its first key, so that no maximum
    stays -inf."""
    row = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1)
    q = q_desc.load([head, row, 0]).reshape(BLOCK_M, BLOCK_D)
    accumulator = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    maximum = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    if CAUSAL:
        stop = min(row + BLOCK_M, length)
        whole = row // BLOCK_N * BLOCK_N
    else:
        stop = length
        whole = length // BLOCK_N * BLOCK_N
    accumulator, maximum, total = attend(
        accumulator, maximum, total, q, k_desc, v_desc, head, row, 0, whole, length, scale,
        BLOCK_M, BLOCK_N, BLOCK_D, CAUSAL, False,
    )  # fmt: skip
    accumulator, maximum, total = attend(
        accumulator, maximum, total, q, k_desc, v_desc, head, row, whole, stop, length, scale,
        BLOCK_M, BLOCK_N, BLOCK_D, CAUSAL, True,
    )  # fmt: skip
    o = (accumulator / total[:, None]).to(o_desc.dtype)
    o_desc.store([head, row, 0], o.reshape(1, BLOCK_M, BLOCK_D))


@dataclass(frozen=True, kw_only=True)
class AttentionConfig(Config):
    """`block_d` is the head dimension rounded up to a power of two."""

    dtype: Literal["bf16", "fp16"] = "bf16"
    causal: bool = False
    block_m: int = 128
    block_n: int = 128
    block_d: int = 128


class Attention(Workload[AttentionConfig]):
    """Attention forward on [B, H, S, D]."""

    name = "attention_triton"
    dims = ("B", "H", "S", "D")
    default_config = AttentionConfig(num_stages=2)
    default_shapes = ((4, 32, 4096, 128), (4, 32, 4096, 64), (1, 16, 16384, 128))

    def config_for(self, shape: Shape, **fields: Any) -> AttentionConfig:
        """128 rows by 128 keys, 8 warps; 3 stages where the head dimension leaves room."""
        depth = self.checked_shape(shape)[3]
        block_d = max(triton.next_power_of_2(depth), 16)
        chosen = {"block_d": block_d, "num_stages": 3 if block_d <= 64 else 2}
        return self.with_fields(self.default_config, chosen | fields)

    def jit_function(self, config: AttentionConfig) -> Any:
        return attention

    def ast_source(self, config: AttentionConfig) -> tuple[Any, dict[str, Any]]:
        rows = f"tensordesc<{config.dtype}[1,{config.block_m},{config.block_d}]>"
        keys = f"tensordesc<{config.dtype}[1,{config.block_n},{config.block_d}]>"
        arguments = {
            "q_desc": rows,
            "k_desc": keys,
            "v_desc": keys,
            "o_desc": rows,
            "length": "i32",
            "scale": "fp32",
        }
        source = ast_source(attention, arguments, self.constants(config), ("length",))
        return source, config.options()

    def constants(self, config: AttentionConfig) -> dict[str, Any]:
        return {
            "BLOCK_M": config.block_m,
            "BLOCK_N": config.block_n,
            "BLOCK_D": config.block_d,
            "CAUSAL": config.causal,
        }

    def make_inputs(
        self, shape: Shape, seed: int, device: str = "cuda", config: AttentionConfig | None = None
    ) -> Inputs:
        """Q, K, V as [B*H*S, D], uniform in [-2, 2], rows padded for TMA."""
        B, H, S, D = self.checked_shape(shape)
        if B * H * S * D == 0:
            raise TilepassError(f"{self.name}: {self.describe(shape)}: nothing to do")
        config = config or self.config_for(shape)
        generator, dtype = seeded(seed, device), dtype_of(config.dtype)
        tensors = {
            name: padded_rows(2 * uniform((B * H * S, D), generator), dtype) for name in "qkv"
        }
        return Inputs(shape, seed, config, tensors)

    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        import torch

        B, H, S, D = inputs.shape
        q, k, v = (inputs.tensors[name].float().view(B * H, S, D) for name in "qkv")
        outputs: list[torch.Tensor] = []
        for head in range(B * H):  # one head at a time: the scores take S x S
            with exact_fp32():
                scores = q[head] @ k[head].T / D**0.5
                if self.attention_config(inputs).causal:
                    above = torch.ones(S, S, dtype=torch.bool, device=scores.device).triu(1)
                    scores.masked_fill_(above, float("-inf"))
                outputs.append(scores.softmax(dim=1) @ v[head])
        return (torch.cat(outputs),)

    def tolerance(self, inputs: Inputs) -> Tolerance:
        """The weights, at most 1 in sum, are rounded to the input type and meet values up to 2;
        rounding of the output."""
        unit = {"bf16": 2.0**-8, "fp16": 2.0**-11}[self.attention_config(inputs).dtype]
        return Tolerance(relative=2 * unit, absolute=2 * unit)

    def prepare(self, inputs: Inputs, config: AttentionConfig) -> Launch:
        self.check_config(inputs, config)
        B, H, S, D = inputs.shape
        o = empty_rows(B * H * S, D, dtype_of(config.dtype), inputs.device)
        blocks = {
            "q": config.block_m,
            "k": config.block_n,
            "v": config.block_n,
            "o": config.block_m,
        }
        tensors = {**inputs.tensors, "o": o}
        arguments: dict[str, Any] = {
            f"{name}_desc": host_descriptor(
                heads_of(tensors[name], B * H, S), [1, rows, config.block_d]
            )
            for name, rows in blocks.items()
        }
        arguments |= {"length": S, "scale": LOG2_E / D**0.5}
        grid = (ceil_div(S, config.block_m), B * H)
        return self.launch_of(config, grid, arguments, self.constants(config), (o,))

    def check_config(self, inputs: Inputs, config: AttentionConfig) -> None:
        """Raises TilepassError for inputs of another type or mask, or a tile that does not fit."""
        made, depth = self.attention_config(inputs), inputs.shape[3]
        if (made.dtype, made.causal) != (config.dtype, config.causal):
            raise TilepassError(f"{self.name}: inputs were made for another type or mask")
        check_blocks(
            self.name, block_m=config.block_m, block_n=config.block_n, block_d=config.block_d
        )
        if depth > config.block_d:
            raise TilepassError(
                f"{self.name}: block_d is at least D={depth} (at most {MAX_TMA_BOX}), "
                f"not {config.block_d}"
            )
        for name, tensor in inputs.tensors.items():
            require_tma_strides(f"{self.name}: operand '{name}'", tensor)

    def attention_config(self, inputs: Inputs) -> AttentionConfig:
        if not isinstance(inputs.config, AttentionConfig):
            raise TilepassError(f"{self.name}: these inputs were made for another kernel")
        return inputs.config

    def flops(self, shape: Shape, config: AttentionConfig) -> float:
        """The two matmuls; a causal mask leaves half of them."""
        B, H, S, D = shape
        return 4.0 * B * H * S * S * D * (0.5 if config.causal else 1.0)

    def bytes_moved(self, shape: Shape, config: AttentionConfig) -> float:
        B, H, S, D = shape
        return 4.0 * B * H * S * D * 2


def heads_of(tensor: torch.Tensor, heads: int, length: int) -> torch.Tensor:
    """[heads * length, D] with padded rows as [heads, length, D]."""
    stride = tensor.stride(0)
    return tensor.as_strided((heads, length, tensor.shape[1]), (length * stride, stride, 1))


WORKLOAD = Attention()
make_inputs = WORKLOAD.make_inputs
reference = WORKLOAD.reference
