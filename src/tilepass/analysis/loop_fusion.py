"""What tritongpu-fuse-nested-loops can do to a nest, and where its result would be wrong.

That pass turns a nest with `tt.flatten` into one loop of (tiles x inner trips) steps:

    prologue if first step; body; epilogue if last step

with every value that lives across steps carried by the loop. The conditions here were derived from
that form and checked against the pass of Triton 3.6 and 3.9 by running both (see
tests/test_passes_fusion.py). Numbers are issues of triton-lang/triton.
"""

from __future__ import annotations

from tilepass.analysis.bounds import all_of, bounds_of
from tilepass.analysis.memory_order import effect_obstacle, memory_obstacle
from tilepass.analysis.trip_count import (
    assumptions,
    count_bounds,
    counts_unsigned,
    never_below,
    proven_order,
)
from tilepass.core.pass_base import CompilerVersion
from tilepass.core.refusal import Refusal
from tilepass.ir.effects import Effect, effects_of
from tilepass.ir.engine import Operation, ir
from tilepass.ir.loops import (
    Loop,
    LoopNest,
    backward_slice,
    constant_int,
    defining_operation,
)
from tilepass.ir.walks import ancestor_in, nested, users

# The first Triton with the repairs of #11656, #11519, #11620 and of conditions that end an
# epilogue; 3.7 and 3.8 were not found to have any of them.
_REPAIRED = (3, 9)

_MOST_STEPS = (1 << 31) - 1

_DIVISIONS = tuple(
    f"arith.{name}"
    for name in ("ceildivsi", "ceildivui", "divsi", "divui", "floordivsi", "remsi", "remui")
)


def fusion_obstacle(nest: LoopNest, compiler: CompilerVersion) -> Refusal | None:
    """Why flattening a nest is unsound or does not compile, None if it is fine."""
    return (
        _bound_obstacle(nest)
        or _count_obstacle(nest)
        or effect_obstacle(nest)
        or memory_obstacle(nest)
        or _carried_obstacle(nest, compiler)
        or _form_obstacle(nest, compiler)
    )


def tile_count_obstacle(nest: LoopNest) -> Refusal | None:
    """Why the fused loop may run where there is no tile: the product of a number of tiles far below
    zero and of the inner trips wraps around. `clamp_upper_bound` removes the obstacle."""
    if never_below(nest.outer):
        return None
    return Refusal(
        nest.outer.operation,
        "the number of tiles is not provably zero or more, and its product with the inner trips "
        "may wrap around",
        "assume that the upper bound of the tile loop is not below the lower one",
    )


def trip_count_obstacle(nest: LoopNest, compiler: CompilerVersion) -> Refusal | None:
    """Why the fused loop may take a wrong number of steps.

    Before 3.9 fusing tests for an empty inner loop by `trip count == 0`, which is false for an
    upper bound below the lower one (#11656), and takes any assumption in the function for granted
    (#11519). `clamp_upper_bound` removes the obstacle.
    """
    if compiler.version >= _REPAIRED:
        return None
    loop = nest.inner[0]
    order = proven_order(loop)
    if order == "above":
        return None
    if any(claimed == "above" for claimed, _ in assumptions(loop)):
        return Refusal(
            nest.outer.operation,
            f"{compiler} takes an assumption of another branch for granted and runs an empty inner "
            "loop once (#11519)",
            "assume the same before the tile loop",
        )
    if order == "not-below":
        return None
    return Refusal(
        nest.outer.operation,
        f"the inner loop's trip count is not provably positive, and {compiler} runs it once where "
        "its upper bound is below its lower one (#11656)",
        "write `tl.assume(upper > lower)` before the tile loop",
    )


def _bound_obstacle(nest: LoopNest) -> Refusal | None:
    """Fusing needs the inner bounds before the outer loop and moves what computes them."""
    inner = nest.inner[0]
    limits = [inner.lower_bound, inner.upper_bound, inner.step]
    sources = backward_slice(limits, nest.outer.operation)
    for source in sources:
        if obstacle := _not_movable(source, nest):
            return obstacle
    used = [*limits, *(operand for source in sources for operand in source.operands)]
    if any(defining_operation(value) is None and nest.outer.defines(value) for value in used):
        return Refusal(
            nest.outer.operation,
            "the inner loop's bounds change from tile to tile",
            "loop over the largest range and mask what is too much",
            harmless=True,
        )
    return None


def _count_obstacle(nest: LoopNest) -> Refusal | None:
    """Fusing subtracts the bounds of each loop, divides by its step, and multiplies the two trip
    counts, all in signed numbers of the wider loop's type.

    A product of 2^31 is a program of as many dots, which takes from minutes to hours. So where the
    numbers are not known, and the type is i32 or wider, it is taken not to happen.
    """
    for loop, name in ((nest.outer, "tile"), (nest.inner[0], "inner")):
        lower, upper = (
            bounds_of(each, loop.operation) for each in (loop.lower_bound, loop.upper_bound)
        )
        if counts_unsigned(loop) and min(lower.least, upper.least) < 0:
            return Refusal(
                nest.outer.operation,
                f"the {name} loop compares unsigned numbers, and fusing counts its trips signed",
                "assume that its bounds are zero or more",
            )
        if upper.greatest - lower.least > all_of(loop.upper_bound).greatest:
            return Refusal(
                nest.outer.operation,
                f"the distance between the {name} loop's bounds may not fit their type",
                "write `tl.assume(lower >= 0)` before the tile loop",
            )
    if bounds_of(nest.inner[0].step, nest.outer.operation).least < 1:
        return Refusal(
            nest.outer.operation,
            "the inner loop's step may be zero; fusing would divide by it even where no tile runs",
            "write `tl.assume(step > 0)` before the tile loop",
        )
    return _product_obstacle(nest)


def _product_obstacle(nest: LoopNest) -> Refusal | None:
    tiles, trips = count_bounds(nest.outer), count_bounds(nest.inner[0])
    most = max(all_of(loop.upper_bound).greatest for loop in (nest.outer, nest.inner[0]))
    if most < _MOST_STEPS:
        steps = tiles.greatest * max(1, trips.greatest)
    else:
        steps = max(2, tiles.least) * max(1, trips.least)
    if steps <= most:
        return None
    return Refusal(
        nest.outer.operation, "the number of tiles times that of inner trips may not fit their type"
    )


def _not_movable(source: Operation, nest: LoopNest) -> Refusal | None:
    advice = "compute the bound before the tile loop"
    effects = effects_of(source)
    if effects == Effect.READ:
        return Refusal(
            nest.outer.operation,
            "the inner loop's bound is read from memory in the tile loop; fusing would read it "
            "even where no tile runs (#11601)",
            advice,
        )
    if source.name in _DIVISIONS and not constant_int(source.operands[1]):
        return Refusal(
            nest.outer.operation,
            "the inner loop's bound is divided by a variable in the tile loop; fusing would divide "
            "even where no tile runs",
            advice,
        )
    if effects or not source.name.startswith("arith."):
        return Refusal(
            nest.outer.operation,
            f"the inner loop's bound comes from {source.name}, which cannot leave the tile loop",
            advice,
        )
    return None


def _carried_obstacle(nest: LoopNest, compiler: CompilerVersion) -> Refusal | None:
    """The fused loop moves a carried value on at every step, unless the epilogue makes it."""
    staying = _staying_prologue(nest)
    moving = tuple(each for each in nest.before if each not in staying)
    yielded = [carried.yielded for carried in nest.outer.carried]
    for carried in nest.outer.carried:
        value = carried.yielded
        if carried.argument == value:
            continue
        late = _made_by(nest.after, value) and not _same_in_all_tiles(value, nest)
        if not late and not _read_first(carried.argument, nest, staying):
            return Refusal(
                nest.outer.operation,
                "a value that the tile loop carries is read after its next value is known; fusing "
                "would read the next one",
                "compute the next value behind the inner loop",
            )
        repaired = compiler.version >= _REPAIRED
        if not repaired and _made_by((*nest.after, *moving), value) and _count(value, yielded) > 1:
            return Refusal(
                nest.outer.operation,
                f"two carried values get one result of the epilogue, which {compiler} turns into "
                "invalid IR (#11620)",
                "carry the value once",
            )
    return None


def _read_first(argument: ir.Value, nest: LoopNest, staying: list[Operation]) -> bool:
    """Whether a carried value is read in the first step of a tile only: by the prologue, or as
    what the inner loop starts from."""
    for user in users(argument):
        if user == nest.inner[0].operation:
            continue
        place = ancestor_in(nest.outer.body, user)
        if place is None or place not in staying:
            return False
    return True


def _made_by(among: tuple[Operation, ...], value: ir.Value) -> bool:
    source = defining_operation(value)
    return source is not None and source in among


def _same_in_all_tiles(value: ir.Value, nest: LoopNest) -> bool:
    """Whether a value depends on nothing that changes from tile to tile: wherever it is computed,
    fusing moves it before the tile loop first."""
    sources = backward_slice([value], nest.outer.operation)
    if any(effects_of(each) for each in sources):
        return False
    operands = [
        operand for each in sources for one in (each, *nested(each)) for operand in one.operands
    ]
    changing = nest.outer.body.arguments
    return not any(operand == each for operand in operands for each in changing)


def _count(value: ir.Value, among: list[ir.Value]) -> int:
    return sum(value == each for each in among)


def _staying_prologue(nest: LoopNest) -> list[Operation]:
    """The operations of the prologue that fusing leaves there: it moves pure ones that the inner
    loop does not need to the epilogue."""
    anchored = [nest.inner[0].operation, *(each for each in nest.before if effects_of(each))]
    needed = [
        operand
        for each in anchored
        for operation in (each, *nested(each))
        for operand in operation.operands
    ]
    sources = backward_slice(needed, nest.outer.operation)
    found = [ancestor_in(nest.outer.body, each) for each in sources]
    places = [each for each in (*found, *anchored) if each is not None]
    return [each for each in nest.before if each in places]


def _form_obstacle(nest: LoopNest, compiler: CompilerVersion) -> Refusal | None:
    """Forms that Triton's pass turns into IR that its verifier rejects."""
    tile = nest.outer.induction_variable
    if any(carried.initial == tile for carried in nest.inner[0].carried):
        return Refusal(
            nest.outer.operation,
            "the inner loop carries a value that starts as the tile index, which fusing turns into "
            "invalid IR",
            "start it from an expression",
        )
    if compiler.version >= _REPAIRED or not nest.after:
        return None
    last = nest.after[-1]
    own = (*nest.before, *nest.after[:-1])
    for each in nested(last):
        if any(_made_by(own, operand) for operand in each.operands):
            return Refusal(
                nest.outer.operation,
                f"the tile ends with {last.name}, which {compiler} turns into invalid IR",
                "use masks, or let an unconditional store come last",
            )
    return None


def clamp_upper_bound(loop: Loop) -> None:
    """Raise a loop's upper bound to its lower one where it is below, which changes no trip count.

    A later assumption about the old bound no longer speaks of the loop's.
    """
    lower, upper = loop.lower_bound, loop.upper_bound
    source = defining_operation(upper) or loop.operation
    maximum = Operation.create(
        "arith.maxui" if counts_unsigned(loop) else "arith.maxsi",
        results=[upper.type],
        operands=[upper, lower],
        loc=source.location,
        ip=ir.InsertionPoint(loop.operation),
    )
    loop.operation.operands[1] = maximum.result
