"""Persistent matmul C = A B^T for TMA hardware: each program computes every n-th tile.

Operands: A [M, K], B [N, K], both with contiguous rows; bf16, fp16 or fp8 e4m3, fp32 accumulation.
Variants: descriptors made on the host or in the kernel, C stored by TMA or through pointers,
epilogues none, bias, bias + GELU, residual.

FLATTEN and SPECIALIZE are hard-coded the way authors do it: the tile loop is flattened, or marked
for upstream's warp specialization, right or wrong. The passes `flatten-loops` and
`epilogue-warp-specialize` decide instead; `warp-specialize-legality` tells what the mark leads to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import triton
import triton.language as tl

from tilepass.kernels._matmul_host import TRITON_TYPES, MatmulConfig, MatmulWorkload
from tilepass.kernels._matmul_parts import accumulate, apply_epilogue, store_tile, tile_origin
from tilepass.kernels._source import ast_source
from tilepass.kernels._tensors import (
    dtype_of,
    empty_rows,
    host_descriptor,
    program_slots,
    use_torch_allocator,
)
from tilepass.kernels.workload import Inputs, Launch, Shape

if TYPE_CHECKING:
    import torch


@triton.jit
def compute_tiles(
    a_desc,
    b_desc,
    c_desc,
    c_ptr,
    bias_ptr,
    residual_desc,
    residual_ptr,
    residual_stride,
    c_stride,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EPILOGUE: tl.constexpr,
    FLATTEN: tl.constexpr,
    SPECIALIZE: tl.constexpr,
):
    """The persistent loop over this program's tiles. C and the residual go through their
    descriptors, or through pointers where those are None."""
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    first, step = tl.program_id(0), tl.num_programs(0)
    for tile in tl.range(first, tiles, step, flatten=FLATTEN, warp_specialize=SPECIALIZE):
        row, column = tile_origin(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        accumulator = accumulate(a_desc, b_desc, row, column, K, BLOCK_M, BLOCK_N, BLOCK_K)
        accumulator = apply_epilogue(
            accumulator, bias_ptr, residual_desc, residual_ptr, residual_stride,
            row, column, M, N, BLOCK_M, BLOCK_N, EPILOGUE,
        )  # fmt: skip
        if c_desc is not None:
            c_desc.store([row, column], accumulator.to(c_desc.dtype))
        else:
            c = accumulator.to(c_ptr.dtype.element_ty)
            store_tile(c, c_ptr, c_stride, row, column, M, N, BLOCK_M, BLOCK_N)


@triton.jit
def persistent_matmul(
    a_desc,
    b_desc,
    c_desc,
    c_ptr,
    bias_ptr,
    residual_desc,
    residual_ptr,
    residual_stride,
    c_stride,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EPILOGUE: tl.constexpr,
    FLATTEN: tl.constexpr = True,
    SPECIALIZE: tl.constexpr = False,
):
    """Descriptors made on the host: [BLOCK_M, BLOCK_K], [BLOCK_N, BLOCK_K], [BLOCK_M, BLOCK_N]."""
    compute_tiles(
        a_desc, b_desc, c_desc, c_ptr, bias_ptr, residual_desc, residual_ptr, residual_stride,
        c_stride, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, EPILOGUE, FLATTEN, SPECIALIZE,
    )  # fmt: skip


@triton.jit
def persistent_matmul_device(
    a_ptr,
    b_ptr,
    c_ptr,
    bias_ptr,
    residual_ptr,
    residual_stride,
    a_stride,
    b_stride,
    c_stride,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EPILOGUE: tl.constexpr,
    POINTER_STORE: tl.constexpr,
    FLATTEN: tl.constexpr = True,
    SPECIALIZE: tl.constexpr = False,
):
    """The same with descriptors made in the kernel. No descriptor has an empty dimension: at K = 0
    they claim one column, which nothing loads."""
    depth = tl.maximum(K, 1)
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, depth], [a_stride, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, depth], [b_stride, 1], [BLOCK_N, BLOCK_K])
    c_desc, residual_desc = None, None
    if not POINTER_STORE:
        c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [c_stride, 1], [BLOCK_M, BLOCK_N])
        if residual_ptr is not None:
            residual_desc = tl.make_tensor_descriptor(
                residual_ptr, [M, N], [residual_stride, 1], [BLOCK_M, BLOCK_N]
            )
    compute_tiles(
        a_desc, b_desc, c_desc, c_ptr, bias_ptr, residual_desc, residual_ptr, residual_stride,
        c_stride, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, EPILOGUE, FLATTEN, SPECIALIZE,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PersistentConfig(MatmulConfig):
    """`programs` is the grid size; None starts one program on each SM."""

    descriptors: Literal["host", "device"] = "host"
    store: Literal["tma", "pointer"] = "tma"
    flatten: bool = True
    specialize: bool = False
    programs: int | None = None


class PersistentMatmul(MatmulWorkload[PersistentConfig]):
    """C = A B^T with a loop over tiles in each program."""

    name = "persistent_matmul_triton"
    default_config = PersistentConfig()
    default_shapes = (
        (8192, 8192, 8192),
        (4096, 4096, 4096),
        (8192, 8192, 1024),
        (8192, 8192, 512),
        (4096, 14336, 4096),
        (2048, 2048, 16384),
    )

    def config_for(self, shape: Shape, **fields: Any) -> PersistentConfig:
        """128x256x64, 3 stages, 8 warps; for fp8 a K step of 128, which is as many bytes; with a
        residual 128x128 and 4 stages, since its tile takes shared memory beside C's."""
        self.checked_shape(shape)
        chosen: dict[str, Any] = {}
        if fields.get("dtype") == "fp8e4m3":
            chosen["block_k"] = 128
        if fields.get("epilogue") == "residual":
            chosen |= {"block_n": 128, "num_stages": 4}
        return self.with_fields(self.default_config, chosen | fields)

    def jit_function(self, config: PersistentConfig) -> Any:
        return persistent_matmul if config.descriptors == "host" else persistent_matmul_device

    def ast_source(self, config: PersistentConfig) -> tuple[Any, dict[str, Any]]:
        kind, out = TRITON_TYPES[config.dtype], TRITON_TYPES[config.output_dtype]
        m, n, k = config.block_m, config.block_n, config.block_k
        tma_store, residual = config.store == "tma", config.epilogue == "residual"
        biased = config.epilogue in ("bias", "bias_gelu")
        arguments: dict[str, str | None] = {
            **dict.fromkeys(("M", "N", "K", "c_stride"), "i32"),
            "bias_ptr": f"*{out}" if biased else None,
            "residual_stride": "i32" if residual else None,
        }
        if config.descriptors == "device":
            arguments |= dict.fromkeys(("a_ptr", "b_ptr"), f"*{kind}")
            arguments |= dict.fromkeys(("a_stride", "b_stride"), "i32")
            arguments |= {"c_ptr": f"*{out}", "residual_ptr": f"*{out}" if residual else None}
        else:
            c_tile = f"tensordesc<{out}[{m},{n}]>"
            arguments |= {
                "a_desc": f"tensordesc<{kind}[{m},{k}]>",
                "b_desc": f"tensordesc<{kind}[{n},{k}]>",
                "c_desc": c_tile if tma_store else None,
                "c_ptr": None if tma_store else f"*{out}",
                "residual_desc": c_tile if tma_store and residual else None,
                "residual_ptr": f"*{out}" if residual and not tma_store else None,
            }
        aligned = [n for n, t in arguments.items() if t and not t.startswith("tensordesc")]
        source = ast_source(self.jit_function(config), arguments, self.constants(config), aligned)
        return source, config.options()

    def constants(self, config: PersistentConfig) -> dict[str, Any]:
        constants = {
            **super().constants(config),
            "FLATTEN": config.flatten,
            "SPECIALIZE": config.specialize,
        }
        if config.descriptors == "device":
            constants["POINTER_STORE"] = config.store == "pointer"
        return constants

    def prepare(self, inputs: Inputs, config: PersistentConfig) -> Launch:
        self.check_config(inputs, config)
        M, N, K = inputs.shape
        c = empty_rows(M, N, dtype_of(config.output_dtype), inputs.device)
        residual = inputs.tensors.get("residual")
        arguments: dict[str, Any] = {
            "M": M,
            "N": N,
            "K": K,
            "c_stride": c.stride(0),
            "bias_ptr": inputs.tensors.get("bias"),
            "residual_stride": None if residual is None else residual.stride(0),
        }
        if config.descriptors == "device":
            arguments |= self._device_arguments(inputs, c)
        else:
            arguments |= self._host_arguments(inputs, c, config)
        slots = config.programs or program_slots(inputs.device)
        grid = (min(slots, self.tiles(inputs.shape, config)),)
        return self.launch_of(config, grid, arguments, self.constants(config), (c,))

    def _host_arguments(
        self, inputs: Inputs, c: torch.Tensor, config: PersistentConfig
    ) -> dict[str, Any]:
        m, n, k = config.block_m, config.block_n, config.block_k
        residual, tma_store = inputs.tensors.get("residual"), config.store == "tma"
        by_tma = residual is not None and tma_store
        return {
            "a_desc": host_descriptor(inputs.tensors["a"], [m, k]),
            "b_desc": host_descriptor(inputs.tensors["b"], [n, k]),
            "c_desc": host_descriptor(c, [m, n]) if tma_store else None,
            "c_ptr": None if tma_store else c,
            "residual_desc": host_descriptor(residual, [m, n]) if by_tma else None,
            "residual_ptr": None if by_tma else residual,
        }

    def _device_arguments(self, inputs: Inputs, c: torch.Tensor) -> dict[str, Any]:
        use_torch_allocator(inputs.device)
        a, b = inputs.tensors["a"], inputs.tensors["b"]
        return {
            "a_ptr": a,
            "b_ptr": b,
            "c_ptr": c,
            "residual_ptr": inputs.tensors.get("residual"),
            "a_stride": a.stride(0),
            "b_stride": b.stride(0),
        }


WORKLOAD = PersistentMatmul()
make_inputs = WORKLOAD.make_inputs
reference = WORKLOAD.reference
