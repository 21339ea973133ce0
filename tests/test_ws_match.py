"""epilogue-warp-specialize: each reason to leave a nest alone, at the operation to blame."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, cast

import pytest

from tilepass.core.pass_base import Target
from tilepass.core.refusal import Refusal
from tilepass.ir.engine import Module, Operation, ir, operations, parse
from tilepass.ir.loops import LoopNest, defining_operation, nest_of, outermost_loops
from tilepass.passes.triton.epilogue_warp_specialize import order
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest
from tilepass.passes.triton.epilogue_warp_specialize.match import (
    Epilogue,
    candidate_loops,
    match,
    match_epilogue,
)
from tilepass.passes.triton.epilogue_warp_specialize.match_main_loop import (
    MainLoop,
    invariant_operations,
    match_main_loop,
    varying_descriptor,
)
from tilepass.passes.triton.epilogue_warp_specialize.order import (
    may_read,
    place_of,
    read_behind_store,
)

matching: Any = import_module("tilepass.passes.triton.epilogue_warp_specialize.match")

_SHARED = ("#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, "
           "elementBitWidth = 16}>")  # fmt: skip
_KINDS = {
    "DA": f"!tt.tensordesc<128x64xf16, {_SHARED}>",
    "DC": f"!tt.tensordesc<128x32xf16, {_SHARED}>",
    "MA": f"!ttg.memdesc<128x64xf16, {_SHARED}, #ttg.shared_memory>",
    "MB": f"!ttg.memdesc<64x128xf16, {_SHARED}, #ttg.shared_memory>",
    "MF": f"!ttg.memdesc<128x64xf8E5M2, {_SHARED}, #ttg.shared_memory>",
    "MI": f"!ttg.memdesc<128x64xi8, {_SHARED}, #ttg.shared_memory>",
    "TA": "tensor<128x64xf16>",
    "TC": "tensor<128x32xf16>",
    "TT": "tensor<128x128xf32>",
    "PP": "!tt.ptr<f16>",
}
_KERNEL = """
"tt.func"() ({
^bb0(%da: DA, %db: DA, %dc: DC, %dd: DC, %p: PP, %q: PP, %n: i32, %flag: i1, %at: index):
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %cm1 = arith.constant -1 : i32
  %zero = arith.constant dense<0.0> : TT
  scf.for %t = %c0 to %n step %c1 iter_args(%u = %c0) -> (i32) : i32 {
    BEFORE
    %acc = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (TT) : i32 {
      SCALARS
      LOADS
      VIEWS
      DOT
      scf.yield %d : TT
    }
    AFTER
    scf.yield %u : i32
  }
  "tt.return"() : () -> ()
}) : () -> ()
"""


def load(name: str, descriptor: str = "%da", kinds: str = "DA", result: str = "TA",
         at: str = "%t") -> str:  # fmt: skip
    return (f'%{name} = "tt.descriptor_load"({descriptor}, {at}, %c0) {{tag = "{name}"}} : '
            f"({kinds}, i32, i32) -> {result}")  # fmt: skip


def alloc(name: str, value: str, kind: str = "TA", result: str = "MA") -> str:
    return f'%{name} = "ttg.local_alloc"({value}) {{tag = "{name}"}} : ({kind}) -> {result}'


def turned(name: str, value: str, kind: str = "MA", how: str = "ttg.memdesc_trans",
           result: str = "MB") -> str:  # fmt: skip
    return f'%{name} = "{how}"({value}) {{tag = "{name}"}} : ({kind}) -> {result}'


def dot(name: str = "d", a: str = "%as", b: str = "%bt", start: str = "%s", kind: str = "MA",
        more: str = "") -> str:  # fmt: skip
    return (f'%{name} = "ttng.warp_group_dot"({a}, {b}, {start}) {{{more}tag = "{name}"}} : '
            f"({kind}, MB, TT) -> TT")  # fmt: skip


def store(name: str = "st", descriptor: str = "%dc", value: str = "%out", kind: str = "TC",
          at: str = "%t") -> str:  # fmt: skip
    return (f'"tt.descriptor_store"({descriptor}, {value}, {at}, %c0) {{tag = "{name}"}} : '
            f"(DC, {kind}, i32, i32) -> ()")  # fmt: skip


def op(name: str, operation: str, *values: str, returned: str = "") -> str:
    """Operands with their types: `%a: TA`."""
    pairs = [value.partition(": ") for value in values]
    result = f"%{name} = " if returned else ""
    return (f'{result}"{operation}"({", ".join(each[0] for each in pairs)}) {{tag = "{name}"}} : '
            f"({', '.join(each[2] for each in pairs)}) -> {returned or '()'}")  # fmt: skip


def lines(*parts: str) -> str:
    return "\n      ".join(parts)


_OUT = op("out", "tt.reshape", "%acc: TT", returned="TC")
_LOADS = lines(load("al"), load("bl", "%db"))
_VIEWS = lines(alloc("as", "%al"), alloc("bs", "%bl"), turned("bt", "%bs"))
_DEFAULT = {
    "BEFORE": "", "SCALARS": "", "LOADS": _LOADS, "VIEWS": _VIEWS, "DOT": dot(),
    "AFTER": lines(_OUT, store()), "ATTRIBUTES": '"ttg.num-warps" = 8 : i32',
}  # fmt: skip


def module_of(changes: Sequence[tuple[str, str]] = (), **parts: str) -> Module:
    text = f"module attributes {{ATTRIBUTES}} {{{_KERNEL}}}"
    for name, part in (_DEFAULT | parts).items():
        text = text.replace(name, part)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    for name, kind in _KINDS.items():
        text = text.replace(name, kind)
    return parse(text)


def nest(changes: Sequence[tuple[str, str]] = (), **parts: str) -> tuple[Module, LoopNest]:
    module = module_of(changes, **parts)
    found = nest_of(outermost_loops(module)[0])
    assert found is not None
    return module, found


def tag(operation: Operation) -> str:
    named = operation.attributes.get("tag")
    return named.value if isinstance(named, ir.StringAttr) else operation.name


def tags(among: Sequence[Operation]) -> list[str]:
    return [tag(each) for each in among]


def named(module: Module, name: str) -> Operation:
    return next(each for each in operations(module) if tag(each) == name)


# ---- the inner loop ------------------------------------------------------------------------------


def carrying(start: str, kind: str, yields: str = "%v") -> tuple[tuple[str, str], ...]:
    """The inner loop carries %v beside the accumulator."""
    return (
        ("%acc = scf.for", "%acc:2 = scf.for"),
        ("iter_args(%s = %zero) -> (TT)", f"iter_args(%s = %zero, %v = {start}) -> (TT, {kind})"),
        ("scf.yield %d : TT", f"scf.yield %d, {yields} : TT, {kind}"),
        ('"tt.reshape"(%acc)', '"tt.reshape"(%acc#0)'),
    )


def test_main_loop_taken_apart() -> None:
    module, found = nest(
        carrying("%c0", "i32", "%w"),
        SCALARS="%w = arith.addi %v, %c64 : i32\n" + op("kk", "arith.muli", "%k: i32", "%w: i32",
                                                      returned="i32"),
        LOADS=lines(load("bl", "%db", at="%kk"), load("al")),
    )  # fmt: skip
    main = match_main_loop(found, ())
    assert isinstance(main, MainLoop), main
    assert tags(main.step_operations) == ["arith.addi", "kk"]
    assert [tag(each.operation) for each in main.loads] == ["bl", "al"]
    assert (main.a.load, main.b.load) == (1, 0)
    assert (tags(main.a.views), tags(main.b.views)) == ([], ["bt"])
    assert (tag(main.dot), main.accumulator) == ("d", 0)
    # What will have been moved is none of the loop's own.
    main = match_main_loop(found, (named(module, "kk"),))
    assert isinstance(main, MainLoop)
    assert tags(main.step_operations) == ["arith.addi"]


def test_views_stand_in_their_order_and_one_load_may_feed_both_operands() -> None:
    module, found = nest(
        LOADS=load("al"),
        VIEWS=lines(alloc("as", "%al"), turned("x", "%as"), turned("y", "%x", "MB"),
                    turned("bt", "%y", "MB")),
    )  # fmt: skip
    main = match_main_loop(found, ())
    assert isinstance(main, MainLoop), main
    assert (main.a.load, main.b.load, len(main.loads)) == (0, 0, 1)
    assert tags(main.b.views) == ["x", "y", "bt"]
    assert module is not None


def test_views_of_a_buffer_of_its_own() -> None:
    views = lines(alloc("as", "%al"), alloc("bs", "%bl"), turned("x", "%bs"),
                  turned("y", "%x", "MB"), turned("bt", "%y", "MB"))  # fmt: skip
    module, found = nest(VIEWS=views)
    main = match_main_loop(found, ())
    assert isinstance(main, MainLoop), main
    assert (tags(main.a.views), tags(main.b.views)) == ([], ["x", "y", "bt"])
    assert module is not None


def test_accumulator_may_be_the_second_that_is_carried() -> None:
    changes = (
        ("%acc = scf.for", "%acc:2 = scf.for"),
        ("iter_args(%s = %zero) -> (TT)", "iter_args(%v = %c0, %s = %zero) -> (i32, TT)"),
        ("scf.yield %d : TT", "scf.yield %v, %d : i32, TT"),
        ('"tt.reshape"(%acc)', '"tt.reshape"(%acc#1)'),
    )
    _module, found = nest(changes)
    main = match_main_loop(found, ())
    assert isinstance(main, MainLoop), main
    assert main.accumulator == 1


_COMPUTED = op("e", "test.compute", "%al: TA", returned="TA")
_REGISTERS = "do not compute it"
_OTHER_LAYOUT = _SHARED.replace("128,", "64,")
_FLAGGED = '"ttng.warp_group_dot"(%as, %bt, %s, %flag) {tag = "d"} : (MA, MB, TT, i1)'
_WANTS = f"the dot wants its operand as {_OTHER_LAYOUT}, the descriptor brings {_SHARED}"
_BEHIND = lines(_OUT, store(), op("e", "test.use", "%acc#1: i32"))


@pytest.mark.parametrize(
    ("parts", "changes", "blamed", "reason", "advice"),
    [
        ({"DOT": lines(dot("e"), dot(start="%e"))}, (), "d", "the inner loop holds 2 dots, not one",
         ""),
        ({"DOT": lines(dot("e"), dot("f", start="%e"), dot(start="%f"))}, (), "f",
         "the inner loop holds 3 dots, not one", ""),
        ({"DOT": dot().replace("ttng.warp_group_dot", "tt.dot")}, (), "d",
         "tt.dot is not a wgmma (ttng.warp_group_dot)", "tl.dot of at least 64 rows on 4 warps"),
        ({"DOT": dot().replace("ttng.warp_group_dot", "ttng.tc_gen5_mma")}, (), "d",
         "ttng.tc_gen5_mma is not a wgmma (ttng.warp_group_dot)", ""),
        ({"DOT": f"%d = scf.if %flag -> (TT) {{\n{dot('e')}\nscf.yield %e : TT\n}} else {{\n"
                 "scf.yield %s : TT\n}"}, (), "e", "the dot is under a condition", ""),
        ({"DOT": f"%d = {_FLAGGED} -> TT"}, (), "d",
         "the dot has a flag that says whether it accumulates", ""),
        # Operands.
        ({"VIEWS": lines(_VIEWS, _COMPUTED), "DOT": dot(a="%e", kind="TA")}, (), "d",
         "operand A of the dot is in registers", _REGISTERS),
        ({"DOT": dot(b="%bl").replace("MB", "TA")}, (), "d",
         "operand B of the dot is in registers", _REGISTERS),
        ({"VIEWS": _VIEWS.replace("ttg.memdesc_trans", "ttg.memdesc_index")}, (), "bt",
         "operand B of the dot is not a value loaded in this step", ""),
        ({"VIEWS": _VIEWS.replace('"ttg.local_alloc"(%al)', '"ttg.local_alloc"()').replace(
            '"as"} : (TA)', '"as"} : ()')}, (), "as",
         "operand A of the dot is not a value loaded in this step", ""),
        ({"VIEWS": lines(_VIEWS, _COMPUTED, alloc("ax", "%e")), "DOT": dot(a="%ax")}, (), "e",
         "operand A of the dot does not come from a TMA load", ""),
        ({"LOADS": _LOADS.replace("tt.descriptor_load", "tt.load", 1)}, (), "al",
         "operand A of the dot does not come from a TMA load", ""),
        ({"LOADS": load("bl", "%db"), "BEFORE": load("al")}, (), "al",
         "operand A of the dot does not come from a TMA load", ""),
        ({}, (*carrying("%ma", "MA", "%as"), ("(%as, %bt, %s)", "(%v, %bt, %s)"),
              ("%t = %c0", "%t = %c0")), "d",
         "operand A of the dot is not a value loaded in this step", ""),
        ({}, (*carrying("%ta", "TA", "%al"), ('"ttg.local_alloc"(%al)', '"ttg.local_alloc"(%v)')),
         "d", "operand A of the dot does not come from a TMA load", ""),
        # The accumulator.
        ({"DOT": lines(op("e", "test.zero", returned="TT"), dot(start="%e"))}, (), "d",
         "the dot does not add to an accumulator that the inner loop carries", ""),
        ({"DOT": lines(dot("e"), op("d", "test.twice", "%e: TT", returned="TT"))}, (), "e",
         "the dot's result is changed before the next step adds to it", ""),
        ({"DOT": lines(dot(), op("e", "test.use", "%s: TT"))}, (), "d",
         "the accumulator is used in the inner loop beside the dot", ""),
        ({"DOT": lines(dot(), op("e", "test.use", "%d: TT"))}, (), "d",
         "the accumulator is used in the inner loop beside the dot", ""),
        # What else is in the loop.
        ({"SCALARS": load("xl", "%db")}, (), "xl",
         "a value loaded in the inner loop is used outside the dot", ""),
        ({"SCALARS": op("e", "arith.addf", "%zero: TT", "%zero: TT", returned="TT")}, (), "e",
         "arith.addf in the inner loop is not a load, dot or pure scalar", ""),
        ({"SCALARS": op("e", "tt.load", "%p: PP", returned="f16")}, (), "e",
         "tt.load in the inner loop is not a load, dot or pure scalar", ""),
        ({"SCALARS": "scf.if %flag {\n}"}, (), "scf.if",
         "scf.if in the inner loop is not a load, dot or pure scalar", ""),
        ({"SCALARS": op("e", "test.do")}, (), "e",
         "test.do in the inner loop is not a load, dot or pure scalar", ""),
        ({"VIEWS": lines(_VIEWS, op("e", "tt.unsplat", "%al: TA", returned="f32"))}, (), "e",
         "a value loaded in the inner loop is used outside the dot", ""),
        ({"VIEWS": _VIEWS.replace("-> MA", f"-> {_KINDS['MA'].replace(_SHARED, _OTHER_LAYOUT)}", 1)
          }, (('"ttng.warp_group_dot"(%as, %bt, %s) {tag = "d"} : (MA', '"ttng.warp_group_dot"'
               f'(%as, %bt, %s) {{tag = "d"}} : ({_KINDS["MA"].replace(_SHARED, _OTHER_LAYOUT)}'),),
         "as", _WANTS, ""),
        ({"LOADS": _LOADS.replace("(%da,", "(%dc,").replace("(DA, i32", "(DC, i32", 1)}, (), "al",
         "the load is of shape (128, 64), the descriptor's block of shape (128, 32)", ""),
        ({"LOADS": _LOADS.replace("(%da,", "(%p,").replace("(DA, i32", "(PP, i32", 1)}, (), "al",
         "a descriptor of type !tt.ptr<f16> has no block in memory", ""),
        ({}, carrying("%zero", "TT"), "scf.for",
         "the inner loop carries a tensor beside the dot's", ""),
        ({"AFTER": _BEHIND}, carrying("%c0", "i32"),
         "scf.for", "a scalar that the inner loop carries is used behind it", ""),
    ],
)  # fmt: skip
def test_inner_loops_that_cannot_be_shared_out(
    parts: dict[str, str], changes: tuple[tuple[str, str], ...], blamed: str, reason: str,
    advice: str,
) -> None:  # fmt: skip
    outside = (
        ("%zero = arith.constant", op("ma", "test.ma", returned="MA") + "\n"
         + op("ta", "test.ta", returned="TA") + "\n  %zero = arith.constant"),
    )  # fmt: skip
    _module, found = nest((*outside, *changes), **parts)
    refusal = match_main_loop(found, ())
    assert isinstance(refusal, Refusal), refusal
    assert (tag(refusal.operation), refusal.reason, refusal.advice) == (blamed, reason, advice)


@pytest.mark.parametrize(
    ("kind", "limit", "refused"),
    [
        ("MF", "63 : i32", True),
        ("MF", "64 : i32", True),
        ("MF", "65 : i32", False),
        ("MF", None, False),
        ("MI", "64 : i32", False),
        ("MA", "64 : i32", False),
        ("MF", '"64"', False),
    ],
)
def test_sums_of_bytes_that_are_not_exact(kind: str, limit: str | None, refused: bool) -> None:
    more = f"maxNumImpreciseAcc = {limit}, " if limit else ""
    _module, found = nest(
        VIEWS=_VIEWS.replace("(%al) {tag = \"as\"} : (TA) -> MA",
                             f"(%al) {{tag = \"as\"}} : (TA) -> {kind}"),
        DOT=dot(kind=kind, more=more),
    )  # fmt: skip
    main = match_main_loop(found, ())
    if refused:
        assert isinstance(main, Refusal)
        assert main.reason == (
            f"max_num_imprecise_acc = {str(limit).partition(' ')[0]} is not beyond the step of "
            "64: the dot cannot be asynchronous"
        )
        assert tag(main.operation) == "d"
    else:
        assert isinstance(main, MainLoop), main


def test_scalar_that_depends_on_the_dot() -> None:
    changes = carrying("%c0", "i32", "%y")
    after = lines(dot(), "%y = arith.addi %v, %c1 : i32")
    _module, found = nest(changes, DOT=after)
    assert isinstance(match_main_loop(found, ()), MainLoop)
    _module, found = nest(changes, DOT=lines(dot(), op("y", "tt.unsplat", "%d: TT",
                                                       returned="i32")))  # fmt: skip
    refusal = match_main_loop(found, ())
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "the accumulator is used in the inner loop beside the dot"


# ---- descriptors ---------------------------------------------------------------------------------


def maker(name: str, rows: str = "%n", pointer: str = "%p",
          how: str = "tt.make_tensor_descriptor") -> str:  # fmt: skip
    return op(name, how, f"{pointer}: PP", f"{rows}: i32", returned="DA")


def divided(by: str, name: str = "divsi") -> str:
    return op("r", f"arith.{name}", "%n: i32", f"{by}: i32", returned="i32")


_FRONT = "make it before the loop"
_WHOLE = "describe the whole array before the loop"


@pytest.mark.parametrize(
    ("before", "movable", "blamed", "reason", "advice"),
    [
        (maker("m"), ["m"], "", "", ""),
        (maker("m", how="ttng.reinterpret_tensor_descriptor"), ["m"], "", "", ""),
        (lines(op("r", "arith.addi", "%n: i32", "%c1: i32", returned="i32"), maker("m", "%r")),
         ["r", "m"], "", "", ""),
        *((lines(divided("%c64", name), maker("m", "%r")), ["r", "m"], "", "", "")
          for name in ("divsi", "remui")),
        (lines(divided("%n", "addi"), maker("m", "%r")), ["r", "m"], "", "", ""),
        *((lines(divided(by, name), maker("m", "%r")), [], "r",
           f"a descriptor is made in the tile loop with arith.{name} by a variable, which may be "
           "zero where there is no tile", _FRONT)
          for by, name in (("%n", "divsi"), ("%c0", "remsi"), ("%cm1", "ceildivsi"))),
        (lines(op("r", "arith.addi", "%t: i32", "%c1: i32", returned="i32"), maker("m", "%r")),
         [], "m", "the descriptor is made in the tile loop and varies from tile to tile", _WHOLE),
        (maker("m", "%u"), [], "m",
         "the descriptor is made in the tile loop and varies from tile to tile", _WHOLE),
        (lines(op("r", "tt.load", "%q: PP", returned="i32"), maker("m", "%r")), [], "r",
         "a descriptor is made in the tile loop with tt.load, whose result may change from tile to "
         "tile", _FRONT),
        (lines("%r = scf.if %flag -> (i32) {\nscf.yield %c0 : i32\n} else {\nscf.yield %c1 : i32\n"
               "} {tag = \"r\"}", maker("m", "%r")), [], "r",
         "a descriptor is made in the tile loop with scf.if, whose result may change from tile to "
         "tile", _FRONT),
        (lines(op("x", "test.x", returned="TA"),
               op("r", "tt.reduce", "%x: TA", returned="i32"), maker("m", "%r")), [], "r",
         "a descriptor is made in the tile loop with tt.reduce, which computes with tensors",
         _FRONT),
    ],
)  # fmt: skip
def test_descriptors_that_are_made_in_the_tile_loop(
    before: str, movable: list[str], blamed: str, reason: str, advice: str
) -> None:
    module, found = nest(BEFORE=before)
    assert tags(invariant_operations(found)) == movable
    user = named(module, "al")
    refusal = varying_descriptor(found.outer, user, named(module, "m").results[0])
    if movable:
        assert refusal is None
        return
    assert refusal is not None
    assert (tag(refusal.operation), refusal.reason, refusal.advice) == (blamed, reason, advice)


def test_descriptors_from_elsewhere() -> None:
    module, found = nest(BEFORE=lines(maker("m"), maker("o", "%t")))
    user = named(module, "al")
    assert varying_descriptor(found.outer, user, user.operands[0]) is None
    assert tags(invariant_operations(found)) == ["m"]
    carried = found.outer.body.arguments[1]
    refusal = varying_descriptor(found.outer, user, carried)
    assert refusal is not None
    assert (tag(refusal.operation), refusal.reason, refusal.advice) == (
        "al", "a loop carries the descriptor", _FRONT,
    )  # fmt: skip
    module, found = nest(SCALARS=maker("m", "%k"))
    refusal = varying_descriptor(found.outer, user, named(module, "m").results[0])
    assert refusal is not None
    assert refusal.reason == "the descriptor is made in the tile loop and varies from step to step"
    module, found = nest(SCALARS=maker("m"))
    assert tags(invariant_operations(found)) == ["m"]
    # One that varies stops the loads through it.
    changes = (('"tt.descriptor_load"(%da, %t', '"tt.descriptor_load"(%m, %t'),)
    _module, found = nest(changes, BEFORE=maker("m", "%t"))
    refusal = match_main_loop(found, ())
    assert isinstance(refusal, Refusal)
    assert tag(refusal.operation) == "m"


# ---- the epilogue --------------------------------------------------------------------------------

_WIDE = op("cv", "ttg.convert_layout", "%out: TC", returned="TC")
_POINTED = op("ps", "tt.store", "%q: PP", "%out: TC")


def epilogue(after: str, before: str = "") -> tuple[Module, Epilogue | Refusal]:
    """Operations live as long as their module."""
    module, found = nest(AFTER=after, BEFORE=before)
    return module, match_epilogue(found)


@pytest.mark.parametrize(
    ("after", "value", "dropped"),
    [
        (lines(_OUT, store()), "out", []),
        (lines(_OUT, _WIDE, store(value="%cv")), "out", ["cv"]),
        (lines(_OUT, _WIDE, op("cw", "ttg.convert_layout", "%cv: TC", returned="TC"),
               store(value="%cw")), "out", ["cw", "cv"]),
        (lines(_OUT, _WIDE, store(value="%cv"), op("e", "tt.bitcast", "%cv: TC", returned="TC")),
         "cv", []),
        (lines(_OUT, op("cv", "tt.bitcast", "%out: TC", returned="TC"), store(value="%cv")), "cv",
         []),
    ],
)  # fmt: skip
def test_what_is_stored(after: str, value: str, dropped: list[str]) -> None:
    _module, found = epilogue(after)
    assert isinstance(found, Epilogue), found
    (stored,) = found.tma_stores
    assert tag(stored.operation) == "st"
    maker = defining_operation(stored.value)
    assert maker is not None
    assert (tag(maker), tags(stored.dropped)) == (value, dropped)
    assert (found.tile_loads, found.pointer_stores) == ((), ())


@pytest.mark.parametrize(
    ("after", "before", "loads", "stores"),
    [
        # Before and after the inner loop, from what is not stored.
        (lines(load("x", "%dd", "DC", "TC"), _OUT, store()), load("y", "%dd", "DC", "TC"),
         ["y", "x"], ["st"]),
        (lines(load("x", "%dc", "DC", "TC"), _OUT, store()), "", [], ["st"]),
        (lines(_OUT, _POINTED, load("x", "%dd", "DC", "TC")), "", ["x"], ["ps"]),
        (lines(_OUT, "scf.if %flag {\n" + _POINTED + "\n}", load("x", "%dd", "DC", "TC")), "",
         ["x"], ["ps"]),
        (lines(_OUT, _POINTED, store(), _POINTED.replace('"ps"', '"pt"')), "", [],
         ["st", "ps", "pt"]),
        (lines(_OUT, op("e", "tt.load", "%p: PP", returned="TC"), store()), "", [], ["st"]),
        # What a producer cannot issue is loaded by the consumer.
        (lines(op("w", "tt.unsplat", "%acc: TT", returned="i32"),
               load("x", "%dd", "DC", "TC", at="%w"), _OUT, store()), "", [], ["st"]),
        (lines(load("x", "%dd", "DC", "TA"), _OUT, store()), "", [], ["st"]),
    ],
)  # fmt: skip
def test_loads_and_stores_of_a_tile(
    after: str, before: str, loads: list[str], stores: list[str]
) -> None:
    _module, found = epilogue(after, before)
    assert isinstance(found, Epilogue), found
    assert [tag(each.operation) for each in found.tile_loads] == loads
    ours = [*(each.operation for each in found.tma_stores), *found.pointer_stores]
    assert tags(ours) == stores


_UNKNOWN = op("up", "tt.int_to_ptr", "%n: i32", returned="PP")


def test_store_to_an_unknown_place_may_be_to_what_is_loaded() -> None:
    after = lines(_UNKNOWN, _OUT, op("ps", "tt.store", "%up: PP", "%out: TC"),
                  load("x", "%dd", "DC", "TC"))  # fmt: skip
    _module, found = epilogue(after)
    assert isinstance(found, Epilogue)
    assert (found.tile_loads, tags(found.pointer_stores)) == ((), ["ps"])


@pytest.mark.parametrize(
    ("after", "blamed", "reason"),
    [
        (_OUT, "scf.for", "the tile loop stores nothing"),
        (lines(_OUT, op("e", "test.do"), store()), "e",
         "test.do in the epilogue is neither computation nor store"),
        (lines(_OUT, store(), op("e", "tt.print", "%n: i32")), "e",
         "tt.print in the epilogue is neither computation nor store"),
        (lines(_OUT, "scf.if %flag {\n" + _POINTED + "\n" + op("e", "tt.print", "%n: i32") + "\n}"),
         "scf.if", "scf.if in the epilogue is neither computation nor store"),
        (lines(_OUT, store().replace("%dc", "%p").replace("(DC", "(PP")), "st",
         "a descriptor of type !tt.ptr<f16> has no block in memory"),
        (lines(op("out", "tt.reshape", "%acc: TT", returned="TA"), store(kind="TA")), "st",
         "the stored tile is not of the descriptor's shape"),
        (lines(op("m", "tt.make_tensor_descriptor", "%p: PP", "%t: i32", returned="DC"), _OUT,
               store(descriptor="%m")), "m",
         "the descriptor is made in the tile loop and varies from tile to tile"),
        (lines(_OUT, store(), load("x", "%dc", "DC", "TC")), "x",
         "tt.descriptor_load may read what a TMA store before it writes, and consumers do not "
         "wait there for their stores"),
        (lines(_OUT, store(), "scf.if %flag {\n" + load("x", "%dc", "DC", "TC") + "\n}"), "x",
         "tt.descriptor_load may read what a TMA store before it writes, and consumers do not "
         "wait there for their stores"),
    ],
)  # fmt: skip
def test_epilogues_that_would_not_work(after: str, blamed: str, reason: str) -> None:
    _module, found = epilogue(after)
    assert isinstance(found, Refusal), found
    assert (tag(found.operation), found.reason) == (blamed, reason)


# ---- reading what was stored ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "blamed"),
    [
        (lines(_OUT, store(), load("x", "%dd", "DC", "TC")), None),
        (lines(load("x", "%dc", "DC", "TC"), _OUT, store()), None),
        (lines(_OUT, store(), store("s2", "%dd"), load("x", "%dc", "DC", "TC")), "x"),
        (lines(_OUT, store(), store("s2", "%dd"), load("x", "%dd", "DC", "TC")), "x"),
        (lines(_OUT, _POINTED, op("e", "tt.load", "%q: PP", returned="f16")), None),
        (lines(_OUT, store(), op("e", "tt.load", "%q: PP", returned="f16")), None),
        (lines(_OUT, store(), _UNKNOWN, op("e", "tt.load", "%up: PP", returned="f16")), "e"),
        (lines(_OUT, _UNKNOWN, store(), op("e", "tt.bitcast", "%out: TC", returned="TC")), None),
        (lines(_OUT, _UNKNOWN, op("e", "tt.load", "%up: PP", returned="f16"), store()), None),
        (lines(_OUT, store(), op("w", "ttg.local_load", returned="TC")), "w"),
    ],
)
def test_reads_behind_a_store(after: str, blamed: str | None) -> None:
    _module, found = nest(AFTER=after)
    refusal = read_behind_store(found)
    assert (None if refusal is None else tag(refusal.operation)) == blamed
    if refusal is not None:
        assert refusal.advice == "use the value that was stored"


def test_what_an_operation_may_read() -> None:
    module, _ = nest(AFTER=lines(
        _OUT, load("x", "%dd", "DC", "TC"), _UNKNOWN, op("e", "tt.load", "%up: PP", returned="f16"),
        op("w", "ttg.local_load", returned="TC"), store()))  # fmt: skip
    for name, written, expected in (
        ("x", set[int | None](), False), ("x", {3}, True), ("x", {2}, False), ("x", {2, 3}, True),
        ("x", {None}, True), ("x", {2, None}, True), ("e", set[int | None](), True),
        ("w", set[int | None](), True),
    ):  # fmt: skip
        assert may_read(named(module, name), written) is expected, (name, written)


def test_what_may_be_computed_again_at_another_time() -> None:
    module, found = nest(AFTER=lines(
        _OUT, _UNKNOWN, op("e", "tt.load", "%p: PP", returned="f16"),
        op("far", "tt.load", "%up: PP", returned="f16"),
        op("s", "tt.store", "%p: PP", "%e: f16"), op("i", "arith.addi", "%n: i32", "%c1: i32",
                                                   returned="i32"), store()))  # fmt: skip
    for name, written, reason in (
        ("i", {0}, None), ("s", set[int | None](), "tt.store is not a pure computation"),
        ("e", {2, 3}, None), ("e", {4}, "tt.load may read what the tile loop stores"),
        ("far", set[int | None](), "tt.load may read what the tile loop stores"),
    ):  # fmt: skip
        repeated = order._not_to_repeat(named(module, name), written)  # pyright: ignore[reportPrivateUsage]
        assert repeated == reason, (name, written)
    assert found.outer


def test_stores_through_pointers_alone() -> None:
    module, _ = nest(AFTER=lines(
        _OUT, op("e", "tt.load", "%p: PP", returned="f16"),
        op("s", "tt.store", "%p: PP", "%e: f16"),
        op("i", "arith.addi", "%n: i32", "%c1: i32", returned="i32"), store()))  # fmt: skip
    stores = matching._pointer_stores
    assert stores(named(module, "s")) == [named(module, "s")]
    assert stores(named(module, "e")) is None
    assert stores(named(module, "i")) is None
    assert stores(named(module, "st")) is None


def test_a_tile_of_an_unknown_place_is_not_loaded_ahead() -> None:
    for descriptor, ahead in (("%dd", ["x"]), ("%ud", [])):
        _module, found = nest(AFTER=lines(
            _UNKNOWN, op("ud", "tt.make_tensor_descriptor", "%up: PP", "%n: i32", returned="DC"),
            load("x", descriptor, "DC", "TC"), _OUT, store()))  # fmt: skip
        loads = matching._tile_loads(found)
        assert [tag(each.operation) for each in loads] == ahead


def test_way_to_a_block_goes_round_no_loop() -> None:
    text = """
    func.func @kernel(%flag: i1) {
      cf.cond_br %flag, ^exit, ^one
    ^one:
      cf.cond_br %flag, ^exit, ^two
    ^two:
      cf.cond_br %flag, ^exit, BACK
    ^three:
      "test.op"() : () -> ()
      "tt.return"() : () -> ()
    ^exit:
      "tt.return"() : () -> ()
    }"""
    for back, length in (("^one", None), ("^three", 4)):
        module = parse(text.replace("BACK", back))
        (function,) = (each for each in operations(module) if each.name == "func.func")
        blocks = [*function.regions[0].blocks]
        way = matching.way_to(blocks[3])
        assert (len(way) if way else None) == length


def test_a_store_reads_nothing() -> None:
    module, _ = nest(AFTER=lines(
        _OUT, op("e", "tt.load", "%p: PP", returned="f16"),
        op("s", "tt.store", "%p: PP", "%e: f16"), store()))  # fmt: skip
    both = [named(module, name) for name in "es"]
    assert [*order._reads_of(both, {4})] == both[:1]  # pyright: ignore[reportPrivateUsage]


def test_places_that_depend_on_the_tile() -> None:
    module, found = nest(AFTER=lines(
        op("same", "arith.addi", "%c0: i32", "%c1: i32", returned="i32"),
        op("outside", "arith.addi", "%n: i32", "%same: i32", returned="i32"),
        op("tile", "arith.addi", "%t: i32", "%n: i32", returned="i32"),
        op("later", "arith.muli", "%tile: i32", "%c64: i32", returned="i32"), _OUT,
        store()))  # fmt: skip
    for name, expected in (("same", False), ("outside", False), ("tile", True), ("later", True)):
        place = (named(module, name).results[0],)
        depends = order._depends_on_tile(cast("PersistentNest", found), place)  # pyright: ignore[reportPrivateUsage]
        assert depends is expected, name


def test_places_of_accesses() -> None:
    module, _ = nest(AFTER=lines(_OUT, _POINTED, op("e", "tt.load", "%p: PP", "%flag: i1",
                                                    returned="f16"), store()))  # fmt: skip
    names = {"al": (0, 1, 2), "st": (0, 2, 3), "ps": (0,), "e": (0,)}
    for name, places in names.items():
        operation = named(module, name)
        assert place_of(operation) == tuple(operation.operands[place] for place in places)


# ---- the whole nest ------------------------------------------------------------------------------

HOPPER = Target("cuda", 90)


def matched(target: Target | None = HOPPER, changes: Sequence[tuple[str, str]] = (),
            **parts: str) -> tuple[Module, PersistentNest | Refusal]:  # fmt: skip
    module = module_of(changes, **parts)
    return module, match(candidate_loops(module)[0], target)


def test_whole_nest_taken_apart() -> None:
    _module, found = matched(
        BEFORE=lines(maker("m"), op("row", "arith.muli", "%t: i32", "%c64: i32", returned="i32")),
        AFTER=lines(load("x", "%dd", "DC", "TC"),
                    op("mm", "tt.make_tensor_descriptor", "%q: PP", "%n: i32", returned="DC"), _OUT,
                    _WIDE, store(value="%cv"), _POINTED),
    )  # fmt: skip
    assert isinstance(found, PersistentNest), found
    assert found.function.name == "tt.func"
    assert (tags(found.invariant), tags(found.tile_operations)) == (["m", "mm"], ["row"])
    assert tags(found.prelude) == [*["arith.constant"] * 5, "m", "mm"]
    assert tags(found.epilogue) == ["x", "out", "cv", "st", "ps"]
    assert [tag(each.operation) for each in found.tile_loads] == ["x"]
    assert [tag(each.operation) for each in found.tma_stores] == ["st"]
    assert (tags(found.pointer_stores), tags(found.step_operations)) == (["ps"], [])
    assert (found.num_warps, found.scratch_bytes, found.accumulator) == (8, 0, 0)
    assert found.inner == found.outer.inner[0]
    assert (tag(found.dot), tags(found.b.views), len(found.loads)) == ("d", ["bt"], 2)


@pytest.mark.parametrize(
    ("target", "reason", "advice"),
    [
        (None, "the target is not known", "name it: --target cuda:90"),
        (Target("cuda", 80), "cuda:80 is left alone: this pass knows sm_90 (Hopper)", ""),
        (Target("cuda", 89), "cuda:89 is left alone: this pass knows sm_90 (Hopper)", ""),
        (Target("cuda", 91), "cuda:91 is left to Triton's own warp specialization: this pass knows "
                             "sm_90 (Hopper)", ""),
        (Target("hip", "gfx942", 64), "hip:gfx942 is left alone: this pass knows sm_90 (Hopper)",
         ""),
        (Target("hip", 90, 64), "hip:90 is left alone: this pass knows sm_90 (Hopper)", ""),
    ],
)  # fmt: skip
def test_other_targets(target: Target | None, reason: str, advice: str) -> None:
    _module, found = matched(target)
    assert isinstance(found, Refusal)
    assert (tag(found.operation), found.reason, found.advice) == ("scf.for", reason, advice)


_BEGIN, _END = "  scf.for %t = %c0", '  "tt.return"() : () -> ()\n}) : () -> ()'
_EMPTY = "scf.for %j = %c0 to %n step %c1 : i32 {\n}"
_EIGHT = '"ttg.num-warps" = 8 : i32'
_TILE_TENSOR = (
    ("iter_args(%u = %c0) -> (i32)", "iter_args(%u = %zero) -> (TT)"),
    ("scf.yield %u : i32", "scf.yield %u : TT"),
)


@pytest.mark.parametrize(
    ("changes", "parts", "blamed", "reason", "advice"),
    [
        ((), {"ATTRIBUTES": f'{_EIGHT}, "ttg.num-ctas" = 2 : i32'}, "scf.for",
         "num-ctas = 2: buffers and barriers are those of one CTA", ""),
        ((), {"ATTRIBUTES": f'{_EIGHT}, "ttg.num-ctas" = 0 : i32'}, "scf.for",
         "num-ctas = 0: buffers and barriers are those of one CTA", ""),
        ((), {"ATTRIBUTES": f'{_EIGHT}, "ttg.num-ctas" = 1 : i32'}, "", "", ""),
        ((), {"ATTRIBUTES": ""}, "scf.for",
         "the module does not say how many warps it has (ttg.num-warps)", ""),
        ((), {"ATTRIBUTES": '"ttg.num-warps" = 0 : i32'}, "scf.for",
         "the module does not say how many warps it has (ttg.num-warps)", ""),
        ((), {"ATTRIBUTES": '"ttg.num-warps" = 1 : i32'}, "", "", ""),
        (((_END, op("e", "ttg.warp_specialize") + "\n" + _END),), {}, "e",
         "the kernel is warp-specialized already", ""),
        (((_END, op("e", "tt.call") + "\n" + _END),), {}, "e",
         "the kernel calls a function that is not inlined", ""),
        (((_END, _EMPTY + " {tag = \"e\"}\n" + _END),), {}, "e",
         "the kernel has another loop beside the tile loop", ""),
        (((_BEGIN, "  scf.if %flag {" + _BEGIN), (_END, "}\n" + _END)), {}, "scf.for",
         "the tile loop stands in scf.if", "return early instead"),
        (((_BEGIN, '  "test.do"() ({' + _BEGIN), (_END, '"test.end"() : () -> ()\n}) : () -> ()\n'
                                                  + _END)), {}, "scf.for",
         "the tile loop stands in test.do", ""),
        ((), {"BEFORE": _EMPTY}, "scf.for", "the tile loop holds 2 loops, not one dot loop", ""),
        ((), {"AFTER": lines(_OUT, store(), _EMPTY, _EMPTY.replace("%j", "%jj"))}, "scf.for",
         "the tile loop holds 3 loops, not one dot loop", ""),
        ((), {"BEFORE": op("e", "test.do")}, "scf.for",
         "test.do between the two loops has side effects, which the next tile's loads would "
         "overtake; move it behind the inner loop or before the tile loop", ""),
        ((), {"AFTER": lines(load("x", "%dd", "DC", "TC"), _OUT, store(descriptor="%da").replace(
            "(DC,", "(DA,"))}, "scf.for",
         "tt.descriptor_load may read what the tile loop stores, and the next tile's loads would "
         "overtake this tile's stores; load and store through different arguments", ""),
        (_TILE_TENSOR, {}, "scf.for", "the tile loop carries a tensor: tensor<128x128xf32>", ""),
        ((("  scf.for %t = %c0", "  %last = scf.for %t = %c0"),
          (_END, op("e", "test.use", "%last: i32") + "\n" + _END)), {}, "scf.for",
         "a result of the tile loop is used behind it", ""),
        # The parts' own reasons come through.
        ((), {"DOT": dot().replace("ttng.warp_group_dot", "tt.dot")}, "d",
         "tt.dot is not a wgmma (ttng.warp_group_dot)", "tl.dot of at least 64 rows on 4 warps"),
        ((), {"AFTER": _OUT}, "scf.for", "the tile loop stores nothing", ""),
        # What the producer needs.
        ((("%k = %c0 to %n", "%k = %c0 to %b"),), {"BEFORE": op(
            "b", "tt.unsplat", "%zero: TT", returned="i32")}, "b",
         "what the producer needs: computed from tensors (tt.unsplat)", ""),
        ((("%k = %c0 to %n", "%k = %c0 to %b"),), {"BEFORE": op(
            "b", "tt.load", "%p: PP", returned="i32")}, "", "", ""),
        ((("%k = %c0 to %n", "%k = %c0 to %b"),), {
            "BEFORE": op("b", "tt.load", "%p: PP", returned="i32"),
            "AFTER": lines(_OUT, op("ps", "tt.store", "%q: PP", "%out: TC"))}, "", "", ""),
        ((("scf.yield %u : i32", "scf.yield %w : i32"),), {"AFTER": lines(
            _OUT, store(), op("w", "tt.unsplat", "%acc: TT", returned="i32"))}, "d",
         "what the producer needs: computed from the accumulator", ""),
        ((("scf.yield %u : i32", "scf.yield %w : i32"),), {"AFTER": lines(
            _OUT, _POINTED, op("w", "tt.load", "%q: PP", returned="i32"))}, "w",
         "what the producer needs: tt.load may read what the tile loop stores", ""),
        ((("scf.yield %u : i32", "scf.yield %w : i32"),), {"AFTER": lines(
            _OUT, _POINTED, op("w", "tt.load", "%p: PP", returned="i32"))}, "", "", ""),
    ],
)  # fmt: skip
def test_nests_that_are_left_alone(
    changes: Sequence[tuple[str, str]], parts: dict[str, str], blamed: str, reason: str,
    advice: str,
) -> None:  # fmt: skip
    _module, found = matched(HOPPER, changes, **parts)
    if not reason:
        assert isinstance(found, PersistentNest), found
        return
    assert isinstance(found, Refusal), found
    assert (tag(found.operation), found.reason, found.advice) == (blamed, reason, advice)


def test_inner_loop_under_a_condition() -> None:
    changes = (
        ("%acc = scf.for", "%acc = scf.if %flag -> (TT) {\n%in = scf.for"),
        ("scf.yield %d : TT\n    }", "scf.yield %d : TT\n    }\nscf.yield %in : TT\n} else {\n"
                                     "scf.yield %zero : TT\n}"),
    )  # fmt: skip
    module, found = matched(HOPPER, changes)
    assert isinstance(found, Refusal)
    assert found.reason == "the dot loop stands under a condition in the tile loop"
    assert found.operation == named(module, "d").parent


def test_loop_without_a_tile_loop() -> None:
    text = [("scf.for %t = %c0 to %n step %c1 iter_args(%u = %c0) -> (i32) : i32 {", ""),
            ("    scf.yield %u : i32\n  }\n", ""), ("%t, %c0", "%c0, %c0")]  # fmt: skip
    _module, found = matched(HOPPER, text)
    assert isinstance(found, Refusal)
    assert (found.reason, found.advice) == (
        "one loop alone: there is no tile loop around the dot loop", "make the kernel persistent",
    )  # fmt: skip
    made = '  %ma, %mb = "test.m"() : () -> (MA, MB)\n  %c0 = arith'
    other = dot().replace("ttng.warp_group_dot", "test.dot")
    _module, found = matched(
        HOPPER, [("  %c0 = arith", made)], BEFORE=dot("e", "%ma", "%mb", "%zero"), DOT=other
    )
    assert isinstance(found, Refusal)
    assert found.reason == "the dot is not in the inner loop"


_GUARD = "cf.cond_br %flag, ^bb1, ^bb2\n^bb1:\n" + '"tt.return"() : () -> ()\n^bb2:\n  '
_RETURN = '"tt.return"() : () -> ()'


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (((_BEGIN, _GUARD + _BEGIN),), None),
        (((_BEGIN, _GUARD.replace("^bb1, ^bb2", "^bb2, ^bb1") + _BEGIN),), None),
        (((_BEGIN, _GUARD + _GUARD.replace("bb1", "bb3").replace("bb2", "bb4") + _BEGIN),), None),
        (((_BEGIN, _GUARD.replace(_RETURN, op("e", "test.do") + "\n" + _RETURN) + _BEGIN),),
         "a branch before the tile loop does not lead to a return alone"),
        (((_BEGIN, "cf.br ^bb2\n^bb2:\n" + _BEGIN),),
         "a branch before the tile loop does not lead to a return alone"),
        (((_BEGIN, _GUARD.replace("^bb2\n", "^bb2(%n : i32)\n").replace("^bb2:", "^bb2(%z: i32):")
           + _BEGIN),), "a branch before the tile loop hands values on"),
        (((_BEGIN, _GUARD + _BEGIN), (_END, "cf.br ^bb9\n^bb9:\n" + _END)),
         "the kernel branches behind the tile loop"),
    ],
)  # fmt: skip
def test_early_returns(changes: Sequence[tuple[str, str]], reason: str | None) -> None:
    _module, found = matched(HOPPER, changes)
    if reason is None:
        assert isinstance(found, PersistentNest), found
        assert "cf.cond_br" in tags(found.prelude)
    else:
        assert isinstance(found, Refusal), found
        assert found.reason == reason


@pytest.mark.parametrize(
    ("after", "size"),
    [
        (lines(_OUT, store()), 0),
        # A conversion of what depends on the accumulator, of what was loaded, of anything else.
        (lines(_OUT, op("o2", "ttg.convert_layout", "%out: TC", returned="TC"),
               op("o3", "tt.bitcast", "%o2: TC", returned="TC"), store(value="%o3")), 8192),
        (lines(_OUT, _WIDE, store(value="%cv")), 0),
        (lines(_OUT, op("e", "tt.splat", "%n: i32", returned="TT"),
               op("f", "ttg.convert_layout", "%e: TT", returned="TT"), store()), 0),
        (lines(_OUT, op("e", "tt.load", "%q: PP", returned="TC"),
               op("f", "ttg.convert_layout", "%e: TC", returned="TC"), store()), 8192),
        (lines(_OUT, op("e", "tt.load", "%q: PP", returned="tensor<128x16xf16>"),
               op("g", "tt.broadcast", "%e: tensor<128x16xf16>", returned="TC"),
               op("f", "ttg.convert_layout", "%g: TC", returned="TC"), store()), 8192),
        (lines(_OUT, op("e", "tt.load", "%q: PP", returned="tensor<128x15xf16>"),
               op("g", "tt.broadcast", "%e: tensor<128x15xf16>", returned="TC"),
               op("f", "ttg.convert_layout", "%g: TC", returned="TC"), store()), 0),
        (lines(_OUT, op("r", "tt.reduce", "%acc: TT", returned="tensor<128xf32>"), store()), 65536),
        # A load that the consumer makes, and one that a producer makes.
        (lines(load("x", "%dc", "DC", "TC"), _OUT, store()), 8192),
        (lines(load("x", "%dd", "DC", "TC"), _OUT, store()), 0),
        (lines(load("x", "%dd", "DC", "TC"),
               op("f", "ttg.convert_layout", "%x: TC", returned="TC"), _OUT, store()), 0),
    ],
)  # fmt: skip
def test_scratch_of_an_epilogue(after: str, size: int) -> None:
    _module, found = matched(AFTER=after)
    assert isinstance(found, PersistentNest), found
    assert found.scratch_bytes == size
