"""Inputs, reference and arguments of the gated-delta-rule prefill.

Shapes: q [T, Hq, 128], k [T, Hk, 128], v [T, Hv, 128] of the 16-bit type, T the tokens of all
sequences; alpha and beta [T, H] fp32 with H = max(Hq, Hv); initial and final state
[sequences, H, 128 (of v), 128 (of k)] fp32; output [T, H, 128].
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import Any, Literal

import torch

D = 128
TensorMaps = 132
"""One tensor map an SM is what the kernel indexes; more than an H200 has does no harm."""
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
Style = Literal["compile", "call"]
Outputs = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Case:
    """Lengths of the sequences, heads of q, k and v; `gentle` decays are in [0.99, 1]."""

    name: str
    lengths: tuple[int, ...]
    heads: tuple[int, int, int]
    gentle: bool = True

    @property
    def tokens(self) -> int:
        """Tokens of all sequences."""
        return sum(self.lengths)


def case(sequences: int, length: int, heads: int, heads_of_v: int | None = None) -> Case:
    """Sequences of one length: `32x64`, with grouped heads `32x64, 16/16/32`."""
    of_v = heads_of_v or heads
    suffix = "" if of_v == heads else f" {heads}/{heads}/{of_v}"
    return Case(f"{sequences}x{length}{suffix}", (length,) * sequences, (heads, heads, of_v))


TIMED = (
    case(1, 64, 32),
    case(32, 64, 32),
    case(1, 512, 32),
    case(4, 2048, 32),
    case(4, 2048, 16, 32),
    case(32, 1024, 16),
    case(8, 4096, 16),
    case(1, 8192, 32),
)
"""The cases of the issue."""
CHECKED = (
    Case("[64, 100, 37, 1, 129]", (64, 100, 37, 1, 129), (4, 4, 8)),
    Case("[64, 100, 37, 1, 129] uniform", (64, 100, 37, 1, 129), (4, 4, 8), gentle=False),
    Case("[512] uniform", (512,), (4, 4, 4), gentle=False),
)
"""Compared, not timed: variable lengths, and alpha uniform in [0, 1]."""


class Inputs:
    """Tensors of a case on a device, as FlashInfer's own tests draw them."""

    def __init__(self, case: Case, dtype: str, device: str, seed: int = 0) -> None:
        self.case, self.dtype, self.device = case, DTYPES[dtype], device
        generator = torch.Generator(device).manual_seed(seed)
        tokens, (hq, hk, hv) = case.tokens, case.heads
        self.heads = max(hq, hv)

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=generator, device=device)

        def unit(*shape: int) -> torch.Tensor:
            return torch.nn.functional.normalize(normal(*shape), dim=-1).to(self.dtype)

        self.q, self.k = unit(tokens, hq, D), unit(tokens, hk, D)
        self.v = normal(tokens, hv, D).to(self.dtype)
        self.alpha = torch.rand(tokens, self.heads, generator=generator, device=device)
        self.beta = torch.rand(tokens, self.heads, generator=generator, device=device)
        if case.gentle:
            self.alpha = 0.99 + 0.01 * self.alpha
        self.init = 0.1 * normal(len(case.lengths), self.heads, D, D)
        starts = [sum(case.lengths[:index]) for index in range(len(case.lengths) + 1)]
        self.starts = torch.tensor(starts, dtype=torch.int64, device=device)
        self.scale = 1 / math.sqrt(D)
        room = torch.zeros((TensorMaps + 1) * 128, dtype=torch.uint8, device=device)
        offset = -room.data_ptr() % 128
        self.tensor_maps = room[offset : offset + TensorMaps * 128]

    def new_outputs(self) -> Outputs:
        """Output and final state, filled with NaN: what is not written shows."""
        output = torch.full((self.case.tokens, self.heads, D), math.nan, device=self.device)
        state = torch.full_like(self.init, math.nan)
        return output.to(self.dtype), state

    def arguments(self, outputs: Outputs, style: Style, stream: int = 0) -> list[Any]:
        """The arguments of the class's `__call__` without checkpoints and state indices.

        `compile` makes CuTe tensors of them, `call` passes torch's, as TVM-FFI takes them.
        """
        driver: Any = importlib.import_module("cuda.bindings.driver")
        wrap, integer, real = _wrappers(style)
        output, state = outputs
        tokens, (hq, hk, hv) = self.case.tokens, self.case.heads
        sequences = len(self.case.lengths)
        return [
            wrap(self.q.as_strided((tokens, D, hq), (hq * D, 1, D)), 16, 1),
            wrap(self.k.as_strided((D, tokens, hk), (1, hk * D, D)), 16, 0),
            wrap(self.v.as_strided((D, tokens, hv), (1, hv * D, D)), 16, 0),
            wrap(output.as_strided((D, tokens, self.heads), (1, self.heads * D, D)), 16, 0),
            wrap(self.alpha.reshape(-1), 16, None),
            wrap(self.beta.reshape(-1), 16, None),
            wrap(state, 16, None),
            wrap(self.init, 16, None),
            None,
            None,
            None,
            wrap(self.tensor_maps, 128, None),
            wrap(self.starts, 8, None),
            real(self.scale),
            *(integer(number) for number in (hq, hk, hv, self.heads, sequences, 1, 0)),
            sequences * self.heads,
            driver.CUstream(stream),
        ]


def _wrappers(style: Style) -> tuple[Any, Any, Any]:
    if style == "call":
        return (lambda tensor, align, leading: tensor), int, float  # pyright: ignore
    cutlass: Any = importlib.import_module("cutlass")
    runtime: Any = importlib.import_module("cutlass.cute.runtime")

    def wrap(tensor: torch.Tensor, align: int, leading: int | None) -> Any:
        wrapped = runtime.from_dlpack(tensor, assumed_align=align, enable_tvm_ffi=True)
        if leading is None:
            return wrapped.mark_layout_dynamic()
        return wrapped.mark_layout_dynamic(leading_dim=leading)

    return wrap, cutlass.Int32, cutlass.Float32


def reference(inputs: Inputs) -> Outputs:
    """Output and final state by the token recurrence in fp64.

    S <- alpha S; S <- S + beta (v - S k) k^T; o = scale S q, for each head (Yang et al. 2024).
    """
    double = torch.float64
    q, k, v = (_all_heads(tensor, inputs.heads) for tensor in (inputs.q, inputs.k, inputs.v))
    alpha, beta = inputs.alpha.to(double), inputs.beta.to(double)
    output = torch.zeros(inputs.case.tokens, inputs.heads, D, dtype=double, device=inputs.device)
    state = inputs.init.to(double).clone()
    starts = inputs.starts[:-1]
    lengths = torch.tensor(inputs.case.lengths, device=inputs.device)
    for step in range(max(inputs.case.lengths)):
        live = torch.nonzero(lengths > step).reshape(-1)
        at = starts[live] + step
        decayed = state[live] * alpha[at][..., None, None]
        error = v[at] - torch.einsum("shvk,shk->shv", decayed, k[at])
        update = torch.einsum("sh,shv,shk->shvk", beta[at], error, k[at])
        state[live] = decayed + update
        output[at] = inputs.scale * torch.einsum("shvk,shk->shv", state[live], q[at])
    return output, state


def _all_heads(tensor: torch.Tensor, heads: int) -> torch.Tensor:
    return tensor.to(torch.float64).repeat_interleave(heads // tensor.shape[1], 1)
