"""The exactness of the bridge on the installed versions, on modules that strain it."""

from __future__ import annotations

from collections.abc import Container, Sequence

from tilepass.core.anchor import EVERY, Anchor
from tilepass.core.errors import TilepassError, nearest
from tilepass.core.options import describe_options
from tilepass.core.registry import find_pass, never_used, pass_names
from tilepass.core.versions import triton_version
from tilepass.doctor.machine import Finding

_ENCODINGS = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], \
order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
"""
_MODULE = (
    'module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, '
    'ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {\n'
)

_DESCRIPTOR = """\
tt.func @f(%d: TYPE, %i: i32) -> tensor<16x32xf16> {
  %0 = tt.descriptor_load %d[%i, %i] : TYPE -> tensor<16x32xf16>
  tt.return %0 : tensor<16x32xf16>
}
"""

# Each module strains one thing that a trip through text could lose.
MODULES = {
    "loops and values carried": """\
tt.func public @f(%ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %at = tt.addptr %ptr, %i : !tt.ptr<f32>, i32
    %x = tt.load %at {tt.latency = 2 : i32} : !tt.ptr<f32>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  } {tt.flatten, tt.num_stages = 3 : i32}
  tt.return %sum : f32
}
""",
    "special numbers": """\
tt.func @f() -> tensor<8xf32> {
  %inf = arith.constant dense<0xFF800000> : tensor<8xf32>
  %nan = arith.constant dense<0x7FC00001> : tensor<8xf32>
  %tiny = arith.constant dense<1.17549435E-38> : tensor<8xf32>
  %0 = arith.addf %inf, %nan fastmath<nnan> : tensor<8xf32>
  %1 = arith.addf %0, %tiny : tensor<8xf32>
  tt.return %1 : tensor<8xf32>
}
""",
    "encodings and aliases": _ENCODINGS
    + _MODULE
    + """\
tt.func @f(%x: tensor<64x64xf16, #blocked>) -> tensor<64x64xf16, #blocked> {
  %buffer = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> \
!ttg.memdesc<64x64xf16, #shared, #smem>
  %y = ttg.local_load %buffer : !ttg.memdesc<64x64xf16, #shared, #smem> -> \
tensor<64x64xf16, #blocked>
  tt.return %y : tensor<64x64xf16, #blocked>
}
}
""",
    "texts that look like aliases": """\
tt.func @f(%x: i32) -> i32 {
  tt.print " #blocked !tt.ptr \\22quoted\\22 : " {hex = false, isSigned = array<i32: 1>} : %x : i32
  tt.return %x : i32
}
""",
    "regions and reductions": """\
tt.func @f(%x: tensor<32xf32>) -> f32 {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %1 = arith.maximumf %a, %b : f32
    tt.reduce.return %1 : f32
  }) : (tensor<32xf32>) -> f32
  tt.return %0 : f32
}
""",
    "locations": """\
#file = loc("kernel.py":12:4)
#outer = loc("kernel.py":30:8)
tt.func @f(%x: i32 loc("x"(#file))) -> i32 {
  %0 = arith.addi %x, %x : i32 loc(callsite(#file at #outer))
  %1 = arith.muli %0, %x : i32 loc(fused["a.py":1:2, #file])
  tt.return %1 : i32 loc(unknown)
} loc("kernel.py":10:0)
""",
}


def check_round_trip() -> Sequence[Finding]:
    """Whether modules come back from the engine exactly as they went in."""
    modules = {**MODULES, "tensor descriptors": _DESCRIPTOR.replace("TYPE", _descriptor_type())}
    wrong = [problem for name, text in modules.items() if (problem := _trip(name, text))]
    found = f"{len(modules) - len(wrong)} of {len(modules)} modules come back unchanged"
    advice = "; ".join(wrong)
    return [Finding("round trip", "FAIL" if wrong else "ok", found, advice)]


def _descriptor_type() -> str:
    """As the installed Triton spells it."""
    flat = triton_version().version >= (3, 8)
    return "!tt.tensordesc<16x32xf16>" if flat else "!tt.tensordesc<tensor<16x32xf16>>"


def check_passes() -> Sequence[Finding]:
    """Whether every pass that is installed can be imported, and its place exists."""
    from tilepass.frontends.triton.builtin_passes import discover

    broken = never_used()
    for name in pass_names():
        try:
            anchor = find_pass(name).anchor
            describe_options(find_pass(name))
        except TilepassError as error:
            broken.append(f"{name}: {error}")
            continue
        if _is_nowhere(anchor, discover()):
            broken.append(
                f"{name}: {triton_version()} has no pass for its place '{anchor}'"
                f"{nearest(anchor.where, discover())}"
            )
    found = f"{len(pass_names())} of tilepass and of installed packages"
    return [Finding("passes", "FAIL" if broken else "ok", found, "; ".join(broken))]


def _is_nowhere(anchor: Anchor, triton_passes: Container[str]) -> bool:
    beside_a_pass = anchor.position in ("before", "after") and anchor.where != EVERY
    return beside_a_pass and not anchor.optional and anchor.where not in triton_passes


def _trip(name: str, text: str) -> str | None:
    """What is wrong with the module after the trip; None if nothing is."""
    from tilepass.frontends.triton import bridge

    try:
        module = bridge.load(text, f"{name}.mlir")
        before = module.str()
        after = bridge.from_engine(bridge.to_engine(module), module.context).str()
    except TilepassError as error:
        return f"{name}: {error}"
    if before == after:
        return None
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    changed = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return f"{name}: '{changed[0].strip()}' became '{changed[1].strip()}'"
