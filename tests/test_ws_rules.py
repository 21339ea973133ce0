"""epilogue-warp-specialize: what the tile loop may read of what it stores, and what a nest is
described as."""

from __future__ import annotations

import functools

import pytest

from tests.protocol_support import module_of
from tests.ws_split_kernels import Nest
from tilepass.core.pass_base import Target
from tilepass.core.refusal import Refusal
from tilepass.ir.engine import Module, Operation, ir, operations
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest
from tilepass.passes.triton.epilogue_warp_specialize.match import candidate_loops, match
from tilepass.passes.triton.epilogue_warp_specialize.order import (
    may_read,
    place_of,
    read_back_obstacle,
    store_again_obstacle,
    stores_of,
    written_roots,
)

HOPPER = Target("cuda", 90)
Changes = tuple[tuple[str, str], ...]


@functools.cache
def parsed(text: str) -> Module:
    """A module, kept as long as what is found in it."""
    return module_of(text)


def matched(epilogue: str, changes: Changes = ()) -> PersistentNest | Refusal:
    """A nest's description, of which parts of the text were replaced."""
    text = Nest(epilogue).text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (loop,) = candidate_loops(parsed(text))
    return match(loop, HOPPER)


def nest_of(epilogue: str, changes: Changes = ()) -> PersistentNest:
    found = matched(epilogue, changes)
    assert isinstance(found, PersistentNest), found
    return found


def named(nest: PersistentNest, name: str) -> Operation:
    return next(each for each in operations(nest.outer.operation) if each.name == name)


# ---- reading what is stored ----------------------------------------------------------------------

_OUT = "%out = arith.truncf"
_LOAD = "%v = tt.load [p] : !tt.ptr<bf16>\n  "
_ADDRESS = "%address = arith.extsi %M : i32 to i64\n  "
_UNKNOWN = _ADDRESS + "%p = tt.int_to_ptr %address : i64 -> !tt.ptr<bf16>\n  "
_BRANCH = """%some = arith.cmpi slt, %M, %N : i32
  scf.if %some {
    %v = tt.load %bias : !tt.ptr<bf16>
    scf.yield
  }
  """
_STORED = "%pb = tt.splat %bias"
_ROW_OF_LOAD, _ROW_OF_STORE = "_load %c_desc[%row, ", "_store %c_desc[%row, "


@pytest.mark.parametrize(
    ("epilogue", "changes", "reads"),
    [
        ("none", (), None),
        ("bias", (), None),
        ("residual", (), None),
        ("two-stores", (), None),
        ("pointers", (), None),
        # A tile may be loaded from where it is stored, not from another tile's place.
        ("in-place", (), None),
        ("in-place", ((_ROW_OF_LOAD, "_load %c_desc[%column, "),), "tt.descriptor_load"),
        (
            "in-place",
            (("%rt = tt.descriptor_load %c_desc[%row, %column]",
              "%rt = tt.descriptor_load %c_desc[%row, %c0]"),),
            "tt.descriptor_load",
        ),
        # One place for all tiles is another tile's too.
        (
            "in-place",
            ((_ROW_OF_LOAD + "%column", "_load %c_desc[%c0, %c0"),
             (_ROW_OF_STORE + "%column", "_store %c_desc[%c0, %c0")),
            "tt.descriptor_load",
        ),
        ("pointers", ((_OUT, _LOAD.replace("[p]", "%bias") + _OUT),), "tt.load"),
        ("none", ((_OUT, _LOAD.replace("[p]", "%bias") + _OUT),), None),
        ("pointers", ((_OUT, _BRANCH + _OUT),), "tt.load"),
        ("none", ((_OUT, _BRANCH + _OUT),), None),
        # Where a pointer comes from that is made of a number, nobody knows: loaded or stored.
        ("none", ((_OUT, _UNKNOWN + _LOAD.replace("[p]", "%p") + _OUT),), "tt.load"),
        ("pointers", ((_OUT, _UNKNOWN + _LOAD.replace("[p]", "%p") + _OUT),), "tt.load"),
    ],
)  # fmt: skip
def test_reads_of_what_the_tile_loop_stores(
    epilogue: str, changes: Changes, reads: str | None
) -> None:
    nest = nest_of(epilogue, changes)
    found = read_back_obstacle(nest, "that is so")
    if reads is None:
        assert found is None
        return
    assert found is not None
    assert found.operation.name == reads
    assert found.reason == f"{reads} may read what the tile loop stores, and that is so"


@pytest.mark.parametrize(
    ("row", "column", "again"),
    [("%row", "%column", False), ("%row", "%c0", False), ("%c0", "%column", False),
     ("%t", "%c0", False), ("%c0", "%c0", True), ("%bm", "%K", True)],
)  # fmt: skip
def test_tiles_that_are_stored_to_one_place(row: str, column: str, again: bool) -> None:
    nest = nest_of("none", ((_ROW_OF_STORE + "%column", f"_store %c_desc[{row}, {column}"),))
    found = store_again_obstacle(nest, "that is so")
    assert bool(found) == again
    if found:
        assert found.operation.name == "tt.descriptor_store"
        assert found.reason == "all tiles are stored to one place, and that is so"


def test_one_of_two_stores_to_one_place_is_enough() -> None:
    for place, descriptor in enumerate(("%c_desc", "%r_desc"), 2):
        old = f"_store {descriptor}[%row, %column"
        nest = nest_of("two-stores", ((old, f"_store {descriptor}[%c0, %c0"),))
        found = store_again_obstacle(nest, "")
        assert found is not None
        assert ir.BlockArgument(place_of(found.operation)[0]).arg_number == place


_AFTER = "  }\n  tt.return"


@pytest.mark.parametrize(
    ("epilogue", "pointer", "refused"),
    [("none", "%bias", False), ("none", "%p", True), ("pointers", "%bias", False)],
)
def test_read_behind_a_tma_store(epilogue: str, pointer: str, refused: bool) -> None:
    """A store through pointers is over when the next load begins; a TMA store may not be."""
    text = Nest(epilogue).text()
    end = text.rindex("\n", 0, text.rindex("tt.return"))
    closing = text.rindex("}", 0, end)
    load = f"{_UNKNOWN}{_LOAD.replace('[p]', pointer)}"
    (loop,) = candidate_loops(parsed(text[:closing] + load + text[closing:]))
    found = match(loop, HOPPER)
    assert isinstance(found, Refusal) == refused
    if isinstance(found, Refusal):
        assert found.reason.startswith("tt.load may read what a TMA store before it writes")


def test_read_of_a_stored_descriptor_behind_its_store() -> None:
    again = _IN_PLACE_AGAIN
    for descriptor, refused in (("%c_desc", True), ("%r_desc", False)):
        text = Nest("none").text()
        store = text.index("tt.descriptor_store %c_desc")
        end = text.index("\n", store)
        kind = text[text.rindex(": ", 0, text.rindex(", tensor", store, end)) :].split(", tensor")[
            0
        ]
        line = again.replace("[d]", descriptor).replace("[k]", kind)
        (loop,) = candidate_loops(parsed(text[:end] + line + text[end:]))
        found = match(loop, HOPPER)
        assert isinstance(found, Refusal) == refused, found
        # Before the store it is another matter.
        (loop,) = candidate_loops(parsed(text[:store] + line.strip() + "\n" + text[store:]))
        assert isinstance(match(loop, HOPPER), PersistentNest)


_IN_PLACE_AGAIN = "\n  %u = tt.descriptor_load [d][%row, %column] [k] -> tensor<128x64xbf16, #tile>"


def test_places_of_loads_and_stores() -> None:
    nest = nest_of("in-place")
    load = next(each for each in nest.epilogue if each.name == "tt.descriptor_load")
    (store,) = stores_of(nest)
    assert len(place_of(store)) == 3
    assert place_of(store) == place_of(load)
    pointers = nest_of("pointers")
    (store,) = stores_of(pointers)
    assert (store.name, len(store.operands), len(place_of(store))) == ("tt.store", 3, 1)
    bias = nest_of("bias")
    load = named(bias, "tt.load")
    assert (len(load.operands), len(place_of(load))) == (3, 1)
    assert [each.name for each in stores_of(nest_of("two-stores"))] == ["tt.descriptor_store"] * 2


def test_may_read() -> None:
    load = named(nest_of("bias"), "tt.load")
    assert not may_read(load, set())
    assert may_read(load, {None})
    assert may_read(load, {4})
    assert not may_read(load, {3})
    unknown = nest_of("none", ((_OUT, _UNKNOWN + _LOAD.replace("[p]", "%p") + _OUT),))
    assert may_read(named(unknown, "tt.load"), set())
    assert written_roots(nest_of("two-stores")) == {2, 3}


# ---- descriptions --------------------------------------------------------------------------------


def names(among: tuple[Operation, ...]) -> list[str]:
    return [each.name.partition(".")[2] for each in among]


def test_description_of_a_nest() -> None:
    nest = nest_of("residual")
    assert nest.function.name == "tt.func"
    assert nest.outer.inner == (nest.inner,)
    assert (nest.num_warps, nest.invariant, nest.pointer_stores) == (8, (), ())
    assert names(nest.prelude)[-2:] == ["get_program_id", "get_num_programs"]
    assert names(nest.prelude).count("constant") == 6
    assert names(nest.tile_operations) == ["remsi", "divsi", "muli", "muli"]
    assert names(nest.step_operations) == ["muli"]
    assert [str(load.descriptor) == str(named_argument(nest, at)) for load, at in
            zip(nest.loads, (0, 1), strict=True)] == [True, True]  # fmt: skip
    assert (nest.a.load, nest.b.load) == (0, 1)
    assert (names(nest.a.views), names(nest.b.views)) == ([], ["memdesc_trans"])
    assert (nest.dot.name, nest.accumulator) == ("ttng.warp_group_dot", 0)
    assert names(nest.epilogue) == [
        "descriptor_load", "convert_layout", "extf", "addf", "truncf", "convert_layout",
        "descriptor_store",
    ]  # fmt: skip
    (load,), (store,) = nest.tile_loads, nest.tma_stores
    assert load.operation == nest.epilogue[0]
    assert store.operation == nest.epilogue[-1]


def named_argument(nest: PersistentNest, at: int) -> object:
    return nest.function.regions[0].blocks[0].arguments[at]


def test_conversions_before_a_store_are_dropped() -> None:
    (store,) = nest_of("none").tma_stores
    assert [each.name for each in store.dropped] == ["ttg.convert_layout"]
    assert "#mma" in str(store.value.type) or "nvidia_mma" in str(store.value.type)


def test_what_a_nest_also_stores_is_loaded_by_the_consumer() -> None:
    assert nest_of("in-place").tile_loads == ()
    assert len(nest_of("row").tile_loads) == 1
    assert names(nest_of("pointers").pointer_stores) == ["store"]
    assert nest_of("pointers").tma_stores == ()


def test_store_through_an_unknown_pointer_may_be_to_what_is_loaded() -> None:
    changes = ((_OUT, _UNKNOWN + _OUT), (_STORED, _STORED.replace("%bias", "%p")))
    found = matched("pointers", changes)
    assert isinstance(found, Refusal)
    assert found.reason.startswith("tt.descriptor_load may read what the tile loop stores")


_BEHIND = """
  scf.if %some {
    [inside]
  }"""
_INNER = "%kk = arith.muli %k, %bk : i32"
_TILES = "tensor<128x64xf32, #mma>"


@pytest.mark.parametrize(
    ("inside", "found"),
    [
        ("tt.store %bias, %half : !tt.ptr<bf16>", None),
        ("%v = tt.load %r_ptr : !tt.ptr<bf16>\n    tt.store %bias, %v : !tt.ptr<bf16>", None),
        (
            "%v = tt.load %r_ptr : !tt.ptr<bf16>",
            "tile loop stores nothing",
        ),
    ],
)
def test_stores_under_a_condition(inside: str, found: str | None) -> None:
    text = Nest("none").text()
    start = text.index("  tt.descriptor_store")
    end = text.index("\n", start)
    condition = (
        "  %some = arith.cmpi slt, %M, %N : i32\n  %half = arith.constant 0.5 : bf16"
        + _BEHIND.replace("[inside]", inside)
    )
    text = text[:start] + condition + text[end:]
    text = text.replace("%M: i32 loc", '%r_ptr: !tt.ptr<bf16> loc("r_ptr"), %M: i32 loc')
    (loop,) = candidate_loops(parsed(text))
    description = match(loop, HOPPER)
    if found is None:
        assert isinstance(description, PersistentNest), description
        assert names(description.pointer_stores) == ["store"]
    else:
        assert isinstance(description, Refusal)
        assert found in description.reason


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (f"%u = arith.addf %s, %s : {_TILES}", "arith.addf in the inner loop is not a load"),
        ("%u = arith.addi %k, %bk : i32", None),
        (
            "%some = arith.cmpi slt, %k, %bk : i32\n    %u = scf.if %some -> (i32) {\n"
            "      scf.yield %k : i32\n    } else {\n      scf.yield %bk : i32\n    }",
            "scf.if in the inner loop is not a load",
        ),
        ("%u = tt.load %bias : !tt.ptr<bf16>", "tt.load in the inner loop is not a load"),
    ],
)
def test_what_else_the_inner_loop_may_hold(line: str, found: str | None) -> None:
    description = matched("none", ((_INNER, f"{_INNER}\n    {line}"),))
    if found is None:
        assert isinstance(description, PersistentNest), description
        assert names(description.step_operations) == ["muli", "addi"]
    else:
        assert isinstance(description, Refusal)
        reasons = (found, "the accumulator is used in the inner loop beside the dot")
        assert description.reason.startswith(reasons)


def test_inner_loop_carries_no_other_tensor() -> None:
    changes = (
        ("%acc = scf.for", "%acc:2 = scf.for"),
        ("iter_args(%s = %zero)", "iter_args(%s = %zero, %also = %zero)"),
        (f"-> ({_TILES}) : i32", f"-> ({_TILES}, {_TILES}) : i32"),
        (f"scf.yield %d : {_TILES}", f"scf.yield %d, %also : {_TILES}, {_TILES}"),
        ("arith.mulf %acc, %one", "arith.mulf %acc#0, %one"),
    )
    found = matched("none", changes)
    assert isinstance(found, Refusal)
    assert found.reason == "the inner loop carries a tensor beside the dot's"


def test_descriptor_made_first_in_the_tile_loop_is_made_before_it() -> None:
    kind = str(nest_of("none").tma_stores[0].descriptor.type)
    maker = (
        f"%made = tt.make_tensor_descriptor %bias, [%M, %N], [%wide, %thin] : !tt.ptr<bf16>, {kind}"
    )
    constants = "%wide = arith.constant 64 : i64\n  %thin = arith.constant 1 : i64\n  "
    first = "%ti = arith.remsi"
    nest = nest_of("none", (("%c0 = arith", f"{constants}%c0 = arith"),
                            (first, f"{maker}\n  {first}")))  # fmt: skip
    assert names(nest.invariant) == ["make_tensor_descriptor"]
    assert names(nest.prelude)[-1] == "make_tensor_descriptor"
    assert names(nest.tile_operations) == ["remsi", "divsi", "muli", "muli"]


def test_buffer_without_a_value_is_refused() -> None:
    kind = "!ttg.memdesc<128x64xbf16, #shared, #smem"
    changes = ((f"{_INNER}", f"{_INNER}\n    %free = ttg.local_alloc : () -> {kind}, mutable>"),
               ("warp_group_dot %as", "warp_group_dot %free"))  # fmt: skip
    text = Nest("none").text()
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    text = text.replace(f": {kind}> * ", f": {kind}, mutable> * ")
    (loop,) = candidate_loops(parsed(text))
    found = match(loop, HOPPER)
    assert isinstance(found, Refusal)
    assert found.reason.startswith("ttg.local_alloc in the tile loop orders memory accesses or has")


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (None, "the target is not known"),
        (Target("cuda", 80), "cuda:80 is left alone"),
        (Target("cuda", 100), "cuda:100 is left to Triton's own warp specialization"),
        (Target("hip", "gfx942"), "is left alone"),
        (HOPPER, None),
    ],
)
def test_targets(target: Target | None, found: str | None) -> None:
    (loop,) = candidate_loops(parsed(Nest().text()))
    description = match(loop, target)
    if found is None:
        assert isinstance(description, PersistentNest)
    else:
        assert isinstance(description, Refusal)
        assert found in description.reason


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("ttg.num-ctas", 2, "num-ctas = 2"),
        ("ttg.num-ctas", None, None),
        ("ttg.num-warps", None, "how many warps"),
        ("ttg.num-warps", 0, "how many warps"),
    ],
)
def test_modules(name: str, value: int | None, found: str | None) -> None:
    module = Nest().module()
    attributes = module.operation.attributes
    if value is None:
        del attributes[name]
    else:
        with module.context:
            attributes[name] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)
    (loop,) = candidate_loops(module)
    description = match(loop, HOPPER)
    if found is None:
        assert isinstance(description, PersistentNest)
    else:
        assert isinstance(description, Refusal)
        assert found in description.reason
