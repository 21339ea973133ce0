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

from tilepass.core.errors import TilepassError

D = 128
TensorMaps = 132
"""One tensor map an SM is what the kernel indexes; more than an H200 has does no harm."""
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
PARAMETERS = (
    *("g_q", "g_k", "g_v", "g_o", "g_alpha", "g_beta", "g_state", "g_init_state"),
    *("g_state_indices", "g_state_checkpoints", "checkpoint_cu_starts", "g_tensormaps"),
    *("cu_seqlens", "scale", "num_q_heads", "num_k_heads", "num_v_heads", "num_sab_heads"),
    *("num_seqs", "total_checkpoints", "checkpoint_every_n_tokens", "grid_x", "stream"),
)
Style = Literal["compile", "plain", "trace", "call"]
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


def cases_named(text: str) -> list[Case]:
    """Cases of TIMED by their names, `1x64,32x64`. Raises TilepassError."""
    wanted = text.split(",")
    chosen = [case for case in TIMED if case.name in wanted]
    if len(chosen) != len(wanted):
        names = ", ".join(case.name for case in TIMED)
        raise TilepassError(f"--cases {text}: the cases are {names}")
    return chosen


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
        """The arguments of the prefill class for SM12x, in its order.

        `plain` makes CuTe tensors of them, `compile` CuTe tensors for TVM-FFI, `trace` tensors of
        the same layouts in global memory without data (a CPU's memory is generic); `call` passes
        torch's.
        """
        named = self.named(outputs, style, stream)
        return [named[name] for name in PARAMETERS]

    def named(self, outputs: Outputs, style: Style, stream: int = 0) -> dict[str, Any]:
        """Arguments by the parameter names of FlashInfer's prefill classes; what is not here is
        optional (checkpoints, indices of states), and left out by None."""
        driver: Any = importlib.import_module("cuda.bindings.driver")
        wrap, integer, real = _wrappers(style)
        output, state = outputs
        tokens, (hq, hk, hv) = self.case.tokens, self.case.heads
        sequences = len(self.case.lengths)
        starts = wrap(self.starts, 8, None)
        return {
            "g_q": wrap(self.q.as_strided((tokens, D, hq), (hq * D, 1, D)), 16, 1),
            "g_k": wrap(self.k.as_strided((D, tokens, hk), (1, hk * D, D)), 16, 0),
            "g_v": wrap(self.v.as_strided((D, tokens, hv), (1, hv * D, D)), 16, 0),
            "g_o": wrap(output.as_strided((D, tokens, self.heads), (1, self.heads * D, D)), 16, 0),
            "g_alpha": wrap(self.alpha.reshape(-1), 16, None),
            "g_beta": wrap(self.beta.reshape(-1), 16, None),
            "g_state": wrap(state, 16, None),
            "g_init_state": wrap(self.init, 16, None),
            "g_tensormaps": wrap(self.tensor_maps, 128, None),
            "cu_seqlens": starts,
            "scale": real(self.scale),
            "num_q_heads": integer(hq),
            "num_k_heads": integer(hk),
            "num_v_heads": integer(hv),
            "num_sab_heads": integer(self.heads),
            "num_seqs": integer(sequences),
            "total_checkpoints": integer(1),
            "checkpoint_every_n_tokens": integer(0),
            "grid_x": sequences * self.heads,
            "stream": driver.CUstream(stream),
            "g_state_indices": None,
            "g_state_checkpoints": None,
            "checkpoint_cu_starts": None,
        }

    def named_for_chunks(self, outputs: Outputs, style: Style) -> dict[str, Any]:
        """What the context-parallel prefill takes besides: T [64, 64, H, blocks] of the blocks'
        inverses, the states at the chunks' starts, and chunks of 128 tokens, one a sequence."""
        wrap, integer, _ = _wrappers(style)
        blocks = sum(-(-length // 64) for length in self.case.lengths)
        square = 64 * 64
        inverses = torch.zeros(blocks, self.heads, square, dtype=self.dtype, device=self.device)
        view = inverses.as_strided(
            (64, 64, self.heads, blocks), (64, 1, square, self.heads * square)
        )
        named = self.named(outputs, style)
        return named | {
            "g_t": wrap(view, 16, 1),
            "g_fixed_state": wrap(torch.zeros_like(self.init).reshape(-1), 16, None),
            "g_initial_state": named["g_init_state"],
            "g_cu_seqlens": named["cu_seqlens"],
            "chunk_len": integer(128),
            "total_cp_chunks": integer(len(self.case.lengths)),
            "max_cp_chunks_per_seq": integer(1),
        }


def _wrappers(style: Style) -> tuple[Any, Any, Any]:
    if style == "call":
        return (lambda tensor, align, leading: tensor), int, float  # pyright: ignore
    cutlass: Any = importlib.import_module("cutlass")
    if style == "trace":
        return _without_data, cutlass.Int32, cutlass.Float32

    def wrap(tensor: torch.Tensor, align: int, leading: int | None) -> Any:
        return _with_data(tensor, align, leading, for_ffi=style == "compile")

    return wrap, cutlass.Int32, cutlass.Float32


def _with_data(tensor: torch.Tensor, align: int, leading: int | None, *, for_ffi: bool) -> Any:
    runtime: Any = importlib.import_module("cutlass.cute.runtime")
    wrapped = runtime.from_dlpack(tensor, assumed_align=align, enable_tvm_ffi=for_ffi)
    if leading is None:
        return wrapped.mark_layout_dynamic()
    return wrapped.mark_layout_dynamic(leading_dim=leading)


def _without_data(tensor: torch.Tensor, align: int, leading: int | None) -> Any:
    """As `mark_layout_dynamic` makes it: every extent and stride dynamic but the leading stride."""
    cute: Any = importlib.import_module("cutlass.cute")
    unit = tensor.stride().index(1) if leading is None else leading
    return cute.runtime.make_fake_tensor(
        _element(tensor.dtype),
        tuple(cute.sym_int() for _ in tensor.shape),
        tuple(1 if dim == unit else cute.sym_int64() for dim in range(tensor.dim())),
        assumed_align=align,
    )


def _element(dtype: torch.dtype) -> Any:
    cutlass: Any = importlib.import_module("cutlass")
    names = {
        torch.bfloat16: "BFloat16",
        torch.float16: "Float16",
        torch.float32: "Float32",
        torch.int64: "Int64",
        torch.uint8: "Uint8",
    }
    return getattr(cutlass, names[dtype])


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
