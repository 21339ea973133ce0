"""Late pieces, behind the next tile's first dot, and rows in shared memory: values, protocol."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.protocol_mutants import Mutant, mutants
from tests.protocol_support import module_of
from tests.ws_split_kernels import Nest, run_pass, specialized
from tilepass.core.errors import PassFailure
from tilepass.ir import engine
from tilepass.ir.engine import Module, Operation, ir
from tilepass.ir.layouts import TensorType, parse_type
from tilepass.sim.equivalence import NotEquivalentError, assert_equivalent
from tilepass.sim.inputs import parse_shapes
from tilepass.sim.protocol.check import find
from tilepass.sim.protocol.compiler import ProtocolProgram
from tilepass.sim.protocol.problems import Problem
from tilepass.sim.protocol_check import check_protocol

STAGES = 3
STEPS = (0, 1, STAGES - 1, STAGES, STAGES + 1)
SPLIT = f"scheme=split-consumer,stages={STAGES}"
COOPERATIVE = f"scheme=cooperative,stages={STAGES}"

CASES = [
    (Nest("none"), f"{SPLIT},epilogue-subtile=4,c-buffers=2,late-subtiles=1"),
    (Nest("none"), f"{SPLIT},epilogue-subtile=2,c-buffers=1,late-subtiles=1"),
    (Nest("bias"), f"{SPLIT},epilogue-subtile=4,c-buffers=3,late-subtiles=2"),
    (
        Nest("bias"),
        f"{SPLIT},epilogue-subtile=2,c-buffers=2,late-subtiles=1,alternate-epilogues=true",
    ),
    (Nest("gelu"), f"{SPLIT},epilogue-subtile=4,c-buffers=1,late-subtiles=1"),
    (Nest("two-stores"), f"{SPLIT},epilogue-subtile=4,c-buffers=2,late-subtiles=2"),
    (Nest("gelu", n=128, warps=4), f"{COOPERATIVE},epilogue-subtile=4,late-subtiles=2"),
    (Nest("two-stores"), f"{COOPERATIVE},epilogue-subtile=2,c-buffers=2,late-subtiles=1"),
]


@pytest.mark.parametrize(("nest", "options"), CASES, ids=str)
def test_values_and_protocol(nest: Nest, options: str) -> None:
    """The same bits as the plain kernel where a program has tiles of other rows and of other
    columns, or none."""
    before, after = nest.module(), specialized(nest, options)
    shapes = [nest.sizes(steps, tiles=2, across=2) for steps in STEPS]
    assert_equivalent(before, after, shapes=shapes, seeds=1, grid=(1,))
    few = [nest.sizes(steps, tiles=1) for steps in (0, 2)]
    assert_equivalent(before, after, shapes=few, seeds=1, grid=(3,))
    for sizes, grid in ((shapes, (1,)), (few, (3,))):
        said = check_protocol(after, shapes=sizes, seeds=2, grid=grid)
        assert said is not None
        assert "schedules" in said


def test_mistakes_in_late_pieces_are_reported() -> None:
    """All that the simulator knows in what is built behind the first dot of a tile, or where it has
    none, and behind the last tile. Of three buffers four pieces take another one each time."""
    nest = Nest("bias")
    after = specialized(nest, f"{SPLIT},epilogue-subtile=4,c-buffers=3,late-subtiles=2")
    places = engine.operations(after)
    found = [each for each in mutants(after) if "(default)" in each.name]
    chosen = [each for each in found if _is_late(places[each.index])]
    assert {"fence", "slot", "wait"} <= {each.group for each in chosen}
    sizes = [nest.sizes(steps, tiles) for steps, tiles in ((4, 3), (1, 2), (0, 3))]
    problems = [Problem(parse_shapes(each)) for each in sizes]
    missed = [each.name for each in chosen if not _is_reported(each, after, problems)]
    assert missed == []


def _is_late(operation: Operation) -> bool:
    """Whether an operation handles late pieces; not the slot that nothing uses behind the last of
    them."""
    parent = operation.parent
    assert parent is not None
    if parent.operation.name not in ("scf.if", "ttg.warp_specialize"):
        return False
    used = [use.owner.operation for result in operation.results for use in result.uses]
    return operation.name in _OF_STORES or any(_stages(each) for each in used)


_OF_STORES = ("ttng.async_tma_store_wait", "ttng.fence_async_shared")


def _stages(operation: Operation) -> bool:
    """Whether an operation writes a piece to its buffer, or tells which one that is."""
    used = [use.owner.operation for result in operation.results for use in result.uses]
    return operation.name == "ttg.local_store" or any(
        each.name == "ttg.local_store" for each in used
    )


def _is_reported(mutant: Mutant, module: Module, problems: list[Problem]) -> bool:
    program = ProtocolProgram(mutant.apply(module))
    return any(find(program, problem, range(4)) for problem in problems)


def _row_too_early(module: Module) -> None:
    """The row of the next tile takes the place of the one that late pieces still read."""
    for store in engine.operations(module):
        if store.name == "ttg.local_store" and _is_row(store.operands[0]):
            before = [each.operation for each in store.block]
            reads = [each for each in before if each.name == "ttg.memdesc_subslice"]
            # Before the tile loop there are none.
            if reads:
                store.move_before(reads[-1])


def _no_row(module: Module) -> None:
    """The row stays what it is before the first tile."""
    for store in engine.operations(module):
        parent = store.parent
        if store.name != "ttg.local_store" or parent is None or parent.operation.name != "scf.if":
            continue
        if _is_row(store.operands[0]):
            store.erase()


def _tile_itself(module: Module) -> None:
    """Late pieces are taken for pieces of the tile whose dots run."""
    for loop in engine.operations(module):
        if loop.name == "scf.for" and _computes(loop):
            block = loop.regions[0].blocks[0]
            block.arguments[-1].replace_all_uses_with(block.arguments[0])


def _another_part(module: Module) -> None:
    """The late parts of the accumulator change places."""
    for loop in engine.operations(module):
        if loop.name == "scf.for" and _computes(loop):
            end = list(loop.regions[0].blocks[0])[-1].operation
            last = len(end.operands) - 1
            end.operands[last - 2], end.operands[last - 1] = (
                end.operands[last - 1],
                end.operands[last - 2],
            )


def _is_row(value: ir.Value) -> bool:
    view = parse_type(value.type)
    return isinstance(view, TensorType) and len(view.shape) == 1


def _computes(loop: Operation) -> bool:
    """Whether a loop is the tile loop of a consumer: it carries late parts of the accumulator."""
    parent = loop.parent
    is_outer = parent is not None and parent.operation.name.startswith("ttg.warp_specialize")
    return is_outer and any(isinstance(each.type, ir.RankedTensorType) for each in loop.results)


@pytest.mark.parametrize("mistake", [_row_too_early, _no_row, _tile_itself, _another_part])
def test_mistakes_change_values(mistake: Callable[[Module], None]) -> None:
    nest = Nest("bias")
    after = specialized(nest, f"{SPLIT},epilogue-subtile=4,c-buffers=2,late-subtiles=2")
    mistake(after)
    with pytest.raises(NotEquivalentError):
        assert_equivalent(
            nest.module(), after, shapes=[nest.sizes(2, tiles=1, across=3)], seeds=1, grid=(1,)
        )


CARRIED = (
    ("scf.for %t = ", "%last = scf.for %t = "),
    ("step %programs : i32", "step %programs iter_args(%seen = %c0) -> (i32) : i32"),
    (
        "  }\n  tt.return",
        "  %more = arith.shli %seen, %c1 : i32\n  scf.yield %more : i32\n  }\n  tt.return",
    ),
)


@pytest.mark.parametrize("scheme", [SPLIT, COOPERATIVE])
@pytest.mark.parametrize(
    ("nest", "changes", "reason"),
    [
        (Nest("pointers"), (), "a late piece cannot be stored through pointers"),
        (Nest("residual"), (), "a late piece cannot load a tile"),
        (Nest(), CARRIED, "the tile loop carries scalars, and a late piece is of the tile before"),
    ],
    ids=("pointers", "residual", "carried"),
)
def test_refused(
    nest: Nest, changes: tuple[tuple[str, str], ...], reason: str, scheme: str
) -> None:
    """Late pieces that are asked for; without that these nests are built, with none late."""
    text = nest.text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    pipeline = f"epilogue-warp-specialize{{{scheme},epilogue-subtile=2"
    with pytest.raises(PassFailure, match=reason):
        run_pass(module_of(text), f"{pipeline},late-subtiles=1}}")
    built = run_pass(module_of(text), f"{pipeline}}}")
    assert "ttg.warp_specialize" in engine.operation_names(built)


def test_registers_limit_late_pieces() -> None:
    """An accumulator of 128 registers leaves room for two quarters of it, not for a half and 48."""
    nest = Nest(n=256)
    specialized(nest, f"{SPLIT},epilogue-subtile=4,late-subtiles=2")
    with pytest.raises(PassFailure, match="cannot be built with epilogue-subtile=2"):
        specialized(nest, f"{SPLIT},epilogue-subtile=2,late-subtiles=2")


def test_a_scheme_without_late_pieces() -> None:
    with pytest.raises(PassFailure, match="ping-pong cannot be built with"):
        specialized(Nest(), "scheme=ping-pong,late-subtiles=1")


def test_an_epilogue_as_a_whole_is_no_answer_to_late_pieces() -> None:
    """Late parts of the accumulator are carried, though the number of pieces is left open."""
    after = specialized(Nest(), f"{COOPERATIVE},late-subtiles=1")
    assert any(each.name == "scf.for" and _computes(each) for each in engine.operations(after))
