"""Non-persistent matmul C = A B^T: one program for each tile, TMA descriptors made on the host.

Two forms that compute the same. The plain one is what most authors write; ptxas 12.8 then
serializes every wgmma on Hopper (warning C7515). In the other the tile sits in a loop that runs
once, which ptxas takes as it is: compare against that one, never against the serialized one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl

from tilepass.kernels._matmul_host import TRITON_TYPES, MatmulConfig, MatmulWorkload
from tilepass.kernels._matmul_parts import accumulate, apply_epilogue, tile_origin
from tilepass.kernels._source import ast_source
from tilepass.kernels._tensors import dtype_of, empty_rows, host_descriptor
from tilepass.kernels.workload import Inputs, Launch, Shape

ONE_TRIP = tl.constexpr(1 << 30)
"""A loop step above any number of tiles."""


@triton.jit
def compute_tile(
    tile,
    a_desc,
    b_desc,
    c_desc,
    bias_ptr,
    residual_desc,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EPILOGUE: tl.constexpr,
):
    row, column = tile_origin(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M)
    accumulator = accumulate(a_desc, b_desc, row, column, K, BLOCK_M, BLOCK_N, BLOCK_K)
    accumulator = apply_epilogue(
        accumulator, bias_ptr, residual_desc, None, None, row, column, M, N,
        BLOCK_M, BLOCK_N, EPILOGUE,
    )  # fmt: skip
    c_desc.store([row, column], accumulator.to(c_desc.dtype))


@triton.jit
def matmul(
    a_desc,
    b_desc,
    c_desc,
    bias_ptr,
    residual_desc,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EPILOGUE: tl.constexpr,
):
    """The plain kernel: the program's tile, no outer loop."""
    compute_tile(
        tl.program_id(0), a_desc, b_desc, c_desc, bias_ptr, residual_desc, M, N, K,
        BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, EPILOGUE,
    )  # fmt: skip


@triton.jit
def matmul_one_trip(
    a_desc,
    b_desc,
    c_desc,
    bias_ptr,
    residual_desc,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EPILOGUE: tl.constexpr,
):
    """The same tile in an outer loop whose step exceeds the number of tiles."""
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles, ONE_TRIP):
        compute_tile(
            tile, a_desc, b_desc, c_desc, bias_ptr, residual_desc, M, N, K,
            BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, EPILOGUE,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class OneTileConfig(MatmulConfig):
    """`outer_loop` chooses the form with the one-trip loop."""

    outer_loop: bool = True


class Matmul(MatmulWorkload[OneTileConfig]):
    """C = A B^T with one program for each tile."""

    name = "matmul_triton"
    default_config = OneTileConfig()
    default_shapes = ((4096, 4096, 4096), (2048, 2048, 16384), (8192, 8192, 1024))

    def config_for(self, shape: Shape, **fields: Any) -> OneTileConfig:
        """128x256x64 with 3 stages; as many bytes a K step for fp8."""
        self.checked_shape(shape)
        chosen = {"block_k": 128} if fields.get("dtype") == "fp8e4m3" else {}
        return self.with_fields(self.default_config, chosen | fields)

    def jit_function(self, config: OneTileConfig) -> Any:
        return matmul_one_trip if config.outer_loop else matmul

    def ast_source(self, config: OneTileConfig) -> tuple[Any, dict[str, Any]]:
        kind, out = TRITON_TYPES[config.dtype], TRITON_TYPES[config.output_dtype]
        m, n, k = config.block_m, config.block_n, config.block_k
        biased = config.epilogue in ("bias", "bias_gelu")
        c_tile = f"tensordesc<{out}[{m},{n}]>"
        arguments = {
            "a_desc": f"tensordesc<{kind}[{m},{k}]>",
            "b_desc": f"tensordesc<{kind}[{n},{k}]>",
            "c_desc": c_tile,
            "bias_ptr": f"*{out}" if biased else None,
            "residual_desc": c_tile if config.epilogue == "residual" else None,
            **dict.fromkeys(("M", "N", "K"), "i32"),
        }
        aligned = ("M", "N", "K", "bias_ptr")
        source = ast_source(self.jit_function(config), arguments, self.constants(config), aligned)
        return source, config.options()

    def prepare(self, inputs: Inputs, config: OneTileConfig) -> Launch:
        self.check_config(inputs, config)
        M, N, K = inputs.shape
        c = empty_rows(M, N, dtype_of(config.output_dtype), inputs.device)
        c_block = [config.block_m, config.block_n]
        residual = inputs.tensors.get("residual")
        arguments = {
            "a_desc": host_descriptor(inputs.tensors["a"], [config.block_m, config.block_k]),
            "b_desc": host_descriptor(inputs.tensors["b"], [config.block_n, config.block_k]),
            "c_desc": host_descriptor(c, c_block),
            "bias_ptr": inputs.tensors.get("bias"),
            "residual_desc": None if residual is None else host_descriptor(residual, c_block),
            "M": M,
            "N": N,
            "K": K,
        }
        grid = (self.tiles(inputs.shape, config),)
        return self.launch_of(config, grid, arguments, self.constants(config), (c,))


WORKLOAD = Matmul()
make_inputs = WORKLOAD.make_inputs
reference = WORKLOAD.reference
