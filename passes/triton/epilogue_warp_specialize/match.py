"""From a module to the description of its persistent nest, or the reason why there is none."""

from __future__ import annotations

from tilepass.analysis.memory_order import effect_obstacle, memory_obstacle
from tilepass.analysis.nest_facts import dots_in
from tilepass.core.pass_base import Target
from tilepass.ir.engine import Module, ir, operations
from tilepass.ir.loops import FOR, Loop, LoopNest, nest_of, outermost_loops
from tilepass.ir.walks import function_of, module_integer, nested
from tilepass.passes.triton.epilogue_warp_specialize.description import (
    PersistentNest,
    Refusal,
)
from tilepass.passes.triton.epilogue_warp_specialize.early_returns import (
    early_return_obstacle,
    way_to,
)
from tilepass.passes.triton.epilogue_warp_specialize.match_descriptors import invariant_operations
from tilepass.passes.triton.epilogue_warp_specialize.match_epilogue import match_epilogue
from tilepass.passes.triton.epilogue_warp_specialize.match_main_loop import match_main_loop
from tilepass.passes.triton.epilogue_warp_specialize.producer import producer_roots
from tilepass.passes.triton.epilogue_warp_specialize.scalars import scalar_obstacle
from tilepass.passes.triton.epilogue_warp_specialize.scratch import scratch_of

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
        return Refusal(
            loop.operation,
            "one loop alone: there is no tile loop around the dot loop",
            "make the kernel persistent",
        )
    if nest is None:
        return Refusal(loops[0], "the inner loop is no `for` directly in the tile loop")
    if len(loops) > 1:
        return Refusal(loop.operation, f"the tile loop holds {len(loops)} loops, not one dot loop")
    if not dots_in(nest.inner[0]):
        return Refusal(loop.operation, "the dot is not in the inner loop")
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
