"""`flatten-loops`: decide for every persistent tile loop whether Triton shall flatten it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tilepass.analysis.cost_model import flatten_choice
from tilepass.analysis.loop_attributes import lost_by_fusing, lost_by_nesting
from tilepass.analysis.loop_fusion import (
    clamp_upper_bound,
    fusion_obstacle,
    tile_count_obstacle,
    trip_count_obstacle,
)
from tilepass.analysis.nest_facts import (
    dots_in,
    fused_shared_bytes,
    has_inner_loop,
    match_nest,
    nest_facts,
    not_a_tile_loop,
    starts_at_program_id,
)
from tilepass.core.anchor import Anchor
from tilepass.core.decisions import Choice, Fact
from tilepass.core.pass_base import Forms, Pass, PassContext
from tilepass.core.refusal import Refusal, attempt
from tilepass.core.registry import register
from tilepass.ir.engine import Module, copied_at, ir
from tilepass.ir.loops import Loop, LoopNest, outermost_loops

_FLATTEN = "tt.flatten"
_FORCED = "mode=on, but this loop cannot be flattened"
_OLDEST_ARCH = 80


@register
class FlattenLoops(Pass):
    """Set or remove `tt.flatten` on persistent tile loops; tritongpu-fuse-nested-loops obeys it.

    Before:
        scf.for %tile = %pid to %tiles step %programs {
          scf.for %k = %c0 to %n step %c1 { ... tt.dot ... }
          tt.descriptor_store ...
        }
    After (`mode=on`; the inner maximum for Triton 3.6 to 3.8 with no proof that %n >= 0, the outer
    one with no proof that %tiles >= 0):
        %end = arith.maxsi %tiles, %pid
        scf.for %tile = %pid to %end step %programs {
          %trips = arith.maxsi %n, %c0
          scf.for %k = %c0 to %trips step %c1 { ... tt.dot ... }
          tt.descriptor_store ...
        } {tt.flatten}
    After (`mode=off`): the same without `tt.flatten`.

    Sound when fusing keeps the order of everything that can be observed and every carried value's
    meaning (analysis.loop_fusion lists the conditions), and the fused loop takes the right number
    of steps. The maxima, which change no `scf.for`, make the latter so: Tritons before 3.9 run an
    inner loop with an upper bound below the lower one once, and the product of a number of tiles
    far below zero and of the inner trips may wrap around to one above; `clamp=false` refuses
    instead. Assumed: different pointer or descriptor arguments of the kernel do not overlap, as
    Triton's pipeliner does, since the next tile's loads come before this tile's stores; and no
    program runs 2^31 dots, where constants do not say that it does. Removing `tt.flatten` is always
    sound.

    The anchor is the place where fusion reads the loop, and the pass cannot be moved: whatever ran
    between the proof and fusion could fold away what the proof stands on. A `tilepass-opt` pipeline
    may have passes of Triton between the two; what they do to the proof is its author's affair.
    Nothing before the anchor reads `tt.flatten`. On targets without fusion (before sm_80) the pass
    does not run, which a remark says.

    `auto` decides by a cost model where flattening is sound, keeps the source's choice
    where neither has an opinion, and removes a `tt.flatten` of the source where flattening is wrong
    or would not compile. `on` is an error for a tile loop or a nest of loops with a dot that cannot
    be flattened; a dot loop with no loop around it gets a remark.
    `auto` leaves alone a nest whose author said something of the loops that the other form does not
    keep (analysis.loop_attributes), one that would take more shared memory than the target has, and
    one whose other form a trial compilation shows to spill more or to run its dots one after the
    other; `on` and `off` say what is lost, and `on` is an error where shared memory is exceeded.
    Refused with a remark, or with that error: no or several inner loops; loops that are no
    persistent tile loops; inner bounds that depend on the tile or on memory; bounds whose distance
    may not fit their type, and steps that may be zero; side effects between the loops; operations
    that order memory accesses; loads of what the tile may store, pointers out of memory included;
    carried values whose next value is known before the last read; on 3.6 to 3.8 a result carried
    twice and a tile that ends with a condition; targets whose pipeline fuses no loops.
    """

    name = "flatten-loops"
    movable = False
    anchor = Anchor.before("tritongpu-fuse-nested-loops")
    touches = ("scf.for",)

    @dataclass(frozen=True)
    class Options:
        mode: Literal["auto", "on", "off"] = "auto"
        clamp: bool = True

    options: Options

    def run(self, module: Module, context: PassContext) -> None:
        for loop in outermost_loops(module):
            if self.options.mode == "off":
                _decide_off(loop, context)
                continue
            nest = attempt(self._match, loop, context, at=loop.operation)
            if isinstance(nest, Refusal):
                self._refuse(loop, nest, context)
            elif nest is not None:
                self._decide(nest, module, context)

    def _match(self, loop: Loop, context: PassContext) -> LoopNest | Refusal | None:
        """The nest to decide about, why there is none, or None for a loop of no interest."""
        if not _flattened(loop) and not dots_in(loop):
            return None
        tile_loop, nest = not_a_tile_loop(loop), match_nest(loop)
        if isinstance(nest, Refusal):
            if not nest.harmless and _flattened(loop):
                return nest
            if self.options.mode == "on":
                return nest
            asked_for = _flattened(loop) or starts_at_program_id(loop)
            return (tile_loop or nest) if asked_for else None
        fusion = fusion_obstacle(nest, context.compiler)
        count = None if self.options.clamp else _wrong_count(nest, context)
        for wrong in (fusion, count):
            if wrong and not wrong.harmless and _flattened(loop):
                return wrong
        return (
            tile_loop
            or _dot_obstacle(nest)
            or _target_obstacle(loop, context)
            or fusion
            or count
            or (_author_obstacle(nest, context) if self.options.mode == "auto" else None)
            or nest
        )

    def _refuse(self, loop: Loop, refusal: Refusal, context: PassContext) -> None:
        if self.options.mode == "on" and _can_be_meant(loop):
            context.refuse(refusal, forced=_FORCED)
        elif not _flattened(loop):
            context.refuse(refusal, "not flattened")
        elif refusal.harmless:
            note = _clamp_note(_clamp_kept(loop, context))
            context.remarks.missed(loop.operation, f"tt.flatten stays as it is: {refusal}{note}")
        else:
            del loop.operation.attributes[_FLATTEN]
            context.remarks.passed(loop.operation, f"removed tt.flatten: {refusal}")

    def _decide(self, nest: LoopNest, module: Module, context: PassContext) -> None:
        loop, forced = nest.outer, self.options.mode == "on"
        current = "on" if _flattened(loop) else "off"
        facts, lost = _facts(nest, context), _lost(nest, context)
        too_much = _too_much_shared_memory(facts, context)
        if forced and too_much:
            context.refuse(Refusal(loop.operation, too_much), forced=_FORCED)

        def objection(value: str) -> str:
            kept = f"{', '.join(lost)} would be lost; say mode=on or mode=off" if lost else ""
            return "; ".join(filter(None, (kept, too_much if value == "on" else "")))

        decision = context.decide(
            "flatten",
            loop.operation,
            facts,
            forced="on" if forced else None,
            model=flatten_choice,
            default=Choice(current, "as the source has it"),
            forms=Forms(current, lambda value: _form(module, loop, value, context), objection),
        )
        clamped = _apply(nest, decision.value, context)
        note = _clamp_note(clamped)
        if decision.source == "source":
            context.remarks.missed(loop.operation, f"unchanged: {decision}{note}")
            return
        if decision.value == current and not clamped:
            context.remarks.analysis(loop.operation, f"unchanged: {decision}")
            return
        note += _loss(lost) if decision.value != current else ""
        context.remarks.passed(loop.operation, f"{decision}{note}")


def _facts(nest: LoopNest, context: PassContext) -> Mapping[str, Fact]:
    return {
        **nest_facts(nest, context),
        "fused_shared_bytes": fused_shared_bytes(nest, context),
    }


def _lost(nest: LoopNest, context: PassContext) -> list[str]:
    """What the author said of the loops and the form that they do not have yet does not keep."""
    if _flattened(nest.outer):
        return lost_by_nesting(nest)
    return lost_by_fusing(nest, context.compiler)


def _loss(lost: list[str]) -> str:
    return f"; lost: {', '.join(lost)}" if lost else ""


def _too_much_shared_memory(facts: Mapping[str, Fact], context: PassContext) -> str:
    """Why the target cannot hold the fused loop, empty where it can or nobody knows."""
    needed, limit = facts["fused_shared_bytes"], context.target and context.target.shared_bytes
    if not isinstance(needed, int) or limit is None or needed <= limit:
        return ""
    return f"the fused loop takes at least {needed} bytes of shared memory of {limit}"


def _form(module: Module, loop: Loop, value: str, context: PassContext) -> Module:
    """The module with the nest of a loop in the form that a value asks for."""
    copy, operation = copied_at(module, loop.operation)
    nest = match_nest(Loop(operation))
    assert isinstance(nest, LoopNest)
    if value != ("on" if _flattened(loop) else "off"):
        _apply(nest, value, context)
    return copy


def _apply(nest: LoopNest, value: str, context: PassContext) -> list[str]:
    """Give a nest the form; returns whose bounds had to be clamped."""
    operation = nest.outer.operation
    if value == "off":
        if _flattened(nest.outer):
            del operation.attributes[_FLATTEN]
        return []
    clamped = _clamp(nest, context)
    operation.attributes[_FLATTEN] = ir.UnitAttr.get(operation.context)
    return clamped


def _wrong_count(nest: LoopNest, context: PassContext) -> Refusal | None:
    return trip_count_obstacle(nest, context.compiler) or tile_count_obstacle(nest)


def _clamp(nest: LoopNest, context: PassContext) -> list[str]:
    """See to it that the fused loop takes the right number of steps; whose bounds it needed."""
    wrong = {
        "inner loop's": (nest.inner[0], trip_count_obstacle(nest, context.compiler)),
        "tile loop's": (nest.outer, tile_count_obstacle(nest)),
    }
    clamped = {name: loop for name, (loop, obstacle) in wrong.items() if obstacle}
    for loop in clamped.values():
        clamp_upper_bound(loop)
    return list(clamped)


def _clamp_kept(loop: Loop, context: PassContext) -> list[str]:
    """The same for a loop that keeps the `tt.flatten` of its author, whatever the reason."""
    nest = attempt(match_nest, loop, at=loop.operation) if _flattened(loop) else None
    return _clamp(nest, context) if isinstance(nest, LoopNest) else []


def _clamp_note(clamped: list[str]) -> str:
    what = " and the ".join(clamped)
    return f"; the {what} upper bound is clamped to its lower one" if clamped else ""


def _decide_off(loop: Loop, context: PassContext) -> None:
    if not _flattened(loop):
        return
    nest = match_nest(loop)
    facts: Mapping[str, Fact] = {}
    note = ""
    if isinstance(nest, LoopNest) and dots_in(nest.inner[0]):
        facts, note = nest_facts(nest, context), _loss(lost_by_nesting(nest))
    decision = context.decide(
        "flatten",
        loop.operation,
        facts,
        forced="off",
        model=flatten_choice,
        default=Choice("on", "as the source has it"),
    )
    del loop.operation.attributes[_FLATTEN]
    context.remarks.passed(loop.operation, f"{decision}{note}")


def _flattened(loop: Loop) -> bool:
    return loop.attribute(_FLATTEN) is not None


def _can_be_meant(loop: Loop) -> bool:
    """Whether the loop may be the one that a user who says `on` wants to see flattened."""
    return bool(dots_in(loop)) and (has_inner_loop(loop) or starts_at_program_id(loop))


def _dot_obstacle(nest: LoopNest) -> Refusal | None:
    if dots_in(nest.inner[0]):
        return None
    return Refusal(nest.outer.operation, "the inner loop holds no dot", harmless=True)


def _target_obstacle(loop: Loop, context: PassContext) -> Refusal | None:
    target = context.target
    if target is None or target.backend != "cuda" or not isinstance(target.arch, int):
        return None
    if target.arch >= _OLDEST_ARCH:
        return None
    return Refusal(loop.operation, f"Triton fuses no loops for {target}", harmless=True)


def _author_obstacle(nest: LoopNest, context: PassContext) -> Refusal | None:
    """Where a change of `tt.flatten` would undo something else that the author asked for."""
    facts = nest_facts(nest, context)
    if facts["warp_specialized"] and facts["arch"] == 90 and facts["num_warps"] == 4:
        return Refusal(
            nest.outer.operation,
            "the loop asks for warp specialization, which sm_90 gives to loops that are not "
            "flattened only",
            "say mode=on or mode=off",
            harmless=True,
        )
    return None
