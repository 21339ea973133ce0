"""Nests of a tile loop and a dot loop: their shape, and the facts that decisions rest on.

A persistent kernel computes several tiles in each program:

    scf.for %tile = %program_id to %tiles step %programs {   // the outer, or tile, loop
      prologue                                               // which tile: rows, columns
      scf.for %k = %lower to %upper step %one { dot }        // the inner loop
      epilogue                                               // what is done with the accumulator
    }
"""

from __future__ import annotations

from collections.abc import Mapping

from tilepass.analysis.loop_attributes import attribute_facts, fused_stages
from tilepass.core.decisions import Fact
from tilepass.core.pass_base import PassContext, Target
from tilepass.core.refusal import Refusal
from tilepass.ir.effects import Effect, effects_of
from tilepass.ir.engine import Operation, ir
from tilepass.ir.layouts import bytes_of, shape_of
from tilepass.ir.loops import (
    Loop,
    LoopNest,
    backward_slice,
    constant_int,
    defining_operation,
    nest_of,
)
from tilepass.ir.walks import function_of, module_integer, nested

DOTS = ("tt.dot", "tt.dot_scaled", "ttng.warp_group_dot")
# With Blackwell's, whose accumulator is in tensor memory.
DOTS_OF_ALL_TARGETS = (*DOTS, "ttng.tc_gen5_mma", "ttng.tc_gen5_mma_scaled")
# Which operand of a dot is the accumulator.
_ACCUMULATOR = 2
_LOOPS = ("scf.for", "scf.while")
_TMA_LOADS = ("tt.descriptor_load", "tt.descriptor_gather")
LOADS = ("tt.load", *_TMA_LOADS)
_TMA_STORE = "tt.descriptor_store"
# What may stand between a load and a dot that reads its operand from shared memory.
_VIEWS = ("tt.trans", "ttg.convert_layout", "ttg.local_alloc", "ttg.memdesc_trans")
# No grid has as many programs: a tile loop with such a step runs once in each of them.
_ONE_TRIP_STEP = 1 << 20
_REGISTERS_PER_SM = 65536
_WGMMA_ROWS = 64


def match_nest(outer: Loop) -> LoopNest | Refusal:
    """The nest below an outermost loop, or what it is instead of one tile loop and one dot loop."""
    loops = _loops_in(outer)
    if not loops:
        return Refusal(outer.operation, "the loop has no inner loop to flatten", harmless=True)
    nest = nest_of(outer)
    if len(loops) > 1:
        # Fusing looks neither into while loops nor into conditions: with those it goes ahead.
        goes_ahead = nest and len(nest.inner) == 1 and nest_of(nest.inner[0]) is None
        return Refusal(
            outer.operation,
            f"the loop holds {len(loops)} loops, and only a nest of two can be flattened",
            "move the others out or merge them",
            harmless=not goes_ahead,
        )
    if nest is None:
        return Refusal(
            outer.operation,
            "the inner loop is a while loop or stands under a condition",
            "write it as a `for` directly in the tile loop",
            harmless=True,
        )
    return nest


def has_inner_loop(outer: Loop) -> bool:
    """Whether any loop, of whatever kind, is anywhere in a loop."""
    return bool(_loops_in(outer))


def _loops_in(outer: Loop) -> list[Operation]:
    return [each for each in nested(outer.operation) if each.name in _LOOPS]


def dots_in(loop: Loop) -> list[Operation]:
    """The dots anywhere in a loop."""
    return [each for each in nested(loop.operation) if each.name in DOTS_OF_ALL_TARGETS]


def not_a_tile_loop(outer: Loop) -> Refusal | None:
    """Why a loop does not run over the tiles of a persistent program, None if it does."""
    count, step = outer.trip_count, constant_int(outer.step)
    if (count is not None and count <= 1) or (step is not None and step >= _ONE_TRIP_STEP):
        return Refusal(outer.operation, "the outer loop runs at most once", harmless=True)
    starts = [outer.lower_bound, *(carried.initial for carried in outer.carried)]
    if any(_comes_from_program_id(value) for value in starts):
        return None
    return Refusal(
        outer.operation,
        "the outer loop is not a persistent tile loop: neither where it starts nor what it carries "
        "comes from the program id",
        harmless=True,
    )


def starts_at_program_id(outer: Loop) -> bool:
    """Whether a loop starts at the program id itself: a tile loop, whatever is in it."""
    source = defining_operation(outer.lower_bound)
    return source is not None and source.name == "tt.get_program_id"


def nest_facts(nest: LoopNest, context: PassContext) -> Mapping[str, Fact]:
    """What a decision about a nest may rest on; nothing here is known only at run time.

    `dot` is how the dot gets its operands (see `dot_kind`); tile sizes in elements,
    `epilogue_bytes` stored per tile, `load_bytes` loaded per step of the inner loop,
    `accumulator_registers` per thread; `programs_per_sm` is 1 unless `maxnreg` asks for more;
    `num_stages` is the kernel's, `tile_loop.NAME` and `dot_loop.NAME` what the author said of the
    loops.
    """
    warps = num_warps(nest.outer.operation, context)
    dot = dots_in(nest.inner[0])[0]
    rows, columns = shape_of(dot.operands[_ACCUMULATOR].type)[-2:]
    return {
        "target": str(context.target) if context.target else None,
        "arch": _arch(context.target),
        "dot": dot_kind(nest),
        "tile_m": rows,
        "tile_n": columns,
        "tile_k": shape_of(dot.operands[0].type)[-1],
        "epilogue_bytes": _epilogue_bytes(nest),
        "load_bytes": sum(
            bytes_of(each.result.type)
            for each in nested(nest.inner[0].operation)
            if each.name in LOADS
        ),
        "accumulator_registers": None if warps is None else rows * columns // (32 * warps),
        "num_warps": warps,
        "programs_per_sm": _programs_per_sm(warps, context),
        "warp_specialized": any(
            loop.attribute("tt.warp_specialize") is not None for loop in (nest.outer, nest.inner[0])
        ),
        "num_stages": _option("num_stages", context),
        **attribute_facts(nest),
    }


def fused_shared_bytes(nest: LoopNest, context: PassContext) -> int | None:
    """Shared memory that the fused loop takes at least, None where it cannot be told.

    Its stages of the dot's operands, the tile that is stored and what is loaded for the epilogue,
    all of that by TMA, are in use at once; while the loops are two, the last takes the place of the
    first. Operands that are computed are left out.
    """
    stages = fused_stages(attribute_facts(nest), context.compiler) or _option("num_stages", context)
    dots = dots_in(nest.inner[0])
    operands = [_source(dot.operands[index]) for dot in dots for index in (0, 1)]
    loads = [each for each in operands if each is not None and each.name in LOADS]
    if stages is None or any(each.name == "tt.load" for each in loads):
        return None
    after = [inside for each in nest.after for inside in (each, *nested(each))]
    stored = [bytes_of(each.operands[1].type) for each in after if each.name == _TMA_STORE]
    loaded = [bytes_of(each.result.type) for each in after if each.name in _TMA_LOADS]
    each_stage = sum(bytes_of(each.result.type) for each in dict.fromkeys(loads))
    return stages * each_stage + max(stored, default=0) + sum(loaded)


def dot_kind(nest: LoopNest) -> str:
    """Where the dot of a nest gets its operands, as far as the level of the IR shows it.

    `shared`: both straight from loads. `register-a`: A is computed, wgmma then reads it from
    registers. `computed-b`: B is computed and goes through shared memory. `scaled`: dot_scaled.
    `mma`: fewer than 64 rows, too few for wgmma. `several`: more than one dot.
    """
    dots = dots_in(nest.inner[0])
    if len(dots) != 1:
        return "several"
    dot = dots[0]
    if dot.name in ("tt.dot_scaled", "ttng.tc_gen5_mma_scaled"):
        return "scaled"
    if shape_of(dot.operands[_ACCUMULATOR].type)[-2] < _WGMMA_ROWS:
        return "mma"
    if str(dot.operands[0].type).startswith("tensor") and dot.name == "ttng.warp_group_dot":
        return "register-a"
    if not _loaded(dot.operands[0]):
        return "register-a"
    return "shared" if _loaded(dot.operands[1]) else "computed-b"


def num_warps(operation: Operation, context: PassContext) -> int | None:
    """Warps of a program: the module's attribute, else the compile option, None if neither."""
    warps = module_integer(operation, "ttg.num-warps")
    return _option("num_warps", context) if warps is None else warps


def _option(name: str, context: PassContext) -> int | None:
    option = context.compile_options.get(name)
    return option if isinstance(option, int) else None


def _loaded(value: ir.Value) -> bool:
    """Whether a value is a load's result, or a view of one, or carried into the loop."""
    source = _source(value)
    return source is None or source.name in LOADS


def _source(value: ir.Value) -> Operation | None:
    """The operation that a value is a view of the result of."""
    source = defining_operation(value)
    while source is not None and source.name in _VIEWS and len(source.operands):
        source = defining_operation(source.operands[0])
    return source


def _comes_from_program_id(value: ir.Value) -> bool:
    owner = value.owner
    operation = owner.owner.operation if isinstance(owner, ir.Block) else owner.operation
    sources = backward_slice([value], function_of(operation))
    return any(source.name == "tt.get_program_id" for source in sources)


def _epilogue_bytes(nest: LoopNest) -> int:
    """Bytes of the tensors that the epilogue stores: the largest operand of each store."""
    written = [
        each
        for operation in nest.after
        for each in (operation, *nested(operation))
        if not each.regions and effects_of(each) & Effect.WRITE
    ]
    return sum(max(bytes_of(operand.type) for operand in each.operands) for each in written)


def _programs_per_sm(warps: int | None, context: PassContext) -> int:
    limit = context.compile_options.get("maxnreg")
    if not isinstance(limit, int) or warps is None:
        return 1
    return max(1, _REGISTERS_PER_SM // (limit * 32 * warps))


def _arch(target: Target | None) -> int | None:
    return target.arch if target is not None and isinstance(target.arch, int) else None
