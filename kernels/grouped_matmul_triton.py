"""Grouped matmul, as a mixture of experts has it: the rows of A belong to groups, each with its own
weights. C[rows of g] = A[rows of g] B[g]^T.

A [M, K] holds the groups' rows one after the other, B is [G, N, K]. A persistent kernel: the host
lists the row tiles (first row, end of the group, group), the programs share tiles of C. A tile may
load rows of the next group; it does not store them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import triton
import triton.language as tl

from tilepass.core.errors import TilepassError
from tilepass.kernels._matmul_parts import accumulate, store_tile
from tilepass.kernels._source import ast_source
from tilepass.kernels._tensors import (
    ceil_div,
    check_blocks,
    dtype_of,
    empty_rows,
    exact_fp32,
    host_descriptor,
    padded_rows,
    program_slots,
    require_tma_strides,
    seeded,
    uniform,
)
from tilepass.kernels.workload import Config, Inputs, Launch, Shape, Tolerance, Workload

if TYPE_CHECKING:
    import torch


@triton.jit
def grouped_matmul(
    a_desc,
    b_desc,
    c_ptr,
    c_stride,
    tiles_ptr,
    row_tiles,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    FLATTEN: tl.constexpr = True,
):
    """`tiles_ptr` holds `row_tiles` triples of int32. Row tiles vary fastest: the programs of a
    wave share the weights of few groups."""
    tiles = row_tiles * tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTEN):
        entry = tiles_ptr + tile % row_tiles * 3
        row = tl.load(entry)
        stop = tl.load(entry + 1)
        group = tl.load(entry + 2)
        column = tile // row_tiles * BLOCK_N
        weights = group * N + column
        c = accumulate(a_desc, b_desc, row, weights, K, BLOCK_M, BLOCK_N, BLOCK_K)
        c = c.to(c_ptr.dtype.element_ty)
        store_tile(c, c_ptr, c_stride, row, column, stop, N, BLOCK_M, BLOCK_N)


@dataclass(frozen=True, kw_only=True)
class GroupedConfig(Config):
    """Tile and type; `programs` is the grid size, None starts one program on each SM."""

    dtype: Literal["bf16", "fp16"] = "bf16"
    block_m: int = 128
    block_n: int = 128
    block_k: int = 64
    flatten: bool = True
    programs: int | None = None


class GroupedMatmul(Workload[GroupedConfig]):
    """C = A B[group]^T on G groups of together M rows."""

    name = "grouped_matmul_triton"
    dims = ("G", "M", "N", "K")
    default_config = GroupedConfig(num_stages=4)
    default_shapes = ((8, 8192, 4096, 4096), (64, 8192, 2048, 2048), (128, 512, 5760, 2880))

    def jit_function(self, config: GroupedConfig) -> Any:
        return grouped_matmul

    def ast_source(self, config: GroupedConfig) -> tuple[Any, dict[str, Any]]:
        m, n, k = config.block_m, config.block_n, config.block_k
        arguments = {
            "a_desc": f"tensordesc<{config.dtype}[{m},{k}]>",
            "b_desc": f"tensordesc<{config.dtype}[{n},{k}]>",
            "c_ptr": f"*{config.dtype}",
            "tiles_ptr": "*i32",
            **dict.fromkeys(("c_stride", "row_tiles", "N", "K"), "i32"),
        }
        aligned = ("c_ptr", "tiles_ptr", "c_stride", "N", "K")
        source = ast_source(grouped_matmul, arguments, self.constants(config), aligned)
        return source, config.options()

    def constants(self, config: GroupedConfig) -> dict[str, Any]:
        return {
            "BLOCK_M": config.block_m,
            "BLOCK_N": config.block_n,
            "BLOCK_K": config.block_k,
            "FLATTEN": config.flatten,
        }

    def make_inputs(
        self, shape: Shape, seed: int, device: str = "cuda", config: GroupedConfig | None = None
    ) -> Inputs:
        """A [M, K], B [G*N, K] uniform in [-1, 1], and the groups' borders, int32 [G + 1]: random
        sizes, some of them perhaps 0."""
        import torch

        G, M, N, K = self.checked_shape(shape)
        if G * M * N == 0:
            raise TilepassError(f"{self.name}: {self.describe(shape)}: C is empty")
        config = config or self.default_config
        generator, dtype = seeded(seed, device), dtype_of(config.dtype)
        cuts = torch.randint(0, M + 1, (G - 1,), generator=generator, device=device)
        ends = torch.tensor([0, M], device=device)
        tensors = {
            "a": padded_rows(uniform((M, K), generator), dtype),
            "b": padded_rows(uniform((G * N, K), generator), dtype),
            "borders": torch.cat([ends, cuts]).sort().values.to(torch.int32),
        }
        return Inputs(shape, seed, config, tensors)

    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        import torch

        G, M, N, K = inputs.shape
        a, b = inputs.tensors["a"].float(), inputs.tensors["b"].view(G, N, K)
        borders = inputs.tensors["borders"].tolist()
        c = torch.empty(M, N, dtype=torch.float32, device=inputs.device)
        for group, (start, stop) in enumerate(pairwise(borders)):
            with exact_fp32():
                c[start:stop] = a[start:stop] @ b[group].float().T
        return (c,)

    def tolerance(self, inputs: Inputs) -> Tolerance:
        """Rounding of C (doubled) and of fp32 sums in any order."""
        relative = 2.0**-8 if self.grouped_config(inputs).dtype == "bf16" else 2.0**-10
        return Tolerance(relative=relative, absolute=2.0**-14 + inputs.shape[3] * 2.0**-20)

    def prepare(self, inputs: Inputs, config: GroupedConfig) -> Launch:
        """Lists the row tiles of every group; an empty group has none."""
        self.check_config(inputs, config)
        _, M, N, K = inputs.shape
        c = empty_rows(M, N, dtype_of(config.dtype), inputs.device)
        tiles = row_tiles(inputs.tensors["borders"], config.block_m)
        arguments = {
            "a_desc": host_descriptor(inputs.tensors["a"], [config.block_m, config.block_k]),
            "b_desc": host_descriptor(inputs.tensors["b"], [config.block_n, config.block_k]),
            "c_ptr": c,
            "c_stride": c.stride(0),
            "tiles_ptr": tiles,
            "row_tiles": tiles.shape[0],
            "N": N,
            "K": K,
        }
        slots = config.programs or program_slots(inputs.device)
        grid = (min(slots, tiles.shape[0] * ceil_div(N, config.block_n)),)
        return self.launch_of(config, grid, arguments, self.constants(config), (c,))

    def check_config(self, inputs: Inputs, config: GroupedConfig) -> None:
        """Raises TilepassError for inputs of another type, or a tile or strides that TMA cannot
        do."""
        if self.grouped_config(inputs).dtype != config.dtype:
            raise TilepassError(f"{self.name}: inputs are not {config.dtype}")
        check_blocks(
            self.name, block_m=config.block_m, block_n=config.block_n, block_k=config.block_k
        )
        for name in ("a", "b"):
            require_tma_strides(f"{self.name}: operand '{name}'", inputs.tensors[name])

    def grouped_config(self, inputs: Inputs) -> GroupedConfig:
        if not isinstance(inputs.config, GroupedConfig):
            raise TilepassError(f"{self.name}: these inputs were made for another kernel")
        return inputs.config

    def flops(self, shape: Shape, config: GroupedConfig) -> float:
        _, M, N, K = shape
        return 2.0 * M * N * K

    def bytes_moved(self, shape: Shape, config: GroupedConfig) -> float:
        """With every group's weights read."""
        G, M, N, K = shape
        return 2.0 * (M * K + G * N * K + M * N)


def row_tiles(borders: torch.Tensor, block_m: int) -> torch.Tensor:
    """int32 [tiles, 3]: first row, end of its group, group, for tiles of `block_m` rows."""
    import torch

    edges = borders.tolist()
    entries = [
        (row, stop, group)
        for group, (start, stop) in enumerate(pairwise(edges))
        for row in range(start, stop, block_m)
    ]
    return torch.tensor(entries, dtype=torch.int32, device=borders.device)


WORKLOAD = GroupedMatmul()
make_inputs = WORKLOAD.make_inputs
reference = WORKLOAD.reference
