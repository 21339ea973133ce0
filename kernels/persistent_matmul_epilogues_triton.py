"""The persistent matmul with what users put around it: other epilogues, layouts, types, outputs.

C = finish(epilogue(A B^T)), descriptors made on the host, one tile loop, nothing decided for the
compiler: neither flattened nor warp specialized. On top of `persistent_matmul_triton`:

* SiLU, scale and clamp, or a bias over the rows, after any of the epilogues there;
* operands that lie with K outermost, A as [K, M] and B as [K, N];
* C in another type than A and B, fp32 or fp8 included;
* a second output, the product before the epilogue, as training keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import triton
import triton.language as tl

from tilepass.core.errors import TilepassError
from tilepass.kernels._matmul_host import TRITON_TYPES, MatmulConfig, MatmulWorkload
from tilepass.kernels._matmul_parts import accumulate, apply_epilogue, finish_tile, tile_origin
from tilepass.kernels._source import ast_source
from tilepass.kernels._tensors import (
    dtype_of,
    empty_rows,
    host_descriptor,
    padded_rows,
    program_slots,
    seeded,
    uniform,
)
from tilepass.kernels.workload import Inputs, Launch, Shape, Tolerance

if TYPE_CHECKING:
    import torch

Layout = Literal["k_inner", "k_outer"]
SCALE = 0.37
"""What `scale_clamp` multiplies by: a run-time argument."""
LIMIT = 1.5
"""What `scale_clamp` clamps to, from -LIMIT to LIMIT."""


@triton.jit
def persistent_matmul_epilogues(
    a_desc,
    b_desc,
    c_desc,
    product_desc,
    bias_ptr,
    residual_desc,
    row_bias_ptr,
    scale,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EPILOGUE: tl.constexpr,
    FINISH: tl.constexpr,
    LIMIT: tl.constexpr,
    A_K_OUTER: tl.constexpr,
    B_K_OUTER: tl.constexpr,
):
    """`product_desc`, `residual_desc`, the pointers and `scale` are None where not used."""
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        row, column = tile_origin(tile, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        product = accumulate(
            a_desc, b_desc, row, column, K, BLOCK_M, BLOCK_N, BLOCK_K, A_K_OUTER, B_K_OUTER
        )
        if product_desc is not None:
            product_desc.store([row, column], product.to(product_desc.dtype))
        c = apply_epilogue(
            product, bias_ptr, residual_desc, None, None, row, column, M, N,
            BLOCK_M, BLOCK_N, EPILOGUE,
        )  # fmt: skip
        c = finish_tile(c, row_bias_ptr, scale, LIMIT, row, M, FINISH)
        c_desc.store([row, column], c.to(c_desc.dtype))


@dataclass(frozen=True, kw_only=True)
class EpiloguesConfig(MatmulConfig):
    """`output` is C's type, which bias and residual share; `keep_product` asks for the second
    output; `programs` is the grid size, None starts one program on each SM."""

    finish: Literal["none", "silu", "scale_clamp", "row_bias"] = "none"
    a_layout: Layout = "k_inner"
    b_layout: Layout = "k_inner"
    output: Literal["same", "bf16", "fp16", "fp32", "fp8e4m3"] = "same"
    keep_product: bool = False
    programs: int | None = None

    @property
    def output_dtype(self) -> str:
        return super().output_dtype if self.output == "same" else self.output


class PersistentMatmulEpilogues(MatmulWorkload[EpiloguesConfig]):
    """C = finish(epilogue(A B^T)) with a loop over tiles in each program."""

    name = "persistent_matmul_epilogues_triton"
    default_config = EpiloguesConfig()
    default_shapes = ((8192, 8192, 512), (4096, 4096, 4096))

    def config_for(self, shape: Shape, **fields: Any) -> EpiloguesConfig:
        """128x256x64, 3 stages, 8 warps; for fp8 a K step of 128. Where more than one 16-bit tile
        of C is in shared memory (residual, second output, fp32) 128x128 and 4 stages."""
        self.checked_shape(shape)
        chosen: dict[str, Any] = {}
        if fields.get("dtype") == "fp8e4m3":
            chosen["block_k"] = 128
        large = fields.get("epilogue") == "residual" or fields.get("output") == "fp32"
        if large or fields.get("keep_product"):
            chosen |= {"block_n": 128, "num_stages": 4}
        return self.with_fields(self.default_config, chosen | fields)

    def jit_function(self, config: EpiloguesConfig) -> Any:
        return persistent_matmul_epilogues

    def ast_source(self, config: EpiloguesConfig) -> tuple[Any, dict[str, Any]]:
        kind, out = TRITON_TYPES[config.dtype], TRITON_TYPES[config.output_dtype]
        biased = config.epilogue in ("bias", "bias_gelu")
        blocks = {name: ",".join(map(str, size)) for name, size in operand_blocks(config).items()}
        c_tile = f"tensordesc<{out}[{blocks['c']}]>"
        arguments = {
            "a_desc": f"tensordesc<{kind}[{blocks['a']}]>",
            "b_desc": f"tensordesc<{kind}[{blocks['b']}]>",
            "c_desc": c_tile,
            "product_desc": c_tile if config.keep_product else None,
            "bias_ptr": f"*{out}" if biased else None,
            "residual_desc": c_tile if config.epilogue == "residual" else None,
            "row_bias_ptr": f"*{out}" if config.finish == "row_bias" else None,
            "scale": "fp32" if config.finish == "scale_clamp" else None,
            **dict.fromkeys(("M", "N", "K"), "i32"),
        }
        aligned = ("M", "N", "K", "bias_ptr", "row_bias_ptr")
        source = ast_source(persistent_matmul_epilogues, arguments, self.constants(config), aligned)
        return source, config.options()

    def constants(self, config: EpiloguesConfig) -> dict[str, Any]:
        return {
            **super().constants(config),
            "FINISH": config.finish,
            "LIMIT": LIMIT,
            "A_K_OUTER": config.a_layout == "k_outer",
            "B_K_OUTER": config.b_layout == "k_outer",
        }

    def make_inputs(
        self, shape: Shape, seed: int, device: str = "cuda", config: EpiloguesConfig | None = None
    ) -> Inputs:
        """As for the other matmuls; an operand with K outermost is the transpose, its rows padded
        to 16 bytes. `row_bias` is [M]."""
        config = config or self.default_config
        inputs = super().make_inputs(shape, seed, device, config)
        tensors, kind = dict(inputs.tensors), dtype_of(config.dtype)
        for name, layout in (("a", config.a_layout), ("b", config.b_layout)):
            if layout == "k_outer":
                tensors[name] = padded_rows(tensors[name].float().T, kind)
        if config.finish == "row_bias":
            values = uniform((shape[0],), seeded(seed + 1, device))
            tensors["row_bias"] = values.to(dtype_of(config.output_dtype))
        return replace(inputs, tensors=tensors)

    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        import torch

        config = self.epilogues_config(inputs)
        tensors = dict(inputs.tensors)
        for name, layout in (("a", config.a_layout), ("b", config.b_layout)):
            if layout == "k_outer":
                tensors[name] = tensors[name].T
        plain = replace(inputs, tensors=tensors)
        (c,) = super().reference(plain)
        if config.finish == "silu":
            c = torch.nn.functional.silu(c)
        if config.finish == "scale_clamp":
            c = (c * SCALE).clamp(-LIMIT, LIMIT)
        if config.finish == "row_bias":
            c += inputs.tensors["row_bias"].float()[:, None]
        if not config.keep_product:
            return (c,)
        product = super().reference(replace(plain, config=replace(config, epilogue="none")))
        return (c, *product)

    def tolerance(self, inputs: Inputs) -> Tolerance:
        """As for the other matmuls, with the rounding of C's type: fp8 e4m3 has a relative half
        unit of 2^-4 (doubled) and steps of 2^-9 next to zero; an fp32 C leaves what the hardware's
        approximate exponential costs."""
        summing = super().tolerance(inputs)
        match self.epilogues_config(inputs).output_dtype:
            case "fp8e4m3":
                return Tolerance(2.0**-3, summing.absolute + 2.0**-9)
            case "fp32":
                return Tolerance(2.0**-18, summing.absolute)
            case _:
                return summing

    def bytes_moved(self, shape: Shape, config: EpiloguesConfig) -> float:
        M, N, _ = shape
        out = dtype_of(config.output_dtype).itemsize
        more = (M * N if config.keep_product else 0) + (M if config.finish == "row_bias" else 0)
        return super().bytes_moved(shape, config) + more * out

    def prepare(self, inputs: Inputs, config: EpiloguesConfig) -> Launch:
        self.check_config(inputs, config)
        M, N, K = inputs.shape
        blocks, tensors = operand_blocks(config), inputs.tensors
        out = dtype_of(config.output_dtype)
        outputs = [
            empty_rows(M, N, out, inputs.device) for _ in range(2 if config.keep_product else 1)
        ]
        residual = tensors.get("residual")
        described = [host_descriptor(output, blocks["c"]) for output in outputs]
        arguments = {
            "a_desc": host_descriptor(tensors["a"], blocks["a"]),
            "b_desc": host_descriptor(tensors["b"], blocks["b"]),
            "c_desc": described[0],
            "product_desc": described[1] if config.keep_product else None,
            "bias_ptr": tensors.get("bias"),
            "residual_desc": None if residual is None else host_descriptor(residual, blocks["c"]),
            "row_bias_ptr": tensors.get("row_bias"),
            "scale": SCALE if config.finish == "scale_clamp" else None,
            "M": M,
            "N": N,
            "K": K,
        }
        slots = config.programs or program_slots(inputs.device)
        grid = (min(slots, self.tiles(inputs.shape, config)),)
        return self.launch_of(config, grid, arguments, self.constants(config), tuple(outputs))

    def check_config(self, inputs: Inputs, config: EpiloguesConfig) -> None:
        """Raises TilepassError also for inputs of another layout, type of C, or finish."""
        made = self.epilogues_config(inputs)
        for field in ("a_layout", "b_layout", "output_dtype", "finish"):
            if getattr(made, field) != getattr(config, field):
                raise TilepassError(
                    f"{self.name}: inputs made for {field}={getattr(made, field)}; "
                    f"the configuration has {getattr(config, field)}"
                )
        super().check_config(inputs, config)

    def epilogues_config(self, inputs: Inputs) -> EpiloguesConfig:
        if not isinstance(inputs.config, EpiloguesConfig):
            raise TilepassError(f"{self.name}: these inputs were made for another kernel")
        return inputs.config


def operand_blocks(config: EpiloguesConfig) -> dict[str, list[int]]:
    """The TMA boxes of A, B and C."""
    m, n, k = config.block_m, config.block_n, config.block_k
    return {
        "a": [m, k] if config.a_layout == "k_inner" else [k, m],
        "b": [n, k] if config.b_layout == "k_inner" else [k, n],
        "c": [m, n],
    }


WORKLOAD = PersistentMatmulEpilogues()
make_inputs = WORKLOAD.make_inputs
reference = WORKLOAD.reference
