"""A persistent matmul that is right, and ten that are wrong: each with one gross mistake.

Nine are made in the source, and compiled as far as Triton's passes on TTGIR go, the tile loop fused
with the one over K. The tenth is made in what epilogue-warp-specialize leaves.
"""

# Kernels are written in the language of Triton, which the type checker does not know.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

from tilepass.frontends.triton import bridge
from tilepass.frontends.triton.modules import triton_ir
from tilepass.ir import engine
from tilepass.ir.engine import Module, Operation, ir

HOPPER = GPUTarget("cuda", 90, 32)
PROGRAMS = 132
FAULTS = (
    "wrong step",
    "wrong program",
    "short loop",
    "accumulator kept",
    "epilogue of the last tile",
    "last tile dropped",
    "no mask",
    "coordinates swapped",
    "stale descriptor",
)
RING_RESET = "ring reset at every tile"


@triton.jit
def matmul(
    a_desc, b_ptr, c_ptr, b_stride, c_stride, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    STEP: tl.constexpr, FAULT: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
    """C = A B^T; the descriptor of a tile's rows of B is made for each tile, C is stored by
    pointers."""
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    tiles, steps = tiles_m * tiles_n, tl.cdiv(K, BLOCK_K)
    first, by = tl.program_id(0), STEP
    if FAULT == "wrong step":
        by = 2 * STEP
    if FAULT == "wrong program":
        first = first // 2
    if FAULT == "short loop":
        steps = steps - 1
    if FAULT == "last tile dropped":
        tiles = tiles - 1
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    start = first // tl.maximum(tiles_m, 1) * BLOCK_N
    for tile in tl.range(first, tiles, by, flatten=FLATTEN):
        row, column = tile % tiles_m * BLOCK_M, tile // tiles_m * BLOCK_N
        if FAULT == "coordinates swapped":
            row, column = tile // tiles_n * BLOCK_M, tile % tiles_n * BLOCK_N
            row, column = column // BLOCK_N * BLOCK_M, row // BLOCK_M * BLOCK_N
        if FAULT != "accumulator kept":
            accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        origin = column
        if FAULT == "stale descriptor":
            origin = start
        b_desc = tl.make_tensor_descriptor(
            b_ptr + origin.to(tl.int64) * b_stride, [N - origin, tl.maximum(K, 1)], [b_stride, 1],
            [BLOCK_N, BLOCK_K],
        )  # fmt: skip
        for k in tl.range(steps):
            a = a_desc.load([row, k * BLOCK_K])
            b = b_desc.load([0, k * BLOCK_K])
            accumulator = tl.dot(a, b.T, accumulator)
        if FAULT == "epilogue of the last tile":
            before = tl.maximum(tile - STEP, 0)
            row, column = before % tiles_m * BLOCK_M, before // tiles_m * BLOCK_N
        rows, columns = (
            row + tl.arange(0, BLOCK_M)[:, None],
            column + tl.arange(0, BLOCK_N)[None, :],
        )
        inside = (rows < M) & (columns < N)
        if FAULT == "no mask":
            inside = rows < M
        where = rows.to(tl.int64) * c_stride + columns
        tl.store(c_ptr + where, accumulator.to(tl.bfloat16), mask=inside)


@triton.jit
def matmul_for_tma(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """C = A B^T, all by descriptors of the host: what epilogue-warp-specialize takes."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    for tile in tl.range(tl.program_id(0), tiles_m * tl.cdiv(N, BLOCK_N), STEP):
        row, column = tile % tiles_m * BLOCK_M, tile // tiles_m * BLOCK_N
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in tl.range(tl.cdiv(K, BLOCK_K)):
            a = a_desc.load([row, k * BLOCK_K])
            b = b_desc.load([column, k * BLOCK_K])
            accumulator = tl.dot(a, b.T, accumulator)
        c_desc.store([row, column], accumulator.to(tl.bfloat16))


def compiled(
    fault: str | None, block: tuple[int, int, int], last: str, programs: int = PROGRAMS
) -> Module:
    """The kernel with a fault at the end of `ttir` or `ttgir`, the loops fused in the latter."""
    signature = {
        "a_desc": f"tensordesc<bf16[{block[0]},{block[2]}]>",
        **dict.fromkeys(("b_ptr", "c_ptr"), "*bf16"),
        **dict.fromkeys(("b_stride", "c_stride", "M", "N", "K"), "i32"),
    }
    constants = {**_blocks(block), "STEP": programs, "FAULT": fault, "FLATTEN": last == "ttgir"}
    attributes = {(index,): [["tt.divisibility", 16]] for index in (1, 2, 3, 4)}
    return stages(ASTSource(matmul, signature, constants, attributes), last)


def _blocks(block: tuple[int, int, int]) -> dict[str, Any]:
    return dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), block, strict=True))


def source_for_tma(block: tuple[int, int, int]) -> Any:
    """The other kernel."""
    block_m, block_n, block_k = block
    signature = {
        "a_desc": f"tensordesc<bf16[{block_m},{block_k}]>",
        "b_desc": f"tensordesc<bf16[{block_n},{block_k}]>",
        "c_desc": f"tensordesc<bf16[{block_m},{block_n}]>",
        **dict.fromkeys(("M", "N", "K"), "i32"),
    }
    return ASTSource(matmul_for_tma, signature, {**_blocks(block), "STEP": PROGRAMS})


def stages(source: Any, last: str, num_warps: int = 8) -> Module:
    """A source compiled up to the end of a stage, under the pipeline in force."""
    backend = make_backend(HOPPER)
    options = backend.parse_options({"num_warps": num_warps, **source.parse_options()})
    table: dict[str, Any] = {}
    backend.add_stages(table, options, source.language)
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    backend.load_dialects(context)
    generate = backend.get_codegen_implementation(options)
    module = source.make_ir(HOPPER, options, generate, backend.get_module_map(), context)
    module.context = context
    metadata = {"hash": "", "target": HOPPER, **vars(options)}
    names = list(table)
    for name in names[: names.index(last) + 1]:
        module = table[name](module, metadata)
        module.context = context
    return bridge.to_engine(module)


def with_ring_reset(module: Module) -> Module:
    """A copy in which a partition begins every tile with the first slot of its ring again."""
    copy = engine.parse(engine.print_generic(module))
    for loop in engine.operations(copy):
        if loop.name == "scf.for" and _reset(loop):
            return copy
    raise ValueError("no loop carries the slots of a ring through another loop")


def _reset(loop: Operation) -> bool:
    """Let what an inner loop hands over begin anew in each trip of the outer one."""
    end = list(loop.regions[0].blocks[0].operations)[-1].operation
    found = False
    for position, value in enumerate(end.operands):
        owner: Any = value.owner
        if not isinstance(owner, ir.Block) and owner.name == "scf.for" and str(value.type) == "i32":
            end.operands[position] = loop.operands[3 + position]
            found = True
    return found
