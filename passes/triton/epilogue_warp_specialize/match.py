"""From a module to the description of its persistent nest, or the reason why there is none.

Kernels may return early before the tile loop:

^bb0:                                   // if M == 0 or N == 0: return
  cf.cond_br %empty, ^bb1, ^bb2
^bb1:
  tt.return
^bb2:
  scf.for %tile = ... { ... }
  tt.return

What is specialized stays in its block. Up to `ttg.warp_specialize` the other warps wait for what
the default warps tell them, and every return of the kernel, an early one too, tells them to exit
first (ConvertWarpSpecializeToLLVM, Triton 3.6 to 3.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from tilepass.analysis.memory_order import effect_obstacle, memory_obstacle, root_of
from tilepass.analysis.nest_facts import dots_in
from tilepass.core.pass_base import Target
from tilepass.core.refusal import Refusal
from tilepass.ir.effects import Effect, effects_of
from tilepass.ir.engine import Module, Operation, ir, operations
from tilepass.ir.layouts import TensorType, parse_type
from tilepass.ir.loops import (
    FOR,
    Loop,
    LoopNest,
    backward_slice,
    defining_operation,
    nest_of,
    outermost_loops,
)
from tilepass.ir.walks import ancestors, function_of, module_integer, nested, users

from .description import PersistentNest, TileLoad, TmaStore, bytes_of
from .match_main_loop import (
    LOAD,
    invariant_operations,
    match_main_loop,
    varying_descriptor,
    wrong_load,
)
from .order import producer_roots, read_behind_store, scalar_obstacle

SPECIALIZE = "ttg.warp_specialize"

_HOPPER = 90


def candidate_loops(module: Module) -> list[Loop]:
    """The outermost loops with a dot in them: those that the pass owes a remark."""
    return [loop for loop in outermost_loops(module) if dots_in(loop)]


def match(loop: Loop, target: Target | None) -> PersistentNest | Refusal:
    """The description of the nest that `loop` is the outer loop of."""
    refusal = (
        _wrong_target(loop, target)
        or _wrong_module(loop)
        or _wrong_function(loop)
        or _wrong_nest(loop)
    )
    if refusal is not None:
        return refusal
    nest = nest_of(loop)
    assert nest is not None
    described = _wrong_order(nest) or _wrong_carried(nest) or _take_apart(nest)
    if isinstance(described, Refusal):
        return described
    return _not_for_one_warp(described) or described


def _not_for_one_warp(nest: PersistentNest) -> Refusal | None:
    """Every scheme has a producer, and every partition computes what the tile loop carries."""
    return scalar_obstacle(nest, producer_roots(nest), "what the producer needs")


def _take_apart(nest: LoopNest) -> PersistentNest | Refusal:
    invariant = invariant_operations(nest)
    main = match_main_loop(nest, invariant)
    if isinstance(main, Refusal):
        return main
    epilogue = match_epilogue(nest)
    if isinstance(epilogue, Refusal):
        return epilogue
    outer = nest.outer.operation
    way = way_to(outer.block)
    assert way is not None
    before = [view.operation for block in way for view in block]
    return PersistentNest(
        function=function_of(outer),
        outer=nest.outer,
        inner=nest.inner[0],
        prelude=(*before[: before.index(outer)], *invariant),
        invariant=invariant,
        tile_operations=tuple(each for each in nest.before if each not in invariant),
        step_operations=main.step_operations,
        loads=main.loads,
        a=main.a,
        b=main.b,
        dot=main.dot,
        accumulator=main.accumulator,
        epilogue=tuple(each for each in nest.after if each not in invariant),
        tile_loads=epilogue.tile_loads,
        tma_stores=epilogue.tma_stores,
        pointer_stores=epilogue.pointer_stores,
        num_warps=module_integer(outer, "ttg.num-warps") or 0,
        scratch_bytes=scratch_of(nest, epilogue.tile_loads, epilogue.tma_stores),
    )


def _wrong_target(loop: Loop, target: Target | None) -> Refusal | None:
    if target is None:
        return Refusal(loop.operation, "the target is not known", "name it: --target cuda:90")
    if target.backend == "cuda" and target.arch == _HOPPER:
        return None
    left = f"{target} is left alone"
    if target.backend == "cuda" and isinstance(target.arch, int) and target.arch > _HOPPER:
        left = f"{target} is left to Triton's own warp specialization"
    return Refusal(loop.operation, f"{left}: this pass knows sm_90 (Hopper)")


def _wrong_module(loop: Loop) -> Refusal | None:
    operation = loop.operation
    ctas = module_integer(operation, "ttg.num-ctas")
    if ctas not in (None, 1):
        return Refusal(operation, f"num-ctas = {ctas}: buffers and barriers are those of one CTA")
    if not module_integer(operation, "ttg.num-warps"):
        return Refusal(operation, "the module does not say how many warps it has (ttg.num-warps)")
    return None


def _wrong_function(loop: Loop) -> Refusal | None:
    function = function_of(loop.operation)
    for each in operations(function):
        if each.name == SPECIALIZE:
            return Refusal(each, "the kernel is warp-specialized already")
        if each.name == FOR and each != loop.operation and Loop(each).parent is None:
            return Refusal(each, "the kernel has another loop beside the tile loop")
        if each.name == "tt.call":
            return Refusal(each, "the kernel calls a function that is not inlined")
    parent = loop.operation.parent
    assert parent is not None
    if parent.operation != function:
        name = parent.operation.name
        hint = "return early instead" if name == "scf.if" else ""
        return Refusal(loop.operation, f"the tile loop stands in {name}", hint)
    return early_return_obstacle(loop.operation)


def _wrong_nest(loop: Loop) -> Refusal | None:
    nest = nest_of(loop)
    loops = [each for each in nested(loop.operation) if each.name in (FOR, "scf.while")]
    if not loops:
        return _one_loop(loop)
    if around := _around_dots(loop, loops):
        return around
    if nest is None:
        return Refusal(loops[0], "the inner loop is not a `for` directly in the tile loop")
    if len(loops) > 1:
        return Refusal(loop.operation, f"the tile loop holds {len(loops)} loops, not one dot loop")
    if not dots_in(nest.inner[0]):
        return Refusal(loop.operation, "the dot is not in the inner loop")
    return None


def _one_loop(loop: Loop) -> Refusal:
    """Of a loop with a dot and no other loop in it."""
    stores = [each for each in nested(loop.operation) if each.name in (STORE, _POINTER_STORE)]
    guarded = [each for each in stores if each.block != loop.body]
    kinds = [each.argument.type for each in loop.carried]
    if guarded and any(isinstance(each, ir.RankedTensorType) for each in kinds):
        reason = "one loop over the steps of all tiles, fused by hand: it stores where a tile ends"
        return Refusal(guarded[0], reason, "write the dot loop inside the tile loop")
    return Refusal(
        loop.operation,
        "one loop alone: there is no tile loop around the dot loop",
        "make the kernel persistent",
    )


def _around_dots(loop: Loop, loops: Sequence[Operation]) -> Refusal | None:
    """What stands between the outermost loop and the one with the dots."""
    dots = [each for each in loops if each.name == FOR and dots_in(Loop(each))]
    if not dots:
        return None
    between = list(takewhile(lambda each: each != loop.operation, ancestors(dots[-1])))
    names = [each.name for each in between]
    if FOR in names or "scf.while" in names:
        tiles = next(each for each in between if each.name in (FOR, "scf.while"))
        kind = "`while`" if tiles.name == "scf.while" else "`for`"
        reason = f"the tile loop is a {kind} in another loop, as over groups or experts"
        hint = "number the tiles of all groups in one `for`, the group of each in a table"
        return Refusal(tiles, reason, hint)
    if "scf.if" in names:
        return Refusal(dots[-1], "the dot loop stands under a condition in the tile loop")
    return None


def _wrong_order(nest: LoopNest) -> Refusal | None:
    """What a producer that runs ahead would overtake."""
    obstacle = effect_obstacle(nest) or memory_obstacle(nest)
    return None if obstacle is None else Refusal(nest.outer.operation, str(obstacle))


def _wrong_carried(nest: LoopNest) -> Refusal | None:
    """Each partition computes what the tile loop carries for itself: scalars, purely."""
    for carried in nest.outer.carried:
        if isinstance(carried.argument.type, ir.RankedTensorType):
            return Refusal(
                nest.outer.operation, f"the tile loop carries a tensor: {carried.argument.type}"
            )
        if any(True for _ in carried.result.uses):
            return Refusal(nest.outer.operation, "a result of the tile loop is used behind it")
    return None


STORE, _CONVERT, _POINTER_STORE = "tt.descriptor_store", "ttg.convert_layout", "tt.store"


@dataclass(frozen=True)
class Epilogue:
    tile_loads: tuple[TileLoad, ...]
    tma_stores: tuple[TmaStore, ...]
    pointer_stores: tuple[Operation, ...]


def match_epilogue(nest: LoopNest) -> Epilogue | Refusal:
    """The loads and stores around the inner loop, or what would not work in a partition."""
    stores: list[TmaStore] = []
    pointers: list[Operation] = []
    for each in nest.after:
        if each.name == STORE:
            store = TmaStore(each, *_staged(each))
            if store.unknown_place is not None:
                return store.unknown_place
            if varying := varying_descriptor(nest.outer, each, store.descriptor):
                return varying
            if store.block.shape != tuple(ir.RankedTensorType(store.value.type).shape):
                return Refusal(each, "the stored tile is not of the descriptor's shape")
            stores.append(store)
        elif (inside := _pointer_stores(each)) is not None:
            pointers.extend(inside)
        elif effects_of(each) & ~Effect.READ:
            return Refusal(each, f"{each.name} in the epilogue is neither computation nor store")
    if not stores and not pointers:
        return Refusal(nest.outer.operation, "the tile loop stores nothing")
    if read := read_behind_store(nest):
        return read
    return Epilogue(tuple(_tile_loads(nest)), tuple(stores), tuple(pointers))


def _pointer_stores(operation: Operation) -> list[Operation] | None:
    """The `tt.store`s in and including an operation; None where it does anything else to memory
    but read it, or stores nothing."""
    stores = [each for each in operations(operation) if each.name == _POINTER_STORE]
    others = [each for each in operations(operation) if not each.regions and each not in stores]
    if not stores or any(effects_of(each) & ~Effect.READ for each in others):
        return None
    return stores


def _staged(store: Operation) -> tuple[ir.Value, tuple[Operation, ...]]:
    """The value before conversions that only the store uses, and these; also before a dimension of
    size 1 is put before those of a matrix."""
    value, dropped = store.operands[1], list[Operation]()
    while True:
        source = defining_operation(value)
        if source is None or len(users(value)) != 1 or not _moves_nothing(source):
            return value, tuple(dropped)
        dropped.append(source)
        value = source.operands[0]


def _moves_nothing(operation: Operation) -> bool:
    """Whether an operation changes a matrix in its layout, or in dimensions of size 1, alone."""
    if operation.name == _CONVERT:
        return True
    if (
        operation.name not in ("tt.reshape", "tt.expand_dims")
        or "allow_reorder" in operation.attributes
    ):
        return False
    before, after = (
        ir.RankedTensorType(each.type).shape
        for each in (operation.operands[0], operation.results[0])
    )
    ones = len(after) - len(before)
    return list(after) == [*[1] * ones, *before] and len(before) == 2


def _tile_loads(nest: LoopNest) -> Iterator[TileLoad]:
    """The TMA loads that a producer may run ahead of.

    What the nest also stores is loaded where the source says so: in the consumer.
    """
    written = {
        root_of(each.operands[0])
        for operation in nest.after
        for each in operations(operation)
        if effects_of(each) & Effect.WRITE and not each.regions
    }
    for each in (*nest.before, *nest.after):
        if each.name != LOAD:
            continue
        load = TileLoad(each)
        root = root_of(load.descriptor)
        if root is None or root in written or None in written:
            continue
        sources = backward_slice(list(load.coordinates), nest.outer.operation)
        if wrong_load(nest.outer, load) is None and nest.inner[0].operation not in sources:
            yield load


def scratch_of(nest: LoopNest, loads: Sequence[TileLoad], stores: Sequence[TmaStore]) -> int:
    """Bytes that the epilogue of a nest needs at a time, its rerouted loads and stores left out.

    A conversion between layouts goes through shared memory as a whole. Where the value does not
    depend on a tile that was loaded or computed, Triton converts the narrow tensors instead from
    which it is broadcast.
    """
    gone = {each for store in stores for each in store.dropped}
    gone |= {load.operation for load in loads}
    left = [each for operation in nest.after for each in operations(operation) if each not in gone]
    return max((_scratch_of(each, nest, gone) for each in left), default=0)


def _scratch_of(operation: Operation, nest: LoopNest, gone: set[Operation]) -> int:
    if operation.name == "tt.descriptor_load":
        return _most_bytes(operation.results)
    if operation.name == "tt.reduce":
        return _most_bytes(operation.operands)
    if operation.name != "ttg.convert_layout":
        return 0
    source = defining_operation(operation.operands[0])
    if source is not None and source in gone:
        return 0
    sources = backward_slice([operation.operands[0]], nest.outer.operation)
    whole = _most_bytes(operation.operands)
    depends = nest.inner[0].operation in sources or any(_loads(each, whole) for each in sources)
    return whole if depends else 0


def _loads(operation: Operation, size: int) -> bool:
    """Whether an operation loads a tensor of at least half as many bytes."""
    reads = effects_of(operation) & Effect.READ
    return bool(reads) and 2 * _most_bytes(operation.results) >= size


def _most_bytes(values: Iterable[ir.Value]) -> int:
    kinds = [parse_type(value.type) for value in values]
    tensors = [each for each in kinds if isinstance(each, TensorType) and each.pointee is None]
    return max(map(bytes_of, tensors), default=0)


_RETURN, _BRANCH = "tt.return", "cf.cond_br"


def early_return_obstacle(loop: Operation) -> Refusal | None:
    """Why the kernel reaches a loop of its own block otherwise than past branches that return, and
    leaves it otherwise than to its end."""
    way = way_to(loop.block)
    if way is None:
        return Refusal(
            loop,
            "a branch before the tile loop does not lead to a return alone",
            "do nothing else where the kernel returns early",
        )
    if any(len(block.arguments) for block in way[1:]):
        return Refusal(loop, "a branch before the tile loop hands values on")
    last = _terminator(loop.block)
    if last.name != _RETURN:
        return Refusal(last, "the kernel branches behind the tile loop")
    return None


def way_to(wanted: ir.Block) -> list[ir.Block] | None:
    """The blocks of a kernel that run up to and including `wanted`, in this order; None where a
    branch on the way has another way out than a block that only returns."""
    way = [wanted.region.blocks[0]]
    while way[-1] != wanted:
        last = _terminator(way[-1])
        onward = [block for block in last.successors if not _only_returns(block)]
        if last.name != _BRANCH or len(onward) != 1 or onward[0] in way:
            return None
        way.append(onward[0])
    return way


def _only_returns(block: ir.Block) -> bool:
    return [view.operation.name for view in block] == [_RETURN]


def _terminator(block: ir.Block) -> Operation:
    return block.operations[len(block.operations) - 1].operation
