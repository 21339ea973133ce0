"""The zero-structure analysis: transfer functions against sampling, kernels against execution."""

from __future__ import annotations

import functools
import operator
import random
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.fuzz_zero_structure import campaign
from tests.fuzz_zero_structure.campaign import Outcome, check, run
from tests.fuzz_zero_structure.concrete_matrix import shuffle
from tests.fuzz_zero_structure.recipe import Recipe, zero_tiles
from tests.fuzz_zero_structure.tracing import lowered
from tilepass.analysis.zero_structure import Assumption, Limits, analyse, owners
from tilepass.analysis.zero_structure.effects import is_harmless
from tilepass.analysis.zero_structure.integers import binary, compare, convert, negated, refine
from tilepass.analysis.zero_structure.intervals import Interval, Intervals, limits_of
from tilepass.analysis.zero_structure.ops_gpu import source_lane
from tilepass.analysis.zero_structure.types import parse_type, size_of
from tilepass.analysis.zero_structure.values import Domain
from tilepass.analysis.zero_structure.zero_bytes import ALL, SIGNS, ZeroMaps
from tilepass.ir.cute import parse_layout
from tilepass.ir.engine import Module, parse, print_generic

pytestmark = pytest.mark.traces

PLAIN = Recipe(
    rows=32,
    columns=32,
    inner=16,
    other=32,
    warps=2,
    mask="lower",
    shift=0,
    trouble="none",
    operand="b",
    half="bf16",
    layout="row",
    staged="matrix",
    select=False,
)
# The gemm that the masked matrix goes into.
SITE = 1


@functools.cache
def plain_text() -> str:
    """The lowered module of PLAIN, to be edited."""
    return print_generic(lowered(PLAIN))


def edited(before: str, after: str) -> Module:
    """The lowered module of PLAIN with the first match of a pattern replaced."""
    text, count = re.subn(before, after, plain_text(), count=1)
    assert count == 1, before
    return parse(text)


def before_barrier(*lines: str) -> Module:
    """The lowered module of PLAIN with operations added before its first barrier."""
    return edited(r'( *)("nvvm\.barrier"\(\))', "\n".join((*lines, r"\1\2")))


# ---- whole kernels -------------------------------------------------------------------------------


def test_random_kernels_hold_no_false_claim() -> None:
    outcome = run(8, 5, lowered)
    assert outcome.kernels == 8
    assert outcome.false_claims == []
    assert outcome.claimed > 0
    assert outcome.share >= 0.8


def test_false_claim_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = analyse(lowered(PLAIN))

    def unsound(module: Module, *, strict: bool = False) -> object:
        return claims

    monkeypatch.setattr(campaign, "analyse", unsound)
    outcome = Outcome()
    spoiled = replace(PLAIN, trouble="late-store")
    check(spoiled, lowered(spoiled), outcome, seed=3)
    assert outcome.false_claims
    assert "late-store" in outcome.false_claims[0]


def test_masked_matrix_is_proven_with_evidence() -> None:
    structure = analyse(parse(plain_text()))
    site = structure.sites[SITE]
    assert (structure.threads, structure.failure, site.failure) == (64, None, None)
    assert (site.instruction, site.tiles) == ((16, 8, 16), (1, 4, 2))
    assert np.array_equal(site.b_zero, zero_tiles(PLAIN))
    assert [step.kind for step in site.evidence] == ["mask", "store", "load", "fragment"]
    assert [step.operation for step in site.evidence] == [
        "arith.cmpi",
        "nvvm.stmatrix",
        "nvvm.ldmatrix",
        "nvvm.mma.sync",
    ]
    assert Assumption.ZERO_TIMES_X not in site.assumptions
    assert Assumption.FINITE_OPERAND in site.assumptions


def test_zero_that_is_multiplied_needs_the_assumption() -> None:
    module = lowered(replace(PLAIN, trouble="rescaled"))
    site = analyse(module).sites[SITE]
    assert site.b_zero.any()
    assert Assumption.ZERO_TIMES_X in site.assumptions
    strictly = analyse(module, strict=True).sites[SITE]
    assert not strictly.b_zero.any()
    assert strictly.failure is not None
    assert "zero only if 0 * x is" in strictly.failure.reason
    assert "(arith.mulf)" in strictly.failure.reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"trouble": "added-constant"},
            "arith.addf makes something other than 0 of what is masked",
        ),
        (
            {"rows": 16, "columns": 16, "other": 16, "warps": 1},
            "the mask and what follows it leave a non-zero element in every tile",
        ),
    ],
)
def test_mask_that_does_not_help_is_told_from_what_undoes_it(
    changes: dict[str, Any], reason: str
) -> None:
    site = analyse(lowered(replace(PLAIN, **changes))).sites[SITE]
    assert not site.b_zero.any()
    assert site.failure is not None
    assert site.failure.reason == reason


def test_mask_that_depends_on_data_fails_there() -> None:
    site = analyse(lowered(replace(PLAIN, mask="by-data"))).sites[SITE]
    assert not site.b_zero.any()
    assert site.failure is not None
    assert "not decided by the thread index" in site.failure.reason
    # A is dense, and that is a reason by itself.
    assert site.of_a is not None
    assert "loaded from memory other than shared, past any mask" in site.of_a.reason
    assert site.why_nothing() == f"A: {site.of_a}; B: {site.failure}"
    assert replace(site, of_a=site.failure).why_nothing() == f"A and B: {site.failure}"


# ---- what takes the zeros away -------------------------------------------------------------------

_HALF = '%half = "arith.constant"() <{value = 5.000000e-01 : bf16}> : () -> bf16'
_STORE = '"llvm.store"(%half, %wild) <{ordering = 0 : i64}> : (bf16, KIND) -> ()'
_FOUND = '%wild = "llvm.inttoptr"(%number) : (i64) -> KIND'
_NUMBER = '%number = "llvm.load"(%first) <{ordering = 0 : i64}> : (!llvm.ptr<1>) -> i64'
_FIRST = '%first = "llvm.extractvalue"(%arg0) <{position = array<i64: 0>}>'
_TENSOR = " : (!llvm.struct<(ptr<1>, struct<(struct<()>, struct<()>)>)>) -> !llvm.ptr<1>"


def through_pointer(kind: str) -> Module:
    """A store through a pointer of a type that the kernel read from memory."""
    argument = re.search(r"\^bb0\(%(\w+): !llvm\.struct", plain_text())
    assert argument is not None
    lines = (_HALF, _FIRST + _TENSOR, _NUMBER, _FOUND, _STORE)
    return before_barrier(
        *(line.replace("%arg0", f"%{argument[1]}").replace("KIND", kind) for line in lines)
    )


@pytest.mark.parametrize("kind", ["!llvm.ptr", "!llvm.ptr<3>"])
def test_unknown_pointer_may_be_shared(kind: str) -> None:
    site = analyse(through_pointer(kind)).sites[SITE]
    assert not site.b_zero.any()
    assert site.failure is not None
    assert "may point to shared memory" in site.failure.reason


def test_unknown_global_pointer_is_not_shared() -> None:
    assert analyse(through_pointer("!llvm.ptr<1>")).sites[SITE].b_zero.any()


def assembly(text: str) -> Module:
    """PLAIN with inline assembly."""
    return before_barrier(
        f'"llvm.inline_asm"() <{{asm_dialect = 0 : i64, asm_string = "{text}", constraints = "", '
        "has_side_effects}> : () -> ()"
    )


def test_inline_assembly_clobbers_unless_it_is_known() -> None:
    site = analyse(assembly("st.shared.b32 [0], 1;")).sites[SITE]
    assert site.failure is not None
    assert "inline assembly" in site.failure.reason
    assert analyse(assembly("fence.proxy.async;")).sites[SITE].b_zero.any()


def test_unknown_operation_clobbers() -> None:
    site = analyse(before_barrier('"vendor.surprise"() : () -> ()')).sites[SITE]
    assert site.failure is not None
    assert "vendor.surprise may store" in site.failure.reason


_COMPUTES = (
    '"nvvm.ex2"(%real) : (f32) -> f32',
    '"nvvm.log2"(%real) : (f32) -> f32',
    '"nvvm.rsqrt"(%real) : (f32) -> f32',
    '"nvvm.sin"(%real) : (f32) -> f32',
    '"nvvm.cos"(%real) : (f32) -> f32',
    '"nvvm.fabs"(%real) : (f32) -> f32',
    '"nvvm.addf"(%real, %real) : (f32, f32) -> f32',
    '"nvvm.subf"(%real, %real) : (f32, f32) -> f32',
    '"nvvm.fma"(%real, %real, %real) <{rnd = #nvvm.fp_rnd_mode<rn>}> : (f32, f32, f32) -> f32',
)


def test_operations_that_only_compute_take_nothing_away() -> None:
    real = '%real = "arith.constant"() <{value = 5.000000e-01 : f32}> : () -> f32'
    named = [f"%computed{at} = {text}" for at, text in enumerate(_COMPUTES)]
    module = before_barrier(real, *named)
    assert np.array_equal(analyse(module).sites[SITE].b_zero, zero_tiles(PLAIN))


def test_block_size_that_is_no_constant_is_refused() -> None:
    text = re.sub(r"exact_block_dim = array<i64: 64, 1, 1>, ", "", plain_text())
    text = text.replace("nvvm.reqntid", "nvvm.maxntid")
    assert analyse(parse(text)).threads == 64  # From the launch.
    text, count = re.subn(r'("cuda\.launch_cfg\.create"\()%\w+', r"\1%arg4", text)
    assert count == 1  # By the kernel's i32 argument.
    structure = analyse(parse(text))
    assert structure.threads == 0
    assert structure.failure is not None
    assert "number of threads" in structure.failure.reason


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(steps=50), "more than 50 operations"),
        (Limits(rounds=1), "not stable after 1 runs"),
        (Limits(unroll=0, joins=1), "a loop is not stable"),
    ],
)
def test_limit_is_said(limits: Limits, reason: str) -> None:
    structure = analyse(lowered(replace(PLAIN, trouble="repeated")), limits=limits)
    assert structure.failure is not None
    assert reason in structure.failure.reason
    assert all(site.failure == structure.failure for site in structure.sites.values())


# ---- transfer functions --------------------------------------------------------------------------

_BINARY = (
    *("addi", "subi", "muli", "andi", "ori", "xori", "shli", "shrui", "shrsi", "divsi", "divui"),
    *("remsi", "remui", "floordivsi", "ceildivsi", "minsi", "maxsi", "minui", "maxui"),
)


def wrapped(value: int, width: int) -> int:
    """The signed value of the lowest bits; of an i1 0 or 1."""
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value


def exactly(name: str, one: int, other: int, width: int) -> int | None:
    """The result of an operation, None where it is undefined."""
    u, v = one & ((1 << width) - 1), other & ((1 << width) - 1)
    if width == 1 and (name.endswith("si") or "shr" in name):
        # A signed i1 is 0 or -1.
        one, other = -one, -other
    if name in ("shli", "shrui", "shrsi") and v >= width:
        return None
    if name.startswith(("div", "rem", "floor", "ceil")) and other == 0:
        return None
    quotient = abs(one) // max(1, abs(other)) * (1 if (one < 0) == (other < 0) else -1)
    results = {
        "addi": lambda: one + other,
        "subi": lambda: one - other,
        "muli": lambda: one * other,
        "andi": lambda: u & v,
        "ori": lambda: u | v,
        "xori": lambda: u ^ v,
        "shli": lambda: u << v,
        "shrui": lambda: u >> v,
        "shrsi": lambda: one >> v,
        "divsi": lambda: quotient,
        "divui": lambda: u // v,
        "remsi": lambda: one - quotient * other,
        "remui": lambda: u % v,
        "floordivsi": lambda: one // other,
        "ceildivsi": lambda: -(-one // other),
        "minsi": lambda: min(one, other),
        "maxsi": lambda: max(one, other),
        "minui": lambda: min(u, v),
        "maxui": lambda: max(u, v),
    }
    return wrapped(results[name](), width)


def random_interval(table: Intervals, width: int, source: random.Random) -> Interval:
    """Bounds of two threads: small, at an end of the type, or anything; often one value."""
    least, most = limits_of(width)
    bounds = list[tuple[int, int]]()
    for _ in range(2):
        middle = source.choice((0, 1, least, most, source.randint(least, most), 7, -3))
        middle = max(least, min(most, middle))
        reach = source.choice((0, 0, 1, 5, most // 2))
        bounds.append((max(least, middle - reach), max(least, min(most, middle + reach))))
    low, high = (np.array(column, np.int64) for column in zip(*bounds, strict=True))
    return table.of(low, high)


def samples(interval: Interval, thread: int, source: random.Random) -> list[int]:
    """Some values that an interval holds in a thread: its ends and others."""
    low = int(np.broadcast_to(interval.low, 2)[thread])
    high = int(np.broadcast_to(interval.high, 2)[thread])
    return [low, high, *(source.randint(low, high) for _ in range(3))]


def holds(interval: Interval, thread: int, value: int) -> bool:
    """Whether a value is inside in a thread."""
    low, high = np.broadcast_to(interval.low, 2), np.broadcast_to(interval.high, 2)
    return bool(low[thread] <= value <= high[thread])


@pytest.mark.parametrize("width", [1, 8, 32, 64])
@pytest.mark.parametrize("name", _BINARY)
def test_integer_results_are_inside(name: str, width: int) -> None:
    table, source = Intervals(), random.Random(f"{name} {width}")
    for _ in range(60):
        one, other = (random_interval(table, width, source) for _ in range(2))
        result = binary(table, name, one, other, width)
        for thread in range(2):
            for a in samples(one, thread, source):
                for b in samples(other, thread, source):
                    value = exactly(name, a, b, width)
                    assert value is None or holds(result, thread, value), (a, b, value)


@pytest.mark.parametrize("predicate", range(10))
def test_comparisons_and_what_they_say(predicate: int) -> None:
    table, source = Intervals(), random.Random(predicate)
    functions = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
    for _ in range(100):
        one, other = (random_interval(table, 32, source) for _ in range(2))
        result = compare(table, predicate, one, other)
        true = refine(table, predicate, one, other, 32)
        false = refine(table, negated(predicate), one, other, 32)
        for thread in range(2):
            for a in samples(one, thread, source):
                for b in samples(other, thread, source):
                    u, v = (a & 0xFFFFFFFF, b & 0xFFFFFFFF) if predicate > 5 else (a, b)
                    kind = predicate - 4 if predicate > 5 else predicate
                    truth = functions[kind](u, v)
                    assert holds(result, thread, int(truth))
                    first, second = true if truth else false
                    assert holds(first, thread, a)
                    assert holds(second, thread, b)


@pytest.mark.parametrize("name", ["extsi", "extui", "trunci", "index_cast", "index_castui"])
def test_conversions_are_inside(name: str) -> None:
    table, source = Intervals(), random.Random(name)
    pairs = [(64, 32), (32, 8), (32, 1)] if name == "trunci" else [(1, 32), (8, 32), (32, 64)]
    for before, after in pairs:
        for _ in range(50):
            value = random_interval(table, before, source)
            result = convert(table, name, value, before, after)
            for thread in range(2):
                for number in samples(value, thread, source):
                    signed = -number if before == 1 else number
                    bits = (
                        signed if name in ("extsi", "index_cast") else number & ((1 << before) - 1)
                    )
                    assert holds(result, thread, wrapped(bits, after))


def test_interval_that_may_wrap_is_any_value() -> None:
    table = Intervals()
    near = table.between((1 << 31) - 2, (1 << 31) - 1)
    result = binary(table, "addi", near, table.constant(1), 32)
    assert (result.least, result.most) == limits_of(32)
    known = binary(table, "addi", table.constant((1 << 31) - 1), table.constant(1), 32)
    assert (known.least, known.most) == (-(1 << 31), -(1 << 31))


def test_shared_address_is_known_up_to_its_alignment() -> None:
    table = Intervals()
    address = table.of(np.array([256], np.int64), np.array([256], np.int64), "smem@1024")
    low = binary(table, "andi", address, table.constant(896), 64)
    assert (low.base, low.least, low.most) == (None, 256, 256)
    swizzled = binary(table, "xori", address, table.constant(16), 64)
    assert (swizzled.base, swizzled.least) == ("smem@1024", 272)
    # A bit of the address itself.
    assert binary(table, "andi", address, table.constant(1024), 64) is table.top(64)


@pytest.mark.parametrize("kind", ["idx", "up", "down", "bfly"])
def test_shuffle_agrees_with_the_concrete_one(kind: str) -> None:
    source = np.random.default_rng(1)
    for clamp in (0, 31, 0x1807, 0x1C1F):
        operand = source.integers(0, 32, (32, 1)).astype(np.uint64)
        lanes = np.arange(32, dtype=np.uint64)[:, None]
        clamps = np.full((32, 1), clamp, np.uint64)
        expected = shuffle(kind, [lanes, lanes, operand, clamps])[:, 0].astype(int)
        number = operand[:, 0].astype(np.int64)
        found = source_lane(kind, np.arange(32), number, np.full(32, clamp, np.int64))
        assert found.tolist() == expected.tolist()


def test_accumulator_tile_is_read_where_nothing_replaced_it() -> None:
    domain = Domain(32)
    lanes = np.arange(32)
    everyone, low, high = (domain.mask(active) for active in (lanes >= 0, lanes < 8, lanes >= 8))
    tag = (7, 16)
    whole = owners.stored(None, 4, (0, 2), ((tag, everyone),))
    assert whole is not None
    replaced = owners.stored(whole, 4, (0, 2), owners.NOBODY)
    assert replaced is not None
    masked = domain.intervals.exact((lanes < 8).astype(np.int64))
    merged = owners.pick(domain, masked, replaced, whole)
    reads = owners.AccumulatorReads()
    owners.note_load(reads, merged, (0, 2), None, low)
    owners.note_load(reads, merged, (2, 4), None, high)
    owners.note_load(reads, merged, (0, 2), tag, high)
    assert reads.read == set()
    owners.note_load(reads, merged, (1, 2), None, high)
    assert reads.read == {tag}


def test_accumulators_that_are_stored_are_read() -> None:
    structure = analyse(parse(plain_text()))
    assert [site.unread.shape for site in structure.sites.values()] == [(1, 4), (1, 4)]
    assert not any(site.unread.any() for site in structure.sites.values())


def test_accumulator_that_goes_nowhere_is_unread() -> None:
    # The stores of the second gemm's accumulator to global memory, and the loads before them.
    text = re.sub(
        r'\n *"llvm\.store"\(%\w+, %\w+\)[^\n]*!llvm\.ptr<1>\) -> \(\)[^\n]*', "", plain_text()
    )
    assert text != plain_text()
    text = without_unused_loads(text)
    structure = analyse(parse(text))
    assert structure.sites[SITE].unread.all()
    assert not structure.sites[0].unread.any()


def without_unused_loads(text: str) -> str:
    """A module's text without loads of registers that nothing uses."""
    lines = text.splitlines()
    names = re.compile(r'^ *(%\w+) = "llvm\.load".*!llvm\.ptr\) ->')
    return "\n".join(
        line
        for line in lines
        if not (match := names.match(line)) or len(re.findall(match[1] + r"\b", text)) > 1
    )


def test_negative_zero_is_a_zero_of_its_own_width_only() -> None:
    maps = ZeroMaps(32)
    halves = maps.together([maps.from_code(np.array([SIGNS], np.uint8), 2)] * 2)
    assert int(halves.code[0]) == 0  # 0x80008000 is not an fp32 zero.
    assert int(maps.part(halves, 2, 2).code[0]) == SIGNS
    assert int(maps.zero(4).code[0]) == ALL


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("mov.u32 $0, %smid;", True),
        ("{ .reg .pred p; setp.ne.b32 p, $1, 0; @p bar.sync 1; }", True),
        ("tensormap.replace.tile.global_dim.global.b1024.b32 [$0], 1, $1;", True),
        ("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [$0], 1, $1;", False),
        ("cvt.rn.bf16x2.f32 $0, $1, $2;", True),
        ("@p st.shared.b32 [$0], $1;", False),
        ("st.b32 [$0], $1;", False),
        ("LOOP: atom.shared.add.u32 $0, [$1], 1;", False),
        ("mov.u32 $0, 1;\\0Ared.async.shared::cluster.add.u32 [$1], 1, [$2];", False),
        ("cp.async.bulk.shared::cluster.global [$0], [$1], 16, [$2];", False),
        ("tcgen05.wait::ld.sync.aligned;", True),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [$0], 32;", False),
    ],
)
def test_harmless_assembly(text: str, harmless: bool) -> None:
    assert is_harmless(text) is harmless


def test_layouts_and_types() -> None:
    layout = parse_layout("((2,2),8,(4,2)):((1,2),16,(4,128))")
    assert layout is not None
    values, rows, columns = layout.modes
    assert (values.size, rows.size, columns.size) == (4, 8, 8)
    assert [columns.offset(index) for index in range(6)] == [0, 4, 8, 12, 128, 132]
    assert parse_layout("S<3,4,3> o 0 o (8,8):(8,1)") is None
    assert parse_layout("(?,8):(8,1)") is None
    assert size_of(parse_type("!llvm.struct<(i8, array<3 x i32>, ptr<3>)>")) == 20
    assert size_of(parse_type("!vendor.thing")) is None
