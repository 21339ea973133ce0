"""The facts that decisions about nests rest on, number by number."""

from __future__ import annotations

from typing import Any

import pytest

from tilepass.analysis import nest_facts
from tilepass.core.pass_base import CompilerVersion, PassContext, Target
from tilepass.core.refusal import Refusal
from tilepass.ir.engine import Module, parse
from tilepass.ir.loops import Loop, LoopNest, nest_of, outermost_loops

_A, _B, _C = "tensor<128x64xf16>", "tensor<64x256xf16>", "tensor<128x256xf32>"
_TEXT = """
module attributes {MODULE} {
tt.func @kernel(%d: !tt.desc, %n: i32, %m: i32, %flag: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %big = arith.constant 1048576 : i32
  %nearly = arith.constant 1048575 : i32
  %zero = "test.zero"() : () -> ACC
  %early = "tt.descriptor_load"(%d) : (!tt.desc) -> tensor<4x4xi32>
  %pid = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  %next_pid = arith.addi %pid, %c1 : i32
  START to END step STEP CARRIED : i32 {
    BEFORE
    INNER
    AFTER
  } OUTER
  "tt.return"() : () -> ()
}
}
"""
_INNER = """%sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (ACC) : i32 {
      LOADS
      DOTS
      scf.yield %out : ACC
    } SAID"""
_LOADS = f"""%a = "tt.descriptor_load"(%d) : (!tt.desc) -> {_A}
      %b = "tt.descriptor_load"(%d) : (!tt.desc) -> {_B}"""
_DOT = f'%out = "tt.dot"(%a, %b, %acc) : ({_A}, {_B}, {_C}) -> {_C}'
_STORE = f'"tt.descriptor_store"(%d, %sum) : (!tt.desc, {_C}) -> ()'


def module_of(**parts: str) -> Module:
    text = _TEXT.replace("tt.func @kernel(", "func.func @kernel(")
    text = text.replace('"tt.return"() : () -> ()', "return")
    parts = {
        "INNER": _INNER, "LOADS": _LOADS, "DOTS": _DOT, "SAID": "", "OUTER": "", "CARRIED": "",
        "BEFORE": "", "AFTER": _STORE, "START": "scf.for %tile = %pid", "END": "%m", "STEP": "%c2",
        "MODULE": "", "ACC": _C,
    } | parts  # fmt: skip
    for name, part in parts.items():
        text = text.replace(name, part)
    return parse(text)


def nest(**parts: str) -> tuple[Module, LoopNest]:
    module = module_of(**parts)
    found = nest_of(outermost_loops(module)[0])
    assert found is not None
    return module, found


def context(
    version: tuple[int, ...] = (3, 9, 0), target: Target | None = None, **options: object
) -> PassContext:
    compiler = CompilerVersion("triton", version)
    remarks: Any = None
    return PassContext("test", compiler, remarks, target=target, compile_options=options)


def facts(known: PassContext | None = None, /, **parts: str) -> dict[str, object]:
    _module, found = nest(**parts)
    return dict(nest_facts.nest_facts(found, known or context()))


def test_facts_of_a_nest() -> None:
    known = context(target=Target("cuda", 90), num_warps=8, num_stages=3, maxnreg=128)
    assert facts(known, SAID="{tt.num_stages = 2 : i32}") == {
        "target": "cuda:90",
        "arch": 90,
        "dot": "shared",
        "tile_m": 128,
        "tile_n": 256,
        "tile_k": 64,
        "epilogue_bytes": 128 * 256 * 4,
        "load_bytes": 128 * 64 * 2 + 64 * 256 * 2,
        "accumulator_registers": 128,
        "num_warps": 8,
        "programs_per_sm": 2,
        "warp_specialized": False,
        "num_stages": 3,
        "dot_loop.num_stages": 2,
    }


def test_facts_that_are_not_known() -> None:
    found = facts(context(num_stages="three"))
    for name in ("target", "arch", "accumulator_registers", "num_warps", "num_stages"):
        assert found[name] is None
    assert found["programs_per_sm"] == 1
    found = facts(context(target=Target("hip", "gfx942", 64)))
    assert (found["target"], found["arch"]) == ("hip:gfx942", None)


def test_warps_are_those_of_the_module_before_those_of_the_compiler() -> None:
    found = facts(context(num_warps=8), MODULE='"ttg.num-warps" = 4 : i32')
    assert (found["num_warps"], found["accumulator_registers"]) == (4, 256)


@pytest.mark.parametrize("part", ["OUTER", "SAID"])
def test_nest_that_the_author_specializes(part: str) -> None:
    assert facts(**{part: "{tt.warp_specialize}"})["warp_specialized"] is True


@pytest.mark.parametrize(
    ("registers", "warps", "programs"),
    [
        (None, 4, 1),
        (128, None, 1),
        ("128", 4, 1),
        (255, 8, 1),
        (256, 8, 1),
        (128, 8, 2),
        (129, 8, 1),
        (64, 4, 8),
        (65, 4, 7),
        (255, 16, 1),
    ],
)
def test_programs_that_share_a_multiprocessor(
    registers: object, warps: int | None, programs: int
) -> None:
    options: dict[str, Any] = {"maxnreg": registers, "num_warps": warps}
    known = context(**{name: value for name, value in options.items() if value is not None})
    assert facts(known)["programs_per_sm"] == programs


@pytest.mark.parametrize(
    ("after", "size"),
    [
        ("", 0),
        (_STORE, 131072),
        (f"{_STORE}\n    {_STORE}", 262144),
        # What it reads is not stored; nor is what is stored under a condition forgotten.
        ('%e = "tt.descriptor_load"(%d) : (!tt.desc) -> tensor<4x4xi32>', 0),
        (f"scf.if %flag {{\n {_STORE} \n}}", 131072),
        # The largest operand: pointers and numbers of loops count nothing.
        ('%p = "test.p"() : () -> tensor<9x9x!tt.ptr<f32>>\n'
         '%v = "test.v"() : () -> tensor<9x9xi8>\n%w = "test.w"() : () -> tensor<9x9xi16>\n'
         '"tt.store"(%p, %v, %w) : (tensor<9x9x!tt.ptr<f32>>, tensor<9x9xi8>, tensor<9x9xi16>)'
         " -> ()", 162),
        ('%e = "test.e"() : () -> tensor<3x3xi1>\n'
         '"tt.store"(%d, %e) : (!tt.desc, tensor<3x3xi1>) -> ()', 9),
        ('"tt.store"(%d, %n) : (!tt.desc, i32) -> ()', 0),
    ],
)  # fmt: skip
def test_bytes_that_the_epilogue_stores(after: str, size: int) -> None:
    assert facts(AFTER=after)["epilogue_bytes"] == size


@pytest.mark.parametrize("name", ["tt.load", "tt.descriptor_load", "tt.descriptor_gather"])
def test_bytes_that_a_step_loads(name: str) -> None:
    loads = _LOADS.replace("tt.descriptor_load", name)
    outside = '%e = "tt.descriptor_load"(%d) : (!tt.desc) -> tensor<8x8xi64>'
    scalar = '\n      %s = "tt.load"(%d) : (!tt.desc) -> i32'
    assert facts(LOADS=loads + scalar, BEFORE=outside)["load_bytes"] == 49152
    under = f"scf.if %flag {{\n {outside} \n}}\n      "
    assert facts(LOADS=under + loads)["load_bytes"] == 49152 + 512


# ---- the dot -------------------------------------------------------------------------------------


def dot(rows: int = 128, name: str = "tt.dot", a: str = "%a", b: str = "%b") -> dict[str, str]:
    kind_a, sum_ = f"tensor<{rows}x64xf16>", f"tensor<{rows}x256xf32>"
    return {
        "ACC": sum_,
        "LOADS": _LOADS.replace(_A, kind_a),
        "DOTS": f'%out = "{name}"({a}, {b}, %acc) : ({kind_a}, {_B}, {sum_}) -> {sum_}',
        "AFTER": "",
    }


def computed(parts: dict[str, str], name: str, operation: str = "test.compute") -> dict[str, str]:
    """With an operation between a load and the dot."""
    kind = parts["DOTS"].partition(" : (")[2].split(", ")["ab".index(name)]
    line = f'%x = "{operation}"(%{name}) : ({kind}) -> {kind}\n      '
    pair = {"a": ("(%a,", "(%x,"), "b": (" %b,", " %x,")}[name]
    return parts | {"DOTS": line + parts["DOTS"].replace(*pair)}


_VIEWED = ("tt.trans", "ttg.convert_layout", "ttg.local_alloc", "ttg.memdesc_trans")
# Of the shape that a descriptor of shared memory shows.
_MEMORY = "!ttg.memdesc<128x64xf16, #s, #ttg.shared_memory>"
_FROM_MEMORY = f'%x = "ttg.local_alloc"(%a) : ({_A}) -> {_MEMORY}\n      '
_WARP_GROUP = f'%out = "ttng.warp_group_dot"(OPERANDS, %b, %acc) : (KIND, {_B}, {_C}) -> {_C}'
_CARRIED_A = (
    _INNER.replace("(%acc = %zero) -> (ACC)", f"(%acc = %zero, %a = %ea) -> (ACC, {_A})")
    .replace("%sum =", "%sum:2 =")
    .replace("yield %out : ACC", f"yield %out, %a : ACC, {_A}")
)
_WITH_MEMORY = _FROM_MEMORY + _WARP_GROUP.replace("OPERANDS", "%x").replace("KIND", _MEMORY)


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        (dot(), "shared"),
        (dot(64), "shared"),
        (dot(63), "mma"),
        (dot(name="tt.dot_scaled"), "scaled"),
        (dot(32, name="tt.dot_scaled"), "scaled"),
        (dot(name="ttng.tc_gen5_mma_scaled"), "scaled"),
        (dot(name="ttng.tc_gen5_mma"), "shared"),
        (dot(name="ttng.warp_group_dot"), "register-a"),
        ({"DOTS": _WITH_MEMORY}, "shared"),
        ({"DOTS": _WITH_MEMORY.replace("(%a)", "(%y)").replace(
            "%x =", f'%y = "test.y"(%a) : ({_A}) -> {_A}\n      %x =')}, "register-a"),
        (computed(dot(), "a"), "register-a"),
        (computed(dot(), "b"), "computed-b"),
        *((computed(dot(), "a", view), "shared") for view in _VIEWED),
        *((computed(dot(), "b", view), "shared") for view in _VIEWED),
        # A buffer that is filled in some other way.
        (dot(a="%f") | {"LOADS": _LOADS + f'\n      %f = "ttg.local_alloc"() : () -> {_A}'},
         "register-a"),
        ({"DOTS": _DOT + f'\n      %more = "tt.dot"(%a, %b, %out) : ({_A}, {_B}, {_C}) -> {_C}'},
         "several"),
        # What comes into the loop may have been loaded.
        ({"INNER": _CARRIED_A, "BEFORE": f'%ea = "test.ea"() : () -> {_A}',
          "LOADS": f'%b = "tt.descriptor_load"(%d) : (!tt.desc) -> {_B}', "AFTER": ""}, "shared"),
    ],
)  # fmt: skip
def test_where_the_dot_gets_its_operands(parts: dict[str, str], kind: str) -> None:
    _module, found = nest(**parts)
    assert nest_facts.dot_kind(found) == kind


def test_sizes_of_a_tile_are_the_last_two_of_the_dot() -> None:
    a, b, c = "tensor<5x128x64xf16>", "tensor<5x64x256xf16>", "tensor<5x128x256xf32>"
    line = f'%out = "tt.dot"(%a, %b, %acc) : ({a}, {b}, {c}) -> {c}'
    found = facts(context(num_warps=4), ACC=c, DOTS=line, AFTER="",
                  LOADS=_LOADS.replace(_A, a).replace(_B, b))  # fmt: skip
    assert [found[f"tile_{name}"] for name in "mnk"] == [128, 256, 64]
    assert (found["dot"], found["accumulator_registers"]) == ("shared", 256)
    memory = facts(DOTS=_WITH_MEMORY)
    assert [memory[f"tile_{name}"] for name in "mnk"] == [128, 256, 64]


def test_sizes_of_a_tile_are_those_of_the_first_of_several_dots() -> None:
    small = "tensor<16x16xf16>"
    more = f'\n      %z = "test.z"() : () -> {small}\n      %y = "tt.dot"(%z, %z, %z) : ({small}, '
    found = facts(DOTS=_DOT + more + f"{small}, {small}) -> {small}")
    assert [found[f"tile_{name}"] for name in "mnk"] == [128, 256, 64]
    assert found["dot"] == "several"


# ---- shared memory -------------------------------------------------------------------------------

_STAGE = 49152
_SMALL = '"tt.descriptor_store"(%d, %early) : (!tt.desc, tensor<4x4xi32>) -> ()'
_MORE = '%e = "tt.descriptor_load"(%d) : (!tt.desc) -> tensor<8x8xi64>'


@pytest.mark.parametrize(
    ("known", "parts", "size"),
    [
        (context(num_stages=3), {"AFTER": ""}, 3 * _STAGE),
        (context(num_stages=3), {}, 3 * _STAGE + 131072),
        (context(num_stages=3), {"AFTER": f"{_SMALL}\n{_STORE}\n{_SMALL}"}, 3 * _STAGE + 131072),
        (context(num_stages=3), {"AFTER": f"{_MORE}\n{_SMALL}"}, 3 * _STAGE + 64 + 512),
        (context(num_stages=3), {"AFTER": f"{_MORE}\n{_MORE.replace('%e', '%f')}"},
         3 * _STAGE + 1024),
        (context(num_stages=3), {"AFTER": _MORE.replace("descriptor_load", "descriptor_gather")},
         3 * _STAGE + 512),
        # Those by threads take none; nor does what stands before the inner loop.
        (context(num_stages=3), {"AFTER": _MORE.replace("descriptor_load", "load"),
                                 "BEFORE": _MORE.replace("%e", "%f")}, 3 * _STAGE),
        (context(num_stages=3), {"AFTER": f"scf.if %flag {{\n{_SMALL}\n}}"}, 3 * _STAGE + 64),
        (context(num_stages=3), {"AFTER": _STORE.replace("descriptor_store", "store")}, 3 * _STAGE),
        (context(), {}, None),
        (context(num_stages=3), {"LOADS": _LOADS.replace("descriptor_load", "load", 1)}, None),
        (context(num_stages=3), {
            "INNER": _CARRIED_A, "BEFORE": f'%ea = "test.ea"() : () -> {_A}', "AFTER": "",
            "LOADS": f'%b = "tt.descriptor_load"(%d) : (!tt.desc) -> {_B}'}, 3 * 32768),
        # Operands that are computed are left out; one that two dots read takes its place once.
        (context(num_stages=2), {"AFTER": ""} | {"DOTS": computed(dot(), "a")["DOTS"]}, 2 * 32768),
        (context(num_stages=2), {"AFTER": "", "DOTS":
         _DOT.replace("%out", "%more") + "\n" + _DOT.replace("%acc", "%more")}, 2 * _STAGE),
        # The larger number of stages that the author gave; one stage is dropped before 3.9.
        (context(num_stages=3), {"AFTER": "", "SAID": "{tt.num_stages = 5 : i32}"}, 5 * _STAGE),
        (context(num_stages=3), {"AFTER": "", "SAID": "{tt.num_stages = 1 : i32}"}, _STAGE),
        (context((3, 8, 0), num_stages=3), {"AFTER": "", "SAID": "{tt.num_stages = 1 : i32}"},
         3 * _STAGE),
        (context((3, 8, 0), num_stages=3), {"AFTER": "", "SAID": "{tt.num_stages = 2 : i32}",
                                            "OUTER": "{tt.num_stages = 1 : i32}"}, 2 * _STAGE),
        (context(num_stages=3), {"AFTER": "", "SAID": "{tt.num_stages = 2 : i32}",
                                 "OUTER": "{tt.num_stages = 4 : i32}"}, 4 * _STAGE),
    ],
)  # fmt: skip
def test_shared_memory_of_the_fused_loop(
    known: PassContext, parts: dict[str, str], size: int | None
) -> None:
    _module, found = nest(**parts)
    assert nest_facts.fused_shared_bytes(found, known) == size


# ---- which loops ---------------------------------------------------------------------------------

_CARRIES = "iter_args(%v = %c0, %w = %next_pid) -> (i32, i32)"
_ONCE, _NO_TILES = "runs at most once", "not a persistent tile loop"
_YIELD = "scf.yield %v, %w : i32, i32"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({}, None),
        ({"START": "scf.for %tile = %next_pid"}, None),
        ({"START": "scf.for %tile = %c0"}, _NO_TILES),
        ({"START": "scf.for %tile = %c0", "END": "%c1", "STEP": "%c1"}, _ONCE),
        ({"START": "scf.for %tile = %c0", "END": "%c2", "STEP": "%c1"}, _NO_TILES),
        ({"START": "scf.for %tile = %c0", "END": "%c0", "STEP": "%c1"}, _ONCE),
        ({"STEP": "%big"}, _ONCE),
        ({"STEP": "%nearly"}, None),
        ({"STEP": "%n"}, None),
        ({"START": "%r:2 = scf.for %tile = %c0", "CARRIED": _CARRIES, "AFTER": _YIELD}, None),
        ({"START": "%r:2 = scf.for %tile = %c0", "AFTER": _YIELD,
          "CARRIED": _CARRIES.replace("%next_pid", "%n")}, _NO_TILES),
    ],
)  # fmt: skip
def test_loops_over_tiles(parts: dict[str, str], reason: str | None) -> None:
    module = module_of(**parts)
    found = nest_facts.not_a_tile_loop(outermost_loops(module)[0])
    assert (found is None) == (reason is None), found
    if found is not None and reason is not None:
        assert reason in found.reason
        assert found.harmless
        assert found.operation.name == "scf.for"


@pytest.mark.parametrize(
    ("start", "expected"), [("%pid", True), ("%next_pid", False), ("%n", False)]
)
def test_loops_that_start_at_the_program_id(start: str, expected: bool) -> None:
    module = module_of(START=f"scf.for %tile = {start}")
    assert nest_facts.starts_at_program_id(outermost_loops(module)[0]) is expected


_EMPTY = "scf.for %j = %c0 to %n step %c1 : i32 {\n}"
_WHILE = "scf.while : () -> () {\n scf.condition(%flag)\n} do {\n scf.yield\n}"


@pytest.mark.parametrize(
    ("inner", "reason", "harmless"),
    [
        ("", "has no inner loop", True),
        (_WHILE, "is a while loop or stands under a condition", True),
        (f"scf.if %flag {{\n{_EMPTY}\n}}", "is a while loop or stands under a condition", True),
        # Triton fuses the first and looks past the second, unless the second is a nest's.
        (f"{_EMPTY}\n{_WHILE}", "the loop holds 2 loops", False),
        (f"{_EMPTY}\n{_EMPTY}", "the loop holds 2 loops", True),
        (f"{_EMPTY}\n{_EMPTY}\n{_EMPTY}", "the loop holds 3 loops", True),
        (f"{_WHILE}\n{_WHILE}", "the loop holds 2 loops", True),
        (_EMPTY.replace("{\n}", f"{{\n{_EMPTY.replace('%j', '%i')}\n}}"),
         "the loop holds 2 loops", True),
        (_EMPTY, None, False),
    ],
)  # fmt: skip
def test_nests_of_two_loops(inner: str, reason: str | None, harmless: bool) -> None:
    module = module_of(INNER=inner, AFTER="")
    outer = outermost_loops(module)[0]
    found = nest_facts.match_nest(outer)
    assert nest_facts.has_inner_loop(outer) is bool(inner)
    if reason is None:
        assert isinstance(found, LoopNest)
        assert len(found.inner) == 1
        return
    assert isinstance(found, Refusal)
    assert reason in found.reason
    assert found.harmless is harmless


def test_dots_are_found_at_any_depth() -> None:
    _module, found = nest()
    assert [each.name for each in nest_facts.dots_in(found.outer)] == ["tt.dot"]
    assert [each.name for each in nest_facts.dots_in(Loop(found.inner[0].operation))] == ["tt.dot"]
