"""Chunked prefill of the gated delta rule (Gated DeltaNet), in CuTe DSL with warp-level MMA.

For each sequence and head, with state S [value, key], from token to token:

    S = alpha_t S;  u_t = beta_t (v_t - S k_t);  S = S + u_t k_t^T;  o_t = scale S q_t

(Yang, Kautz, Hatamizadeh, arXiv 2412.06464, equation 10.) The kernel is in `_gdn_kernel_cute`, the
matrices of a chunk, two of which have provably zero tiles, in `_gdn_chunk_cute`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import cutlass

from tilepass.core.errors import TilepassError
from tilepass.kernels._gdn_chunk_cute import CHUNK
from tilepass.kernels._gdn_kernel_cute import HEAD, GdnPrefill
from tilepass.kernels._tensors import ceil_div, dtype_of, seeded, uniform
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

SCALE = 0.5
"""Of the outputs; HEAD ** -0.5 is usual. With this one they are as large as the state, and one
tolerance does for both."""


@dataclass(frozen=True, kw_only=True)
class GdnPrefillConfig(CuteConfig):
    """`initial`: whether sequences start from a given state, not from 0. `lengths`: all sequences
    as long as the shape says, or of random lengths up to that, 0 included."""

    initial: bool = True
    lengths: Literal["equal", "ragged"] = "equal"


class GdnPrefillWorkload(CuteWorkload[GdnPrefillConfig]):
    """Gated delta rule over whole sequences; outputs are o [tokens, heads, HEAD] and the states
    after the last tokens [sequences, heads, value, key]."""

    name = "gdn_prefill_cute"
    dims = ("sequences", "length", "heads")
    default_config = GdnPrefillConfig()
    default_shapes = ((4, 2048, 32), (8, 4096, 16), (1, 8192, 32))

    def host_function(self, config: GdnPrefillConfig) -> Any:
        return GdnPrefill()

    def signature(self, config: GdnPrefillConfig) -> tuple[Any, ...]:
        dtype = element_type(config.dtype)
        values = [stand_in(dtype, None, None, HEAD) for _ in range(4)]
        gates = [stand_in(cutlass.Float32, None, None) for _ in range(2)]
        states = [stand_in(cutlass.Float32, None, None, HEAD, HEAD) for _ in range(2)]
        initial = states[0] if config.initial else None
        starts = stand_in(cutlass.Int32, None)
        return (*values[:3], *gates, starts, initial, values[3], states[1], cutlass.Float32(SCALE))

    def make_inputs(
        self, shape: Shape, seed: int, device: str = "cuda", config: GdnPrefillConfig | None = None
    ) -> Inputs:
        """q, k [tokens, heads, HEAD] of length 1, v normal; alpha in [0.9, 1], beta in [0, 1];
        starts int32 [sequences + 1]; initial [sequences, heads, HEAD, HEAD] fp32."""
        import torch

        sequences, length, heads = self.checked_shape(shape)
        config = config or self.config_for(shape)
        if 0 in shape:
            raise TilepassError(f"{self.name}: {self.describe(shape)}: nothing to do")
        generator = seeded(seed, device)
        lengths = torch.full((sequences,), length, device=device)
        if config.lengths == "ragged":
            lengths[1:] = torch.randint(
                0, length + 1, (sequences - 1,), generator=generator, device=device
            )
        starts = torch.zeros(sequences + 1, dtype=torch.int32, device=device)
        starts[1:] = lengths.cumsum(0)
        tokens = int(starts[-1])
        dtype = dtype_of(config.dtype)

        def normal(*sizes: int) -> torch.Tensor:
            return torch.randn(sizes, generator=generator, device=device)

        def unit() -> torch.Tensor:
            return torch.nn.functional.normalize(normal(tokens, heads, HEAD), dim=-1).to(dtype)

        tensors = {
            "q": unit(),
            "k": unit(),
            "v": normal(tokens, heads, HEAD).to(dtype),
            "alpha": 0.95 + 0.05 * uniform((tokens, heads), generator),
            "beta": 0.5 + 0.5 * uniform((tokens, heads), generator),
            "starts": starts,
        }
        if config.initial:
            tensors["initial"] = 0.1 * normal(sequences, heads, HEAD, HEAD)
        return Inputs(shape, seed, config, tensors)

    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        """The recurrence in fp64, token by token, all sequences and heads at once."""
        import torch

        t = {name: tensor.double() for name, tensor in inputs.tensors.items()}
        starts = inputs.tensors["starts"].long()
        lengths = starts[1:] - starts[:-1]
        out = torch.zeros_like(t["v"])
        zeros = torch.zeros(
            len(lengths), out.shape[1], HEAD, HEAD, dtype=torch.float64, device=out.device
        )
        state = t.get("initial", zeros).clone()
        for step in range(int(lengths.max())):
            live = torch.nonzero(lengths > step)[:, 0]
            token = starts[live] + step
            decayed = state[live] * t["alpha"][token][..., None, None]
            error = t["v"][token] - torch.einsum("shvk,shk->shv", decayed, t["k"][token])
            update = t["beta"][token][..., None] * error
            decayed += update[..., None] * t["k"][token][..., None, :]
            state[live] = decayed
            out[token] = SCALE * torch.einsum("shvk,shk->shv", decayed, t["q"][token])
        return out.float(), state.float()

    def tolerance(self, inputs: Inputs) -> Tolerance:
        """Rounding of the state and of the updates to the operands' type, in every chunk."""
        unit = {"bf16": 2.0**-8, "fp16": 2.0**-11}[self.own_config(inputs).dtype]
        return Tolerance(relative=4 * unit, absolute=4 * unit)

    def operands(self, inputs: Inputs, config: GdnPrefillConfig) -> Operands:
        import torch

        made_for = self.own_config(inputs)
        if (config.dtype, config.initial) != (made_for.dtype, made_for.initial):
            raise TilepassError(f"{self.name}: inputs are not made for {config}")
        t = inputs.tensors
        sequences, _, heads = inputs.shape
        out = torch.full_like(t["v"], float("nan"))
        final = torch.full((sequences, heads, HEAD, HEAD), float("nan"), device=out.device)
        values = [argument(x, None, None, HEAD) for x in (t["q"], t["k"], t["v"], out)]
        gates = [argument(t[name], None, None) for name in ("alpha", "beta")]
        states = [
            argument(x, None, None, HEAD, HEAD) if x is not None else None
            for x in (t.get("initial"), final)
        ]
        starts = argument(t["starts"], None)
        scale = cutlass.Float32(SCALE)
        arguments = (*values[:3], *gates, starts, states[0], values[3], states[1], scale)
        return Operands(arguments, (out, final), grid=(heads, sequences, 1))

    def own_config(self, inputs: Inputs) -> GdnPrefillConfig:
        """The configuration the inputs were made for. Raises TilepassError on another kernel's."""
        if not isinstance(inputs.config, GdnPrefillConfig):
            raise TilepassError(f"{self.name}: these inputs were made for another kernel")
        return inputs.config

    def flops(self, shape: Shape, config: GdnPrefillConfig) -> float:
        """Of the seven dense products of a chunk: three with the state, four inside it."""
        sequences, length, heads = shape
        chunk = 2 * (3 * CHUNK * HEAD * HEAD + 4 * CHUNK * CHUNK * HEAD)
        return float(sequences * heads * ceil_div(length, CHUNK) * chunk)

    def bytes_moved(self, shape: Shape, config: GdnPrefillConfig) -> float:
        sequences, length, heads = shape
        states = (1 + config.initial) * HEAD * HEAD * 4
        return float(sequences * heads * (length * (4 * HEAD * 2 + 2 * 4) + states))


WORKLOAD = GdnPrefillWorkload()
make_inputs = WORKLOAD.make_inputs
reference = WORKLOAD.reference
