"""Persistent nests in TTGIR, small enough to be executed, and passes run on them."""

from __future__ import annotations

from dataclasses import dataclass

from tests.corpus.pass_context import make_context
from tests.protocol_support import module_of
from tilepass.core.pipeline_spec import parse_pipeline
from tilepass.core.registry import instantiate
from tilepass.core.versions import triton_version
from tilepass.frontends.triton import bridge
from tilepass.ir import engine
from tilepass.ir.checked_run import checked_run
from tilepass.ir.engine import Module
from tilepass.ir.layouts import NvmmaShared, TensorDescType, TensorType, element_bits

_BIAS = """
  %r = tt.make_range {end = [n] : i32, start = 0 : i32} : tensor<[n]xi32, #line>
  %cs = tt.splat %column : i32 -> tensor<[n]xi32, #line>
  %ci = arith.addi %cs, %r : tensor<[n]xi32, #line>
  %ns = tt.splat %N : i32 -> tensor<[n]xi32, #line>
  %in = arith.cmpi slt, %ci, %ns : tensor<[n]xi32, #line>
  %zb = arith.constant dense<0.0> : tensor<[n]xbf16, #line>
  %bp = tt.splat %bias : !tt.ptr<bf16> -> tensor<[n]x!tt.ptr<bf16>, #line>
  %bq = tt.addptr %bp, %ci : tensor<[n]x!tt.ptr<bf16>, #line>, tensor<[n]xi32, #line>
  %bl = tt.load %bq, %in, %zb : tensor<[n]x!tt.ptr<bf16>, #line>
  %b1 = ttg.convert_layout %bl : tensor<[n]xbf16, #line> -> tensor<[n]xbf16, #columns>
  %b2 = arith.extf %b1 : tensor<[n]xbf16, #columns> to tensor<[n]xf32, #columns>
  %b3 = tt.expand_dims %b2 {axis = 0 : i32} : tensor<[n]xf32, #columns> -> tensor<1x[n]xf32, #plane>
  %b4 = tt.broadcast %b3 : tensor<1x[n]xf32, #plane> -> tensor<[m]x[n]xf32, #plane>
  %b5 = ttg.convert_layout %b4 : tensor<[m]x[n]xf32, #plane> -> tensor<[m]x[n]xf32, #mma>
  %sum = arith.addf %acc, %b5 : tensor<[m]x[n]xf32, #mma>"""

_GELU = (
    _BIAS.replace("%sum", "%biased")
    + """
  %root = arith.constant dense<0.70710677> : tensor<[m]x[n]xf32, #mma>
  %e0 = arith.mulf %biased, %root : tensor<[m]x[n]xf32, #mma>
  %e1 = math.erf %e0 : tensor<[m]x[n]xf32, #mma>
  %unit = arith.constant dense<1.0> : tensor<[m]x[n]xf32, #mma>
  %e2 = arith.addf %e1, %unit : tensor<[m]x[n]xf32, #mma>
  %half = arith.constant dense<0.5> : tensor<[m]x[n]xf32, #mma>
  %e3 = arith.mulf %biased, %half : tensor<[m]x[n]xf32, #mma>
  %sum = arith.mulf %e3, %e2 : tensor<[m]x[n]xf32, #mma>"""
)

_RESIDUAL = """
  %rt = tt.descriptor_load %r_desc[%row, %column] : [c] -> tensor<[m]x[n]xbf16, #tile>
  %rc = ttg.convert_layout %rt : tensor<[m]x[n]xbf16, #tile> -> tensor<[m]x[n]xbf16, #mma>
  %rf = arith.extf %rc : tensor<[m]x[n]xbf16, #mma> to tensor<[m]x[n]xf32, #mma>
  %sum = arith.addf %acc, %rf : tensor<[m]x[n]xf32, #mma>"""

_ROW = """
  %rt = tt.descriptor_load %r_desc[%c0, %column] : [r] -> tensor<1x[n]x[e], #row>
  %rf = [widen]
  %rc = ttg.convert_layout %rf : tensor<1x[n]xf32, #row> -> tensor<1x[n]xf32, #mma>
  %rb = tt.broadcast %rc : tensor<1x[n]xf32, #mma> -> tensor<[m]x[n]xf32, #mma>
  %sum = arith.addf %acc, %rb : tensor<[m]x[n]xf32, #mma>"""
_WIDEN = {
    "f32": "arith.bitcast %rt : tensor<1x[n]xf32, #row> to tensor<1x[n]xf32, #row>",
    "f8E4M3FN": "tt.fp_to_fp %rt : tensor<1x[n]xf8E4M3FN, #row> -> tensor<1x[n]xf32, #row>",
}
_EXTEND = "arith.extf %rt : tensor<1x[n]x[e], #row> to tensor<1x[n]xf32, #row>"

_NONE = """
  %one = arith.constant dense<1.0> : tensor<[m]x[n]xf32, #mma>
  %sum = arith.mulf %acc, %one : tensor<[m]x[n]xf32, #mma>"""

_STORE = """
  %out = arith.truncf %sum : tensor<[m]x[n]xf32, #mma> to tensor<[m]x[n]xbf16, #mma>
  %flat = ttg.convert_layout %out : tensor<[m]x[n]xbf16, #mma> -> tensor<[m]x[n]xbf16, #tile>
  tt.descriptor_store %c_desc[%row, %column], %flat : [c], tensor<[m]x[n]xbf16, #tile>"""

_IN_PLACE = _RESIDUAL.replace("%r_desc", "%c_desc") + _STORE

_TWO_STORES = (
    """
  %pre = arith.truncf %acc : tensor<[m]x[n]xf32, #mma> to tensor<[m]x[n]xbf16, #mma>
  %prec = ttg.convert_layout %pre : tensor<[m]x[n]xbf16, #mma> -> tensor<[m]x[n]xbf16, #tile>
  tt.descriptor_store %r_desc[%row, %column], %prec : [c], tensor<[m]x[n]xbf16, #tile>
  %two = arith.constant dense<2.0> : tensor<[m]x[n]xf32, #mma>
  %sum = arith.mulf %acc, %two : tensor<[m]x[n]xf32, #mma>"""
    + _STORE
)

_POINTERS = """
  %out = arith.truncf %acc : tensor<[m]x[n]xf32, #mma> to tensor<[m]x[n]xbf16, #mma>
  %flat = ttg.convert_layout %out : tensor<[m]x[n]xbf16, #mma> -> tensor<[m]x[n]xbf16, #tile>
  %ri = tt.make_range {end = [m] : i32, start = 0 : i32} : tensor<[m]xi32, #tile_rows>
  %rs = tt.splat %row : i32 -> tensor<[m]xi32, #tile_rows>
  %rr = arith.addi %rs, %ri : tensor<[m]xi32, #tile_rows>
  %ms = tt.splat %M : i32 -> tensor<[m]xi32, #tile_rows>
  %mi = arith.cmpi slt, %rr, %ms : tensor<[m]xi32, #tile_rows>
  %mj = tt.expand_dims %mi {axis = 1 : i32} : tensor<[m]xi1, #tile_rows> -> tensor<[m]x1xi1, #tile>
  %mk = tt.broadcast %mj : tensor<[m]x1xi1, #tile> -> tensor<[m]x[n]xi1, #tile>
  %r2 = tt.expand_dims %rr {axis = 1 : i32} : tensor<[m]xi32, #tile_rows> -> tensor<[m]x1xi32, #tile>
  %st = tt.splat %N : i32 -> tensor<[m]x1xi32, #tile>
  %ro = arith.muli %r2, %st : tensor<[m]x1xi32, #tile>
  %rb = tt.broadcast %ro : tensor<[m]x1xi32, #tile> -> tensor<[m]x[n]xi32, #tile>
  %ca = tt.make_range {end = [n] : i32, start = 0 : i32} : tensor<[n]xi32, #tile_columns>
  %cb = tt.splat %column : i32 -> tensor<[n]xi32, #tile_columns>
  %cc = arith.addi %ca, %cb : tensor<[n]xi32, #tile_columns>
  %c2 = tt.expand_dims %cc {axis = 0 : i32} : tensor<[n]xi32, #tile_columns> -> tensor<1x[n]xi32, #tile>
  %c3 = tt.broadcast %c2 : tensor<1x[n]xi32, #tile> -> tensor<[m]x[n]xi32, #tile>
  %of = arith.addi %rb, %c3 : tensor<[m]x[n]xi32, #tile>
  %pb = tt.splat %bias : !tt.ptr<bf16> -> tensor<[m]x[n]x!tt.ptr<bf16>, #tile>
  %pp = tt.addptr %pb, %of : tensor<[m]x[n]x!tt.ptr<bf16>, #tile>, tensor<[m]x[n]xi32, #tile>
  tt.store %pp, %flat, %mk : tensor<[m]x[n]x!tt.ptr<bf16>, #tile>"""  # noqa: E501

EPILOGUES = {
    "none": _NONE + _STORE,
    "bias": _BIAS + _STORE,
    "gelu": _GELU + _STORE,
    "residual": _RESIDUAL + _STORE,
    "row": _ROW + _STORE,
    "in-place": _IN_PLACE,
    "two-stores": _TWO_STORES,
    "pointers": _POINTERS,
}


@dataclass(frozen=True)
class Nest:
    """C = A B^T, tiles of m x n, steps of 64, bf16, and what happens to a tile afterwards; `row` is
    the element type of the row that the epilogue of that name adds."""

    epilogue: str = "none"
    m: int = 128
    n: int = 64
    warps: int = 8
    row: str = "bf16"

    def text(self) -> str:
        """TTGIR as it is behind triton-loop-aware-cse, spelled for the installed Triton."""
        m, n, warps = self.m, self.n, self.warps
        names = {
            "a": _descriptor(m, 64),
            "b": _descriptor(n, 64),
            "c": _descriptor(m, n),
            "r": _descriptor(1, n, self.row) if self.epilogue == "row" else _descriptor(m, n),
            "widen": _WIDEN.get(self.row, _EXTEND),
            "e": self.row,
            "m": m,
            "n": n,
            "w": warps,
        }
        text = _KERNEL.replace("[epilogue]", EPILOGUES[self.epilogue])
        for name in ("widen", *names):
            text = text.replace(f"[{name}]", str(names[name]))
        return text

    def module(self) -> Module:
        """The text parsed by Triton."""
        return module_of(self.text())

    def sizes(self, steps: int, tiles: int = 3, across: int = 1) -> str:
        """Shapes for the simulator: `tiles` x `across` tiles, cut off on the right if the store
        masks that."""
        rows, columns, depth = self.m * tiles, self.n * across, 64 * steps
        if self.epilogue != "pointers":
            columns -= 8
        arrays = {
            "a_desc": (rows, depth),
            "b_desc": (columns, depth),
            "c_desc": (rows, columns),
            "r_desc": (1 if self.epilogue == "row" else rows, columns),
            "bias": (rows, columns),
        }
        shapes = [f"{name}={x}x{y}" for name, (x, y) in arrays.items()]
        return ",".join(["64", f"M={rows}", f"N={columns}", f"K={depth}", *shapes])


def _descriptor(rows: int, columns: int, element: str = "bf16") -> str:
    bits = element_bits(element)
    row = columns * bits // 8
    width = min(128, row) if row >= 32 and rows >= 8 else 0
    encoding = NvmmaShared(swizzling_byte_width=width, transposed=False, element_bit_width=bits)
    block = TensorType((rows, columns), element, encoding)
    return TensorDescType(block).spell(triton_version().version)


_KERNEL = """
#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [[w]], order = [0]}>
#load = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [[w], 1], order = [1, 0]}>
#tile = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [[w], 1], order = [1, 0]}>
#tile_rows = #ttg.slice<{dim = 1, parent = #tile}>
#tile_columns = #ttg.slice<{dim = 0, parent = #tile}>
#row = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, [w]], order = [1, 0]}>
#plane = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [1, 32], warpsPerCTA = [[w], 1], order = [1, 0]}>
#columns = #ttg.slice<{dim = 0, parent = #plane}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [[w], 1], instrShape = [16, [n], 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#turned = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = [w] : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @matmul(%a_desc: [a] loc("a_desc"), %b_desc: [b] loc("b_desc"), %c_desc: [c] loc("c_desc"), %r_desc: [r] loc("r_desc"), %bias: !tt.ptr<bf16> loc("bias"), %M: i32 loc("M"), %N: i32 loc("N"), %K: i32 loc("K")) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %bm = arith.constant [m] : i32
  %bn = arith.constant [n] : i32
  %bk = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<[m]x[n]xf32, #mma>
  %m1 = arith.ceildivsi %M, %bm : i32
  %n1 = arith.ceildivsi %N, %bn : i32
  %tiles = arith.muli %m1, %n1 : i32
  %steps = arith.ceildivsi %K, %bk : i32
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  scf.for %t = %pid to %tiles step %programs : i32 {
  %ti = arith.remsi %t, %m1 : i32
  %tj = arith.divsi %t, %m1 : i32
  %row = arith.muli %ti, %bm : i32
  %column = arith.muli %tj, %bn : i32
  %acc = scf.for %k = %c0 to %steps step %c1 iter_args(%s = %zero) -> (tensor<[m]x[n]xf32, #mma>) : i32 {
    %kk = arith.muli %k, %bk : i32
    %al = tt.descriptor_load %a_desc[%row, %kk] : [a] -> tensor<[m]x64xbf16, #load>
    %as = ttg.local_alloc %al : (tensor<[m]x64xbf16, #load>) -> !ttg.memdesc<[m]x64xbf16, #shared, #smem>
    %bl0 = tt.descriptor_load %b_desc[%column, %kk] : [b] -> tensor<[n]x64xbf16, #load>
    %bs = ttg.local_alloc %bl0 : (tensor<[n]x64xbf16, #load>) -> !ttg.memdesc<[n]x64xbf16, #shared, #smem>
    %bt = ttg.memdesc_trans %bs {order = array<i32: 1, 0>} : !ttg.memdesc<[n]x64xbf16, #shared, #smem> -> !ttg.memdesc<64x[n]xbf16, #turned, #smem>
    %d = ttng.warp_group_dot %as, %bt, %s {inputPrecision = 0 : i32} : !ttg.memdesc<[m]x64xbf16, #shared, #smem> * !ttg.memdesc<64x[n]xbf16, #turned, #smem> -> tensor<[m]x[n]xf32, #mma>
    scf.yield %d : tensor<[m]x[n]xf32, #mma>
  }[epilogue]
  }
  tt.return
}
}
"""  # noqa: E501


def specialized(nest: Nest, options: str) -> Module:
    """The nest's module after `epilogue-warp-specialize{options}`, as Triton reads it back."""
    return run_pass(nest.module(), f"epilogue-warp-specialize{{{options}}}")


def run_pass(module: Module, pipeline: str) -> Module:
    """One pass run on a module; raises PassFailure where it refuses."""
    (item,) = parse_pipeline(pipeline)
    a_pass = instantiate(item)
    problem = checked_run(a_pass, module, make_context(a_pass))
    assert problem is None, problem
    return bridge.to_engine(bridge.load(engine.print_generic(module), "specialized"))
