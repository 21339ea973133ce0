"""`cute-zero-mma` below the level of modules: orders, tiles, structures, and the search."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import count, pairwise
from pathlib import Path

import pytest

from tilepass.core.errors import OptionError, TilepassError
from tilepass.core.pass_base import BinaryFigures, CompilerVersion, PassContext, Target
from tilepass.core.pipeline_spec import parse_pipeline
from tilepass.core.registry import instantiate
from tilepass.core.remarks import RemarkSink
from tilepass.ir import engine
from tilepass.ir.engine import Module
from tilepass.passes.cute.cute_zero_mma import CuteZeroMma
from tilepass.passes.cute.cute_zero_mma.choice import expectation, issue_stalls, parse_order
from tilepass.passes.cute.cute_zero_mma.rewrite import ORDERS, Rewrite, checkable, rewrite_all
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite, gemm_sites
from tilepass.passes.cute.cute_zero_mma.zeros import ZeroTiles, parse_tiles, remaining

GRID = (2, 8, 4)
TRIANGLE = ZeroTiles(b=frozenset((n, k) for n in range(8) for k in range(4) if 8 * n + 7 < 16 * k))

MODULE = """
!mma = !cute.tiled_mma<!cute_nvgpu.sm80.mma<16x8x16, elem_type = ({element}, {element}, f32) >, \
atom_layout_MNK = <"(8,1,1):(1,0,0)">, permutation_MNK = <"[128:1;64:1;64:1]">>
!d = !cute.memref<f32, rmem, align<32>, "((2,2),1,8):((1,2),0,4)">
!a = !cute.memref<{element}, rmem, align<32>, "((2,2,2),1,4):((1,2,4),0,8)">
!b = !cute.memref<{element}, rmem, align<8>, "((2,2),8,4):((1,2),16,4)">
func.func @three(%mma: !mma, %d: !d, %a: !a, %b: !b, %n: index) {{
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  scf.for %i = %n to %n step %n {{
    cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  }}
  cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)
  return
}}
"""


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_keeps_every_atom_and_the_order_of_each_sum(name: str) -> None:
    atoms = remaining(TRIANGLE, GRID)
    assert len(atoms) == 2 * 20
    ordered = ORDERS[name](atoms)
    assert sorted(ordered) == sorted(atoms)
    for m in range(GRID[0]):
        for n in range(GRID[1]):
            inner = [atom[2] for atom in ordered if atom[:2] == (m, n)]
            assert inner == sorted(inner)


def test_orders_differ() -> None:
    atoms = remaining(TRIANGLE, GRID)
    assert len({tuple(order(atoms)) for order in ORDERS.values()}) == len(ORDERS)


def test_the_longest_chain_starts_first_and_is_never_alone_before_the_end() -> None:
    ordered = ORDERS["longest-chain"](remaining(TRIANGLE, (1, 8, 4)))
    assert [atom[1] for atom in ordered[:6]] == [6, 7, 4, 5, 2, 3]
    last = [at for at, atom in enumerate(ordered) if atom[1] == 7]
    assert min(later - earlier for earlier, later in pairwise(last)) >= 5


def test_tiles_are_written_as_they_are_read() -> None:
    assert str(TRIANGLE) == "B n0-1k1 n0-3k2 n0-5k3"
    named = parse_tiles("n0-1k1 n0-3k2 n0-5k3")
    (site,) = [site for site in gemm_sites(_module("bf16"))[:1] if isinstance(site, GemmSite)]
    assert named.tiles_of(site) == TRIANGLE
    assert (
        str(ZeroTiles(a=frozenset({(0, 1)}), unread=frozenset({(0, 3)}))) == "A m0k1; unread m0n3"
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("upper-triangular", 12),
        ("lower-triangular", 12),
        ("block-diagonal:16", 24),
        ("block-diagonal:32", 16),
        ("band:0", 24),
        ("band:8", 18),
        ("band:64", 0),
    ],
)
def test_zero_tiles_of_structures(text: str, count: int) -> None:
    """B is 64 x 64 in tiles of 16 (k) x 8 (n): each count against a plain look at the elements."""
    structure = parse_tiles(text)
    site = gemm_sites(_module("bf16"))[0]
    assert isinstance(site, GemmSite)
    tiles = structure.tiles_of(site).b
    assert len(tiles) == count
    rules: dict[str, Callable[[int, int], bool]] = {
        "upper-triangular": lambda k, n: k > n,
        "lower-triangular": lambda k, n: k < n,
        "block-diagonal:16": lambda k, n: k // 16 != n // 16,
        "block-diagonal:32": lambda k, n: k // 32 != n // 32,
        "band:0": lambda k, n: k != n,
        "band:8": lambda k, n: abs(k - n) > 8,
        "band:64": lambda k, n: abs(k - n) > 64,
    }
    elements = {(n // 8, k // 16) for n in range(64) for k in range(64) if not rules[text](k, n)}
    assert tiles == {(n, k) for n in range(8) for k in range(4)} - elements


def test_a_structure_without_zero_tiles_is_the_reason() -> None:
    context = _context(None)
    options = CuteZeroMma.Options(mode="assume", tiles="band:64", sites="0")
    CuteZeroMma(options).run(_module("bf16"), context)
    (remark,) = context.remarks.remarks
    assert remark.message.endswith(": operand B is band, which leaves no whole tile zero")


def test_of_proven_tiles_those_that_nothing_reads_are_not_checked() -> None:
    site = gemm_sites(_module("bf16"))[0]
    assert isinstance(site, GemmSite)
    sink = RemarkSink("cute-zero-mma", lambda _: None)
    zeros = ZeroTiles(b=frozenset({(0, 1)}), unread=frozenset({(0, 3)}))
    assert checkable(site, zeros, sink) == ZeroTiles(b=zeros.b)
    assert checkable(site, TRIANGLE, sink) == TRIANGLE
    (remark,) = sink.remarks
    assert remark.message.endswith("not at who reads accumulator tiles: unread m0n3")


@pytest.mark.parametrize(
    ("unread", "said"),
    [
        ([(0, 3)], "4 of them since nothing reads 1 accumulator tile(s) afterwards"),
        ([(0, n) for n in range(8)], "32 of them since nothing reads the accumulator afterwards"),
    ],
)
def test_atoms_of_accumulators_that_nothing_reads_are_told(
    unread: list[tuple[int, int]], said: str
) -> None:
    module = _module("bf16")
    site = gemm_sites(module)[0]
    assert isinstance(site, GemmSite)
    zeros = ZeroTiles(unread=frozenset(unread))
    with module.context, engine.ir.Location.unknown():
        ((_, text),) = rewrite_all([Rewrite(site, zeros, "k")], drop_loads=False)
    count = said.partition(" ")[0]
    assert text == f"{site}: {count} of {site.atoms} atoms left out, order k; {said}"


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ("bf16", ["dense", "n4", "n4"]),
        ("f16", ["dense", "longest-chain", "longest-chain"]),
    ],
)
def test_expectation_by_place_and_type(element: str, expected: list[str]) -> None:
    sites = [site for site in gemm_sites(_module(element)) if isinstance(site, GemmSite)]
    assert [expectation(site, sites).value for site in sites] == expected


def test_expectation_of_the_second_gemm_in_a_loop() -> None:
    gemm = "    cute.gemm(%mma, %d, %a, %b, %d) : (!mma, !d, !a, !b, !d)\n"
    text = MODULE.format(element="f16").replace(gemm, gemm * 2)
    sites = [site for site in gemm_sites(engine.parse(text)) if isinstance(site, GemmSite)]
    expected = ["dense", "longest-chain", "n4", "longest-chain"]
    assert [expectation(site, sites).value for site in sites] == expected


def test_the_option_order() -> None:
    assert parse_order("search") == {None: "search"}
    assert parse_order("3:k+10:dense") == {3: "k", 10: "dense"}
    with pytest.raises(OptionError, match="unknown order 'auto'"):
        parse_order("3:auto")
    assert parse_order("k+3:n4") == {None: "k", 3: "n4"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k+n4", "two orders for all gemms: k and n4"),
        ("k+3:n4+k", "two orders for all gemms: k and k"),
        ("3:k+3:n4", "two orders for gemm 3: k and n4"),
        ("3:k+03:n4", "two orders for gemm 3: k and n4"),
    ],
)
def test_two_orders_for_the_same_gemms(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=f"^order='{re.escape(text)}': {message}$"):
        parse_order(text)


def test_stalls_of_sass() -> None:
    """Two instructions as nvdisasm 13 prints them: stalls of 2 and 10 cycles."""
    sass = """
        /*0150*/                   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;  /* 0x00000a00ff017624 */
                                                                            /* 0x000fc400078e00ff */
        /*0160*/                   S2R R0, SR_TID.X ;                       /* 0x0000000000007919 */
                                                                            /* 0x000e740000002100 */
    """
    assert issue_stalls(sass) == 2 + 10


class Trials:
    """A compiler that counts what it compiles. Each body in serpentine order stalls less."""

    def __init__(self) -> None:
        self.compiled = 0

    def __call__(self, module: Module) -> BinaryFigures:
        self.compiled += 1
        stalls = 15 - _serpentines_in(module)
        word = f"/* 0x{0:016x} */ /* 0x{stalls << 41:016x} */"
        return BinaryFigures(
            registers=168, local_loads=0, local_stores=0, mma_count=60, sass=word, ptx=""
        )


def _serpentines_in(module: Module) -> int:
    """How many bodies take the tiles of B with k = 1 by descending n."""
    coordinates = [
        str(each.results[0].type)
        for each in engine.operations(module)
        if each.name == "cute.make_coord"
    ]
    highest = [at for at, text in enumerate(coordinates) if "(_,7,1)" in text]
    lowest = [at for at, text in enumerate(coordinates) if "(_,2,1)" in text]
    return sum(high < low for high, low in zip(highest, lowest, strict=True))


_NUMBERS = count()


def _context(trial: Trials | None, level: int = 3) -> PassContext:
    sink = RemarkSink("cute-zero-mma", lambda _: None)
    version = CompilerVersion("nvidia-cutlass-dsl", (4, 8, 1))
    context = PassContext("cute-zero-mma", version, sink, Target("cuda", 90))
    context.trial = trial
    # The DSL leaves its files in another folder each time.
    context.compile_options = {"options": f"opt-level={level} dump-ptx-path='/{next(_NUMBERS)}'"}
    return context


def _search(trial: Trials | None, level: int = 3) -> list[str]:
    options = CuteZeroMma.Options(
        mode="assume", tiles="upper-triangular", sites="0+1+2", order="search"
    )
    context = _context(trial, level)
    CuteZeroMma(options).run(_module("bf16"), context)
    return [decision.value for decision in context.decisions]


def test_the_search_takes_what_stalls_least_and_is_paid_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEPASS_CACHE_DIR", str(tmp_path))
    trial = Trials()
    assert _search(trial) == ["k-serpentine"] * 3
    assert trial.compiled == 6
    again = Trials()
    assert _search(again) == ["k-serpentine"] * 3
    assert again.compiled == 0
    otherwise_compiled = Trials()
    _search(otherwise_compiled, level=2)
    assert otherwise_compiled.compiled == 6
    records = list(tmp_path.rglob("*.json"))
    assert [len(json.loads(record.read_text())) for record in records] == [6, 6]


def test_a_damaged_record_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEPASS_CACHE_DIR", str(tmp_path))
    _search(Trials())
    (record,) = tmp_path.rglob("*.json")
    record.write_text("[{}]")
    with pytest.raises(TilepassError, match="not a record of candidates; remove it"):
        _search(Trials())


def test_the_search_needs_a_compiler() -> None:
    with pytest.raises(TilepassError, match="order=search compiles candidates"):
        _search(None)


def test_the_proof_needs_the_lowering() -> None:
    with pytest.raises(TilepassError, match="the proof needs the CuTe compiler's lowering"):
        CuteZeroMma().run(_module("bf16"), _context(None))


def _module(element: str) -> Module:
    return engine.parse(MODULE.format(element=element))


def test_the_pass_as_text_is_read_as_the_same_pass() -> None:
    (item,) = parse_pipeline(str(CuteZeroMma()))
    assert instantiate(item).options == CuteZeroMma.Options()
