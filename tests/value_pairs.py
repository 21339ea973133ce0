"""Pairs of kernels that differ, each in one way: what a comparison on default inputs tells apart.

`scripts/value_pairs.py` prints them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata

from tilepass.core.errors import TilepassError
from tilepass.sim.equivalence import not_compared
from tilepass.testing import NotEquivalentError, assert_equivalent, program_of

_POLICY = "#tt.cache_policy<cache_modifier = cg, eviction_policy = evict_normal>"
_CACHED = (
    f"{{cachePolicy = {_POLICY}}} "
    if metadata.version("triton").startswith("3.9")
    else "cacheModifier = cg "
)

# Elements of two arrays, in tiles of 64, of which one program computes one.
_ELEMENTWISE = """
tt.func @kernel(%x_ptr: !tt.ptr<{source}> loc("x_ptr"), %y_ptr: !tt.ptr<{source}> loc("y_ptr"),
    %out: !tt.ptr<{target}> loc("out"), %n: i32 loc("n"), %k: i32 loc("k"), %a: f32 loc("a")) {{
  %i = tt.make_range {{start = 0 : i32, end = 64 : i32}} : tensor<64xi32>
  %pid = tt.get_program_id x : i32
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %base = tt.splat %first : i32 -> tensor<64xi32>
  %at = arith.addi %base, %i : tensor<64xi32>
  %limit = tt.splat %n : i32 -> tensor<64xi32>
  %mask = arith.cmpi slt, %at, %limit : tensor<64xi32>
  %x_0 = tt.splat %x_ptr : !tt.ptr<{source}> -> tensor<64x!tt.ptr<{source}>>
  %x_at = tt.addptr %x_0, %at : tensor<64x!tt.ptr<{source}>>, tensor<64xi32>
  %x = tt.load %x_at, %mask : tensor<64x!tt.ptr<{source}>>
  %y_0 = tt.splat %y_ptr : !tt.ptr<{source}> -> tensor<64x!tt.ptr<{source}>>
  %y_at = tt.addptr %y_0, %at : tensor<64x!tt.ptr<{source}>>, tensor<64xi32>
  %y = tt.load %y_at, %mask : tensor<64x!tt.ptr<{source}>>
  {body}
  %o_0 = tt.splat %out : !tt.ptr<{target}> -> tensor<64x!tt.ptr<{target}>>
  %o_at = tt.addptr %o_0, %at : tensor<64x!tt.ptr<{target}>>, tensor<64xi32>
  tt.store %o_at, %r, %mask : tensor<64x!tt.ptr<{target}>>
  tt.return
}}
"""

# A tile [16, 32] of a matrix with both strides, cut off at M and N.
_TILE = """
tt.func @kernel(%x_ptr: !tt.ptr<f32> loc("x_ptr"), %out: !tt.ptr<f32> loc("out"), %m: i32 loc("M"),
    %n: i32 loc("N"), %s0: i32 loc("s0"), %s1: i32 loc("s1")) {{
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c2 = arith.constant 2 : i32
  %x = tt.get_program_id x : i32
  %y = tt.get_program_id y : i32
  %x2 = arith.remsi %x, %c2 : i32
  %y2 = arith.remsi %y, %c2 : i32
  %r0 = arith.muli {px}, %c16 : i32
  %r1 = tt.make_range {{start = 0 : i32, end = 16 : i32}} : tensor<16xi32>
  %r2 = tt.splat %r0 : i32 -> tensor<16xi32>
  %r3 = arith.addi %r2, %r1 : tensor<16xi32>
  %rows = tt.expand_dims %r3 {{axis = 1 : i32}} : tensor<16xi32> -> tensor<16x1xi32>
  %d0 = arith.muli {py}, %c32 : i32
  %d1 = tt.make_range {{start = 0 : i32, end = 32 : i32}} : tensor<32xi32>
  %d2 = tt.splat %d0 : i32 -> tensor<32xi32>
  %d3 = arith.addi %d2, %d1 : tensor<32xi32>
  %columns = tt.expand_dims %d3 {{axis = 0 : i32}} : tensor<32xi32> -> tensor<1x32xi32>
  %mm = tt.splat {m} : i32 -> tensor<16x1xi32>
  %m0 = arith.cmpi {less}, %rows, %mm : tensor<16x1xi32>
  %m1 = tt.broadcast %m0 : tensor<16x1xi1> -> tensor<16x32xi1>
  %nn = tt.splat {n} : i32 -> tensor<1x32xi32>
  %n0 = arith.cmpi slt, %columns, %nn : tensor<1x32xi32>
  %n1 = tt.broadcast %n0 : tensor<1x32xi1> -> tensor<16x32xi1>
  %mask = arith.andi %m1, %n1 : tensor<16x32xi1>
  %sx = tt.splat {s0} : i32 -> tensor<16x1xi32>
  %f0 = arith.muli %rows, %sx : tensor<16x1xi32>
  %f1 = tt.broadcast %f0 : tensor<16x1xi32> -> tensor<16x32xi32>
  %c1 = tt.broadcast %columns : tensor<1x32xi32> -> tensor<16x32xi32>
  %at = arith.addi %f1, %c1 : tensor<16x32xi32>
  %p0 = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<16x32x!tt.ptr<f32>>
  %p = tt.addptr %p0, %at : tensor<16x32x!tt.ptr<f32>>, tensor<16x32xi32>
  %zero = arith.constant dense<{other}> : tensor<16x32xf32>
  %v = tt.load %p, %mask, %zero : tensor<16x32x!tt.ptr<f32>>
  %so = tt.splat %s1 : i32 -> tensor<16x1xi32>
  %g0 = arith.muli %rows, %so : tensor<16x1xi32>
  %g1 = tt.broadcast %g0 : tensor<16x1xi32> -> tensor<16x32xi32>
  %og = arith.addi %g1, %c1 : tensor<16x32xi32>
  %q0 = tt.splat %out : !tt.ptr<f32> -> tensor<16x32x!tt.ptr<f32>>
  %q = tt.addptr %q0, %og : tensor<16x32x!tt.ptr<f32>>, tensor<16x32xi32>
  tt.store %q, %v, {stored} : tensor<16x32x!tt.ptr<f32>>
  tt.return
}}
"""
_TILE_PARTS = {
    "px": "%x", "py": "%y", "m": "%m", "n": "%n", "less": "slt", "s0": "%s0", "other": "0.0",
    "stored": "%mask",
}  # fmt: skip

# One number for each program.
_SCALAR = """
tt.func @kernel(%out: !tt.ptr<i32> loc("out"), %total: !tt.ptr<i32> loc("total"),
    %x_ptr: !tt.ptr<i32> loc("x_ptr"), %m: i32 loc("M"), %n: i32 loc("N")) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c16 = arith.constant 16 : i32
  %true = arith.constant true
  %pid = tt.get_program_id x : i32
  %x_at = tt.addptr %x_ptr, %pid : !tt.ptr<i32>, i32
  %at = tt.addptr %out, %pid : !tt.ptr<i32>, i32
  {body}
  tt.return
}}
"""

# A product [16, 16] of [16, 32] and [32, 16], added to what there is.
_DOT = """
tt.func @kernel(%a_ptr: !tt.ptr<{type}> loc("a_ptr"), %b_ptr: !tt.ptr<{type}> loc("b_ptr"),
    %out: !tt.ptr<{sum}> loc("out")) {{
  %r = tt.make_range {{start = 0 : i32, end = 512 : i32}} : tensor<512xi32>
  %ra = tt.reshape %r : tensor<512xi32> -> tensor<16x32xi32>
  %rb = tt.reshape %r : tensor<512xi32> -> tensor<32x16xi32>
  %s = tt.make_range {{start = 0 : i32, end = 256 : i32}} : tensor<256xi32>
  %rc = tt.reshape %s : tensor<256xi32> -> tensor<16x16xi32>
  %a0 = tt.splat %a_ptr : !tt.ptr<{type}> -> tensor<16x32x!tt.ptr<{type}>>
  %a1 = tt.addptr %a0, %ra : tensor<16x32x!tt.ptr<{type}>>, tensor<16x32xi32>
  %a = tt.load %a1 : tensor<16x32x!tt.ptr<{type}>>
  %b0 = tt.splat %b_ptr : !tt.ptr<{type}> -> tensor<32x16x!tt.ptr<{type}>>
  %b1 = tt.addptr %b0, %rb : tensor<32x16x!tt.ptr<{type}>>, tensor<32x16xi32>
  %b = tt.load %b1 : tensor<32x16x!tt.ptr<{type}>>
  %o0 = tt.splat %out : !tt.ptr<{sum}> -> tensor<16x16x!tt.ptr<{sum}>>
  %o1 = tt.addptr %o0, %rc : tensor<16x16x!tt.ptr<{sum}>>, tensor<16x16xi32>
  %c = tt.load %o1 : tensor<16x16x!tt.ptr<{sum}>>
  {body}
  tt.store %o1, %d : tensor<16x16x!tt.ptr<{sum}>>
  tt.return
}}
"""


@dataclass(frozen=True)
class Pair:
    """Two kernels. `found` is false for what no comparison of arrays can show."""

    name: str
    before: str
    after: str
    found: bool = True

    def difference(self) -> str | None:
        """What a comparison on default inputs says, None if the two are the same to it."""
        try:
            assert_equivalent(program_of(self.before), program_of(self.after))
        except NotEquivalentError as error:
            return str(error)
        except TilepassError as error:
            if "in the second kernel" not in str(error):
                raise
            return str(error)
        return None

    def not_compared(self) -> list[str]:
        """What the check says that it does not compare."""
        return not_compared(program_of(self.before), program_of(self.after))


def pairs() -> list[Pair]:
    """All of them."""
    return [*_integers(), *_floats(), *_conversions(), *_guards(), *_places(), *_dots(),
            *_programs()]  # fmt: skip


def equal_pairs() -> list[Pair]:
    """Kernels that compute the same in two ways, on whatever values."""
    zero = "%zero = arith.constant dense<{}> : T\n"
    swapped = [
        _unary(f"{name} with its operands swapped", source, f"%r = {name} %x, %y : T",
               f"%r = {name} %y, %x : T")
        for source in ("f32", "f16", "bf16")
        for name in ("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf",
                     "arith.addf", "arith.mulf")
    ]  # fmt: skip
    return [
        *swapped,
        _unary("x + -0 / x", "f32", zero.format("-0.0") + "%r = arith.addf %x, %zero : T",
               zero.format("0.0") + "%r = arith.subf %x, %zero : T"),
        _unary("x / 8 / x * 0.125", "f32", zero.format("8.0") + "%r = arith.divf %x, %zero : T",
               zero.format("0.125") + "%r = arith.mulf %x, %zero : T"),
        _unary("x + x / 2 * x", "f32", "%r = arith.addf %x, %x : T",
               zero.format("2.0") + "%r = arith.mulf %x, %zero : T"),
        _unary("-x / x with its sign bit flipped", "f32", "%r = arith.negf %x : T",
               "%b = tt.bitcast %x : T -> tensor<64xi32>\n"
               "%s = arith.constant dense<-2147483648> : tensor<64xi32>\n"
               "%f = arith.xori %b, %s : tensor<64xi32>\n"
               "%r = tt.bitcast %f : tensor<64xi32> -> T"),
        _unary("not x < y / unordered or x >= y", "f32",
               "%c = arith.cmpf olt, %x, %y : T\n %t = arith.constant dense<true> : tensor<64xi1>\n"
               "%d = arith.xori %c, %t : tensor<64xi1>\n"
               "%r = arith.extui %d : tensor<64xi1> to tensor<64xi8>",
               "%d = arith.cmpf uge, %x, %y : T\n"
               "%r = arith.extui %d : tensor<64xi1> to tensor<64xi8>", "i8"),
        _unary("x / 8 / x >> 3, unsigned", "i32",
               zero.format("8") + "%r = arith.divui %x, %zero : T",
               zero.format("3") + "%r = arith.shrui %x, %zero : T"),
        _unary("x * 8 / x << 3", "i32", zero.format("8") + "%r = arith.muli %x, %zero : T",
               zero.format("3") + "%r = arith.shli %x, %zero : T"),
    ]  # fmt: skip


def _elementwise(
    name: str, source: str, before: str, after: str, target: str | None = None
) -> Pair:
    one, other = (
        _ELEMENTWISE.format(source=source, target=target or source, body=body)
        for body in (before, after)
    )
    return Pair(name, one, other)


def _operations(source: str, pairs_of_names: str) -> list[Pair]:
    """`%r = A %x, %y` against `%r = B %x, %y`, all of one type."""
    found: list[Pair] = []
    for entry in pairs_of_names.split():
        one, other = entry.split("/")
        bodies = [f"%r = {each} %x, %y : tensor<64x{source}>" for each in (one, other)]
        found.append(_elementwise(f"{one} / {other} of {source}", source, *bodies))
    return found


def _compared(source: str, operation: str, predicates: str) -> list[Pair]:
    found: list[Pair] = []
    for entry in predicates.split():
        one, other = entry.split("/")
        bodies = [
            f"%c = {operation} {each}, %x, %y : tensor<64x{source}>\n"
            "  %r = arith.extui %c : tensor<64xi1> to tensor<64xi8>"
            for each in (one, other)
        ]
        found.append(_elementwise(f"{operation} {one} / {other}", source, *bodies, target="i8"))
    return found


def _unary(name: str, source: str, before: str, after: str, target: str | None = None) -> Pair:
    """Texts in which T stands for the type of a tensor of the source."""
    bodies = [text.replace("T", f"tensor<64x{source}>") for text in (before, after)]
    return _elementwise(name, source, *bodies, target=target)


def _integers() -> list[Pair]:
    one = "%one = arith.constant dense<1> : T\n"
    eight = "%eight = arith.constant dense<8> : T\n"
    return [
        *_operations("i32", "arith.divsi/arith.divui arith.remsi/arith.remui "
                     "arith.shrsi/arith.shrui arith.maxsi/arith.maxui arith.minsi/arith.minui "
                     "arith.divsi/arith.floordivsi"),
        *_operations("i8", "arith.maxsi/arith.maxui arith.divsi/arith.divui"),
        *_compared("i32", "arith.cmpi", "slt/ult sgt/ugt sle/slt"),
        _unary("x >> 1 / x / 2", "i32", f"{one} %r = arith.shrsi %x, %one : T",
               "%two = arith.constant dense<2> : T\n %r = arith.divsi %x, %two : T"),
        _unary("x & 7 / x % 8", "i32",
               "%seven = arith.constant dense<7> : T\n %r = arith.andi %x, %seven : T",
               f"{eight} %r = arith.remsi %x, %eight : T"),
        _unary("(x << 8) >> 8 / x", "i32",
               f"{eight} %s = arith.shli %x, %eight : T\n %r = arith.shrsi %s, %eight : T",
               "%zero = arith.constant dense<0> : T\n %r = arith.addi %x, %zero : T"),
        _unary("a sum that wraps at 16 / at 32 bits", "i32",
               "%xs = arith.trunci %x : T to tensor<64xi16>\n"
               "%ys = arith.trunci %y : T to tensor<64xi16>\n"
               "%s = arith.addi %xs, %ys : tensor<64xi16>\n"
               "%r = arith.extsi %s : tensor<64xi16> to T",
               "%r = arith.addi %x, %y : T"),
        _unary("a product that wraps at 32 / at 64 bits", "i32",
               "%s = arith.muli %x, %y : T\n %r = arith.extsi %s : T to tensor<64xi64>",
               "%xl = arith.extsi %x : T to tensor<64xi64>\n"
               "%yl = arith.extsi %y : T to tensor<64xi64>\n"
               "%r = arith.muli %xl, %yl : tensor<64xi64>", "i64"),
        _unary("extsi / extui", "i8", "%r = arith.extsi %x : T to tensor<64xi32>",
               "%r = arith.extui %x : T to tensor<64xi32>", "i32"),
        _unary("|x| / x", "i32", "%r = math.absi %x : T",
               "%zero = arith.constant dense<0> : T\n %r = arith.addi %x, %zero : T"),
        _unary("max(x, 0) / x", "i32",
               "%zero = arith.constant dense<0> : T\n %r = arith.maxsi %x, %zero : T",
               "%zero = arith.constant dense<0> : T\n %r = arith.addi %x, %zero : T"),
        _unary("k for |k|, a number that is not an index", "i32",
               "%ks = tt.splat %k : i32 -> T\n %r = arith.addi %x, %ks : T",
               "%ka = math.absi %k : i32\n %ks = tt.splat %ka : i32 -> T\n"
               "%r = arith.addi %x, %ks : T"),
    ]  # fmt: skip


def _floats() -> list[Pair]:
    zero = "%zero = arith.constant dense<0.0> : T\n"
    times_a = "%as = tt.splat %b : f32 -> T\n %r = arith.mulf %x, %as : T"
    return [
        *_operations("f32", "arith.maximumf/arith.maxnumf arith.minimumf/arith.minnumf"),
        *_operations("f16", "arith.maximumf/arith.maxnumf"),
        *_compared("f32", "arith.cmpf", "olt/ult oeq/ueq one/une oge/uge"),
        _unary("x - x / 0", "f32", "%r = arith.subf %x, %x : T",
               f"{zero} %r = arith.mulf %zero, %zero : T"),
        _unary("x * 0 / 0", "f32", f"{zero} %r = arith.mulf %x, %zero : T",
               f"{zero} %r = arith.addf %zero, %zero : T"),
        _unary("x + 0 / x", "f32", f"{zero} %r = arith.addf %x, %zero : T",
               f"{zero} %r = arith.subf %x, %zero : T"),
        _unary("0 - x / -x", "f32", f"{zero} %r = arith.subf %zero, %x : T",
               "%r = arith.negf %x : T"),
        _unary("x / x / 1", "f32", "%r = arith.divf %x, %x : T",
               "%one = arith.constant dense<1.0> : T\n %r = arith.mulf %one, %one : T"),
        _unary("sqrt(x * x) / |x|", "f32", "%s = arith.mulf %x, %x : T\n %r = math.sqrt %s : T",
               "%r = math.absf %x : T"),
        _unary("x > y ? x : y / max(x, y)", "f32",
               "%c = arith.cmpf ogt, %x, %y : T\n %r = arith.select %c, %x, %y : tensor<64xi1>, T",
               "%r = arith.maxnumf %x, %y : T"),
        _unary("x < 0 ? 0 : x / max(x, 0)", "f32",
               f"{zero} %c = arith.cmpf olt, %x, %zero : T\n"
               "%r = arith.select %c, %zero, %x : tensor<64xi1>, T",
               f"{zero} %r = arith.maxnumf %x, %zero : T"),
        _unary("x * y + y / fma", "f32", "%s = arith.mulf %x, %y : T\n %r = arith.addf %s, %y : T",
               "%r = math.fma %x, %y, %y : T"),
        _unary("a / |a|, a number", "f32", times_a.replace("%b", "%a"),
               "%b = math.absf %a : f32\n" + times_a),
        _unary("min(a, 1) / a, a number", "f32",
               "%one = arith.constant 1.0 : f32\n %b = arith.minnumf %a, %one : f32\n" + times_a,
               times_a.replace("%b", "%a")),
    ]  # fmt: skip


def _clamped(least: str, most: str) -> str:
    return (
        f"%least = arith.constant dense<{least}> : T\n %most = arith.constant dense<{most}> : T\n"
        "%s0 = arith.maxnumf %x, %least : T\n %s = arith.minnumf %s0, %most : T\n"
    )


def _conversions() -> list[Pair]:
    to_half = "arith.truncf {} : T to tensor<64xf16>"
    return [
        _unary("a clamp before fptosi dropped", "f32",
               _clamped("-128.0", "127.0") + "%r = arith.fptosi %s : T to tensor<64xi8>",
               "%r = arith.fptosi %x : T to tensor<64xi8>", "i8"),
        _unary("a clamp before f16 dropped", "f32",
               _clamped("-65504.0", "65504.0") + f"%r = {to_half.format('%s')}",
               f"%r = {to_half.format('%x')}", "f16"),
        _unary("a clamp to 240 before f8E4M3FN dropped", "f32",
               _clamped("-240.0", "240.0")
               + "%r = tt.fp_to_fp %s, rounding = rtne : T -> tensor<64xf8E4M3FN>",
               "%r = tt.fp_to_fp %x, rounding = rtne : T -> tensor<64xf8E4M3FN>", "f8E4M3FN"),
        _unary("f8E4M3FN / f8E5M2 on the way", "f32",
               "%s = tt.fp_to_fp %x, rounding = rtne : T -> tensor<64xf8E4M3FN>\n"
               "%r = tt.fp_to_fp %s : tensor<64xf8E4M3FN> -> T",
               "%s = tt.fp_to_fp %x, rounding = rtne : T -> tensor<64xf8E5M2>\n"
               "%r = tt.fp_to_fp %s : tensor<64xf8E5M2> -> T"),
        _unary("bf16 / f16 on the way, of whole numbers below 128", "f32",
               _clamped("-127.0", "1.0e30") + "%q = math.floor %s : T\n"
               "%h = arith.truncf %q : T to tensor<64xbf16>\n"
               "%r = arith.extf %h : tensor<64xbf16> to T",
               _clamped("-127.0", "1.0e30") + "%q = math.floor %s : T\n"
               "%h = arith.truncf %q : T to tensor<64xf16>\n"
               "%r = arith.extf %h : tensor<64xf16> to T"),
        _unary("rounding to nearest / toward zero", "f32",
               "%r = tt.fp_to_fp %x, rounding = rtne : T -> tensor<64xbf16>",
               "%r = tt.fp_to_fp %x, rounding = rtz : T -> tensor<64xbf16>", "bf16"),
        _unary("sitofp / uitofp", "i32", "%r = arith.sitofp %x : T to tensor<64xf32>",
               "%r = arith.uitofp %x : T to tensor<64xf32>", "f32"),
        _unary("an integer through f32 / as it is", "i32",
               "%f = arith.sitofp %x : T to tensor<64xf32>\n"
               "%r = arith.fptosi %f : tensor<64xf32> to tensor<64xi64>",
               "%r = arith.extsi %x : T to tensor<64xi64>", "i64"),
    ]  # fmt: skip


def _guards() -> list[Pair]:
    finite = (
        "%inf = arith.constant dense<0x7F800000> : T\n %size = math.absf %x : T\n"
        "%c = arith.cmpf olt, %size, %inf : T\n"
    )
    zero = "%zero = arith.constant dense<0.0> : T\n"
    return [
        _unary("an isfinite guard dropped", "f32",
               finite + zero + "%r = arith.select %c, %x, %zero : tensor<64xi1>, T",
               zero + "%r = arith.subf %x, %zero : T"),
        _unary("an isnan guard dropped", "f32",
               zero + "%c = arith.cmpf uno, %x, %x : T\n"
               "%r = arith.select %c, %zero, %x : tensor<64xi1>, T",
               zero + "%r = arith.subf %x, %zero : T"),
        _unary("x == x / true", "f32", "%c = arith.cmpf oeq, %x, %x : T\n"
               "%r = arith.extui %c : tensor<64xi1> to tensor<64xi8>",
               "%r = arith.constant dense<1> : tensor<64xi8>", "i8"),
        _unary("a denormal flushed to zero", "f32",
               zero + "%tiny = arith.constant dense<1.17549435E-38> : T\n"
               "%size = math.absf %x : T\n %c = arith.cmpf olt, %size, %tiny : T\n"
               "%r = arith.select %c, %zero, %x : tensor<64xi1>, T",
               zero + "%r = arith.subf %x, %zero : T"),
        _unary("a quotient guarded against zero", "i32",
               "%zero = arith.constant dense<0> : T\n %one = arith.constant dense<1> : T\n"
               "%c = arith.cmpi eq, %y, %zero : T\n"
               "%d = arith.select %c, %one, %y : tensor<64xi1>, T\n %r = arith.divui %x, %d : T",
               "%r = arith.divui %x, %y : T"),
    ]  # fmt: skip


def _tile(name: str, **after: str) -> Pair:
    changed = {**_TILE_PARTS, **after}
    return Pair(name, _TILE.format(**_TILE_PARTS), _TILE.format(**changed))


def _places() -> list[Pair]:
    return [
        _tile("M for N in a mask", n="%m"),
        _tile("N for M in a mask", m="%n"),
        _tile("s1 for s0", s0="%s1"),
        _tile("a row too many", less="sle"),
        _tile("pid % 2 for pid", px="%x2"),
        _tile("pid % 2 for pid in the second dimension", py="%y2"),
        _tile("another value for what is masked off", other="1.0", stored="%m1"),
        _tile("program x for y", py="%x"),
    ]


def _dot(name: str, before: str, after: str, type_: str = "f32", sums: str = "f32") -> Pair:
    types = f"tensor<16x32x{type_}> * tensor<32x16x{type_}> -> tensor<16x16x{sums}>"
    one, other = (
        _DOT.format(type=type_, sum=sums, body=body.replace("DOT", types))
        for body in (before, after)
    )
    return Pair(name, one, other)


def _dots() -> list[Pair]:
    zero = "%z = arith.constant dense<0.0> : tensor<16x16xf32>\n"
    return [
        _dot("an accumulator dropped", "%d = tt.dot %a, %b, %c : DOT",
             zero + "%d = tt.dot %a, %b, %z : DOT"),
        _dot("tf32 / f32", "%d = tt.dot %a, %b, %c, inputPrecision = tf32 : DOT",
             "%d = tt.dot %a, %b, %c : DOT"),
        _dot("a sum added behind / in the accumulator",
             zero + "%p = tt.dot %a, %b, %z : DOT\n %d = arith.addf %p, %c : tensor<16x16xf32>",
             "%d = tt.dot %a, %b, %c : DOT", "f16"),
        _dot("0 * product / 0",
             zero + "%p = tt.dot %a, %b, %z : DOT\n %d = arith.mulf %p, %z : tensor<16x16xf32>",
             zero + "%d = arith.mulf %z, %z : tensor<16x16xf32>", "f16"),
        _dot("a NaN guard behind a product dropped",
             zero + "%p = tt.dot %a, %b, %c : DOT\n"
             "%n = arith.cmpf uno, %p, %p : tensor<16x16xf32>\n"
             "%d = arith.select %n, %z, %p : tensor<16x16xi1>, tensor<16x16xf32>",
             "%d = tt.dot %a, %b, %c : DOT", "f16"),
    ]  # fmt: skip


def _scalar(name: str, before: str, after: str, found: bool = True) -> Pair:
    return Pair(name, *(_SCALAR.format(body=body) for body in (before, after)), found=found)


def _programs() -> list[Pair]:
    counted = ("%old = tt.load %total : !tt.ptr<i32>\n %new = arith.addi %old, %c1 : i32\n"
               "tt.store %total, %new : !tt.ptr<i32>")  # fmt: skip
    atomic = (
        "%old = tt.atomic_rmw add, {}, gpu, %total, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32"
    )
    stored = "tt.store %at, {} : !tt.ptr<i32>"
    loop = (
        "%s = scf.for %i = {} to {} step {} iter_args(%sum = %c0) -> (i32) : i32 {{\n"
        "%next = arith.addi %sum, %i : i32\n scf.yield %next : i32 }}\n" + stored.format("%s")
    )
    quotient = "%q = {} %n, %c16 : i32\n" + stored.format("%q")
    loaded = "%v = tt.load %x_at {}: !tt.ptr<i32>\n" + stored.format("%v")
    printed = 'tt.print "n" {hex = false, isSigned = array<i32: 1>} : %n : i32\n'
    asserted = 'tt.assert %true, "true" : i1\n'
    return [
        _scalar("an atomic update / a load and a store", atomic.format("acq_rel"), counted),
        _scalar("an atomic sum / maximum", atomic.format("acq_rel"),
                atomic.format("acq_rel").replace("rmw add", "rmw max")),
        _scalar("each program its own element / all one", stored.format("%pid"),
                "tt.store %out, %pid : !tt.ptr<i32>"),
        _scalar("what the program before has written", stored.format("%pid"),
                stored.format("%pid") + "\n%nx = arith.addi %pid, %c1 : i32\n"
                "%nat = tt.addptr %out, %nx : !tt.ptr<i32>, i32\n"
                "%v = tt.load %nat : !tt.ptr<i32>\n"
                "%one = arith.minsi %v, %c0 : i32\n%two = arith.maxsi %one, %c0 : i32\n"
                "tt.store %total, %two : !tt.ptr<i32>"),
        _scalar("M for N", stored.format("%n"), stored.format("%m")),
        _scalar("programs / 2", "%p = tt.get_num_programs x : i32\n" + stored.format("%p"),
                stored.format("%c2")),
        _scalar("a loop to N / N - 1", loop.format("%c0", "%n", "%c1"),
                "%n1 = arith.subi %n, %c1 : i32\n" + loop.format("%c0", "%n1", "%c1")),
        _scalar("a loop to N / M", loop.format("%c0", "%n", "%c1"),
                loop.format("%c0", "%m", "%c1")),
        _scalar("steps of 16 rounded up / down", quotient.format("arith.ceildivsi"),
                quotient.format("arith.divsi")),
        _scalar("the start of a loop", loop.format("%pid", "%n", "%c1"),
                loop.format("%c0", "%n", "%c1")),
        _scalar("a print dropped", printed + stored.format("%n"), stored.format("%n"), found=False),
        _scalar("an assertion dropped", asserted + stored.format("%n"), stored.format("%n"),
                found=False),
        _scalar("an atomic update's order of memory", atomic.format("acq_rel"),
                atomic.format("relaxed"), found=False),
        _scalar("volatile dropped", loaded.format("{isVolatile = true} "), loaded.format(""),
                found=False),
        _scalar("a load before / behind a store through another argument",
                "%v = tt.load %x_at : !tt.ptr<i32>\n" + stored.format("%c1")
                + "\ntt.store %total, %c1 : !tt.ptr<i32>\ntt.store %at, %v : !tt.ptr<i32>",
                stored.format("%c1") + "\ntt.store %total, %c1 : !tt.ptr<i32>\n"
                "%v = tt.load %x_at : !tt.ptr<i32>\ntt.store %at, %v : !tt.ptr<i32>",
                found=False),
        _scalar("a cache modifier", loaded.format(_CACHED), loaded.format(""), found=False),
    ]  # fmt: skip
