"""Persistent matmul of bf16 activations with mxfp4 weights for Hopper: C = X W^T.

X [M, K] bf16, W [N, K] mxfp4 (packed as `_mxfp4_format` says), C [M, N] bf16. The kernel computes
C^T = W X^T, so that a small M lies along wgmma's N, and dequantises W in registers, where wgmma
takes its A operand from.

The dots of a step are unfinished while the next step is dequantised, and PTX forbids touching the
registers of an unfinished wgmma. Before 3.9, Triton leaves this to ptxas, which up to CUDA 12.9
gives such registers to the next step's values when they are in flight over the loop's back edge:
whether C is right is then a matter of timing. GUARD waits before the dequantisation; loads,
address arithmetic and TMA still overlap with the dots. Without it, `fix-dot-wait` does the same.

Few tiles leave SMs idle: SPLIT_K programs then share a tile, and the last one to finish adds their
partial sums, always in the same order, so that the result does not depend on which one was last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import triton
import triton.language as tl

from tilepass.core.errors import TilepassError
from tilepass.kernels import _mxfp4_format as mxfp4
from tilepass.kernels._mxfp4_parts import UNSCALE, dequantize_tile
from tilepass.kernels._source import ast_source
from tilepass.kernels._split_k import sum_partials
from tilepass.kernels._tensors import (
    ceil_div,
    check_blocks,
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
def mxfp4_matmul(
    x_desc,
    w_desc,
    scale_ptr,
    c_desc,
    c_ptr,
    c_stride,
    partial_ptr,
    counter_ptr,
    M,
    N,
    padded_n,
    k_tiles,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLIT_K: tl.constexpr,
    STRIP: tl.constexpr,
    FLATTEN: tl.constexpr = True,
    GUARD: tl.constexpr = True,
):
    """Work items are (split, tile) with the tile varying fastest, and tiles go down M first: the
    programs of a wave share their weights. C goes by TMA, or through `c_ptr` when K is split."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles = tiles_m * tl.cdiv(N, BLOCK_N)
    WORDS: tl.constexpr = (BLOCK_K + 127) // 128
    for item in tl.range(tl.program_id(0), tiles * SPLIT_K, tl.num_programs(0), flatten=FLATTEN):
        tile = item % tiles
        split = item // tiles
        row = (tile % tiles_m) * BLOCK_M
        column = (tile // tiles_m) * BLOCK_N
        if SPLIT_K == 1:
            k_start, k_stop = 0, k_tiles
        else:
            k_start = split * tl.cdiv(k_tiles, SPLIT_K)
            k_stop = min(k_start + tl.cdiv(k_tiles, SPLIT_K), k_tiles)
        accumulator = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)
        for k in range(k_start, k_stop):
            x = x_desc.load([row, k * BLOCK_K])
            packed_row = k * padded_n + column
            words = w_desc.load([packed_row, 0])
            scale_rows = packed_row + tl.arange(0, BLOCK_N)[:, None]
            scales = tl.load(scale_ptr + scale_rows * WORDS + tl.arange(0, WORDS)[None, :])
            w = dequantize_tile(words, scales, BLOCK_N, BLOCK_K, GUARD)
            accumulator = tl.dot(w, x.T, accumulator)
        accumulator *= UNSCALE
        if SPLIT_K == 1:
            c_desc.store([row, column], accumulator.to(tl.bfloat16).T)
        else:
            sum_partials(
                accumulator, c_ptr, c_stride, partial_ptr, counter_ptr, tile, split, row, column,
                M, N, BLOCK_M, BLOCK_N, SPLIT_K, STRIP,
            )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Mxfp4Config(Config):
    """`occupancy` is the number of programs on an SM; 2 limits the registers of each. `guard` is
    for sm_90: no other target has wgmma. Raises TilepassError when a split K is to be flattened:
    its tile loop holds a branch and a second loop, which Triton does not fuse or, in 3.6, fails
    on."""

    occupancy: Literal[1, 2] = 1
    block_m: int = 64
    block_n: int = 256
    block_k: int = 128
    split_k: int = 1
    flatten: bool = True
    guard: bool = True
    programs: int | None = None

    def __post_init__(self) -> None:
        if self.flatten and self.split_k > 1:
            raise TilepassError("mxfp4_matmul_triton: split_k above 1 needs flatten=off")

    def options(self) -> dict[str, Any]:
        options = super().options()
        if self.occupancy > 1 and self.maxnreg is None:
            options["maxnreg"] = registers_for(self.occupancy, self.num_warps)
        return options


STRIP_ELEMENTS = 4096
"""Elements of a partial tile that are summed at a time: 16 registers a thread with 8 warps."""


def registers_for(occupancy: int, num_warps: int) -> int:
    """Registers a thread may have so that `occupancy` programs share an SM's 65536 (sm_90), in
    units of 8."""
    return 65536 // (occupancy * num_warps * 32) // 8 * 8


# By occupancy, for M up to the first number (0: any): block_m, block_n, block_k, num_stages.
TILES: dict[int, tuple[tuple[int, ...], ...]] = {
    1: (
        (16, 16, 128, 256, 7),
        (64, 64, 256, 128, 5),
        (128, 128, 256, 128, 3),
        (0, 256, 128, 64, 4),
    ),
    2: ((16, 16, 128, 256, 4), (64, 64, 128, 128, 4), (0, 128, 128, 64, 4)),
}


class Mxfp4Matmul(Workload[Mxfp4Config]):
    """C = X W^T with W in mxfp4."""

    name = "mxfp4_matmul_triton"
    dims = ("M", "N", "K")
    default_config = Mxfp4Config(num_stages=5)
    default_shapes = tuple(
        (m, n, k)
        for n, k in ((8192, 8192), (28672, 8192), (5760, 2880))
        for m in (16, 64, 128, 256, 1024)
    )

    def config_for(self, shape: Shape, **fields: Any) -> Mxfp4Config:
        """The tile for this M at the given `occupancy` (1 unless given); flattened unless K is
        split."""
        M, _, _ = self.checked_shape(shape)
        occupancy = fields.get("occupancy", 1)
        if occupancy not in TILES:
            raise TilepassError(f"{self.name}: occupancy is 1 or 2, not {occupancy}")
        tile = next(t for t in TILES[occupancy] if t[0] >= M or t[0] == 0)
        chosen: dict[str, Any] = dict(
            zip(("block_m", "block_n", "block_k", "num_stages"), tile[1:], strict=True)
        )
        chosen["flatten"] = fields.get("split_k", 1) == 1
        return self.with_fields(self.default_config, chosen | fields)

    def jit_function(self, config: Mxfp4Config) -> Any:
        return mxfp4_matmul

    def ast_source(self, config: Mxfp4Config) -> tuple[Any, dict[str, Any]]:
        m, n, k = config.block_m, config.block_n, config.block_k
        split = config.split_k > 1
        arguments = {
            "x_desc": f"tensordesc<bf16[{m},{k}]>",
            "w_desc": f"tensordesc<i32[{n},{k // 8}]>",
            "scale_ptr": "*i32",
            "c_desc": None if split else f"tensordesc<bf16[{m},{n}]>",
            "c_ptr": "*bf16" if split else None,
            "c_stride": "i32" if split else None,
            "partial_ptr": "*fp32" if split else None,
            "counter_ptr": "*i32" if split else None,
            **dict.fromkeys(("M", "N", "padded_n", "k_tiles"), "i32"),
        }
        # Not k_tiles: it counts tiles, e.g. 23 of K = 2880.
        pointers = ("scale_ptr", "c_ptr", "partial_ptr", "counter_ptr")
        aligned = (*pointers, "c_stride", "M", "N", "padded_n")
        source = ast_source(self.jit_function(config), arguments, self.constants(config), aligned)
        return source, config.options()

    def constants(self, config: Mxfp4Config) -> dict[str, Any]:
        return {
            "BLOCK_M": config.block_m,
            "BLOCK_N": config.block_n,
            "BLOCK_K": config.block_k,
            "SPLIT_K": config.split_k,
            "STRIP": min(STRIP_ELEMENTS // config.block_n, config.block_m),
            "FLATTEN": config.flatten,
            "GUARD": config.guard,
        }

    def make_inputs(
        self, shape: Shape, seed: int, device: str = "cuda", config: Mxfp4Config | None = None
    ) -> Inputs:
        """X [M, K] bf16, uniform in [-1, 1]; W as random e2m1 codes [N, K] and scale bytes
        [N, K/32] for 2^-8 .. 2^-4, K rounded up to a multiple of 32 with codes of zero."""
        import torch

        M, N, K = self.checked_shape(shape)
        if M == 0 or N == 0:
            raise TilepassError(f"{self.name}: {self.describe(shape)}: C is empty")
        generator = seeded(seed, device)
        depth = ceil_div(K, mxfp4.GROUP) * mxfp4.GROUP
        draw = {"generator": generator, "device": device, "dtype": torch.uint8}
        codes = torch.randint(0, 16, (N, depth), **draw)
        codes[:, K:] = 0
        tensors = {
            "x": padded_rows(uniform((M, K), generator), torch.bfloat16),
            "codes": codes,
            "scales": torch.randint(119, 124, (N, depth // mxfp4.GROUP), **draw),
        }
        return Inputs(shape, seed, config or self.config_for(shape), tensors)

    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        import torch

        M, N, K = inputs.shape
        x = inputs.tensors["x"].float()
        c = torch.empty(M, N, dtype=torch.float32, device=inputs.device)
        for start in range(0, N, 4096):  # fp32 weights take 8 times the memory of the codes
            rows = slice(start, start + 4096)
            w = mxfp4.dequantize(inputs.tensors["codes"][rows], inputs.tensors["scales"][rows])
            with exact_fp32():
                c[:, rows] = x @ w[:, :K].T
        return (c,)

    def tolerance(self, inputs: Inputs) -> Tolerance:
        """Rounding of C to bf16 (doubled) and of fp32 sums of products below 0.4."""
        return Tolerance(relative=2.0**-8, absolute=2.0**-14 + inputs.shape[2] * 2.0**-21)

    def prepare(self, inputs: Inputs, config: Mxfp4Config) -> Launch:
        """Packs the weights for this tile. The counters of a split K belong to the launch, which
        may therefore not run twice at the same time."""
        import torch

        self.check_config(config)
        M, N, K = inputs.shape
        x, device = inputs.tensors["x"], inputs.device
        require_tma_strides(f"{self.name}: X", x)
        words = mxfp4.pack_codes(inputs.tensors["codes"], config.block_n, config.block_k)
        scales = mxfp4.pack_scales(inputs.tensors["scales"], config.block_n, config.block_k)
        c = empty_rows(M, N, torch.bfloat16, device)
        tiles = ceil_div(M, config.block_m) * ceil_div(N, config.block_n)
        arguments: dict[str, Any] = {
            "x_desc": host_descriptor(x, [config.block_m, config.block_k]),
            "w_desc": host_descriptor(words, [config.block_n, config.block_k // 8]),
            "scale_ptr": scales,
            "M": M,
            "N": N,
            "padded_n": ceil_div(N, config.block_n) * config.block_n,
            "k_tiles": ceil_div(K, config.block_k),
        }
        scratch: tuple[torch.Tensor, ...] = ()
        if config.split_k == 1:
            c_desc = host_descriptor(c, [config.block_m, config.block_n])
            absent = dict.fromkeys(("c_ptr", "c_stride", "partial_ptr", "counter_ptr"))
            arguments |= {"c_desc": c_desc, **absent}
        else:
            size = tiles * config.split_k * config.block_m * config.block_n
            scratch = (torch.full((size,), float("nan"), device=device),)
            arguments |= {
                "c_desc": None,
                "c_ptr": c,
                "c_stride": c.stride(0),
                "partial_ptr": scratch[0],
                "counter_ptr": torch.zeros(tiles, dtype=torch.int32, device=device),
            }
        slots = config.programs or program_slots(device, config.occupancy)
        grid = (min(slots, tiles * config.split_k),)
        return self.launch_of(config, grid, arguments, self.constants(config), (c,), scratch)

    def check_config(self, config: Mxfp4Config) -> None:
        """Raises TilepassError for a tile or split that the kernel does not have."""
        check_blocks(self.name, block_m=config.block_m, block_n=config.block_n)
        if config.block_k not in (64, 128, 256):
            raise TilepassError(f"{self.name}: block_k is 64, 128 or 256, not {config.block_k}")
        if config.split_k < 1:
            raise TilepassError(f"{self.name}: split_k is at least 1, not {config.split_k}")

    def flops(self, shape: Shape, config: Mxfp4Config) -> float:
        M, N, K = shape
        return 2.0 * M * N * K

    def bytes_moved(self, shape: Shape, config: Mxfp4Config) -> float:
        """Codes (half a byte), scales (a byte for 32), X and C in bf16."""
        M, N, K = shape
        return N * K / 2 + N * K / mxfp4.GROUP + 2.0 * (M * K + M * N)


WORKLOAD = Mxfp4Matmul()
make_inputs = WORKLOAD.make_inputs
reference = WORKLOAD.reference
