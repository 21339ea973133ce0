"""`acc-multi-buffer`: decide whether tcgen05 accumulators may get two buffers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tilepass.analysis.cost_model import accumulator_choice
from tilepass.analysis.nest_facts import DOTS
from tilepass.core.anchor import Anchor
from tilepass.core.decisions import Choice, Fact
from tilepass.core.pass_base import Pass, PassContext
from tilepass.core.refusal import Refusal, attempt
from tilepass.core.registry import register
from tilepass.ir import engine
from tilepass.ir.engine import Module, ir
from tilepass.ir.layouts import shape_of
from tilepass.ir.loops import FOR, Loop, loops_in
from tilepass.ir.walks import ancestors

_DISALLOW = "tt.disallow_acc_multi_buffer"
# Tensor memory: 128 lanes of 512 columns; the smallest allocation is 32 columns.
_LANES = 128
_SMALLEST_ALLOCATION = 32


@register
class AccMultiBuffer(Pass):
    """Set or remove `tt.disallow_acc_multi_buffer` on the loops around a dot.

    Before:
        scf.for %tile = ... { scf.for %k = ... { tt.dot } ; store }
    After (`mode=disallow`):
        scf.for %tile = ... { scf.for %k = ... { tt.dot } {tt.disallow_acc_multi_buffer} ; store
        } {tt.disallow_acc_multi_buffer}
    After (`mode=allow`): the same without the attribute.

    With two accumulators in tensor memory the next tile's MMAs run while this tile's accumulator
    is read; the price is the memory. Sound in every case: the attribute says how many buffers the
    compiler may allocate, not what is computed. All loops around a dot get it, since the pipeliner
    reads it on the loop that holds the MMA, warp specialization on the outermost one.

    `auto` disallows where two accumulators do not fit into tensor memory: Triton allocates them
    anyway, and the kernel cannot be launched. `allow` cannot make Triton use a second buffer.
    Refused: targets without tensor memory, whose accumulators are registers; an error if forced.
    """

    name = "acc-multi-buffer"
    anchor = Anchor.end_of("ttir")
    touches = DOTS

    @dataclass(frozen=True)
    class Options:
        mode: Literal["auto", "allow", "disallow"] = "auto"

    options: Options

    def run(self, module: Module, context: PassContext) -> None:
        for loop in loops_in(module):
            dots = [view.operation for view in loop.body if view.name in DOTS]
            if dots:
                self._decide(loop, dots, context)

    def _decide(self, loop: Loop, dots: list[engine.Operation], context: PassContext) -> None:
        mode = self.options.mode
        facts = _no_tensor_memory(loop, context) or attempt(_facts, dots, at=loop.operation)
        if isinstance(facts, Refusal):
            forced = "" if mode == "auto" else f"mode={mode} has no effect on this loop"
            context.refuse(facts, forced=forced)
            return
        around = [loop, *(Loop(each) for each in ancestors(loop.operation) if each.name == FOR)]
        current = any(each.attribute(_DISALLOW) is not None for each in around)
        decision = context.decide(
            "acc-multi-buffer",
            loop.operation,
            facts,
            forced=None if mode == "auto" else mode,
            model=accumulator_choice,
            default=Choice("disallow" if current else "allow", "as the source has it"),
        )
        changed = [_set(each, decision.value == "disallow") for each in around]
        if any(changed):
            context.remarks.passed(loop.operation, str(decision))
        else:
            context.remarks.analysis(loop.operation, f"unchanged: {decision}")


def _no_tensor_memory(loop: Loop, context: PassContext) -> Refusal | None:
    """For targets without accumulators in tensor memory: all but sm_100 to sm_119."""
    target = context.target
    if target is None:
        return None
    if target.backend == "cuda" and isinstance(target.arch, int) and 100 <= target.arch < 120:
        return None
    reason = f"{target} keeps accumulators in registers, of which there is one set"
    return Refusal(loop.operation, reason)


def _facts(dots: list[engine.Operation]) -> Mapping[str, Fact]:
    shapes = [shape_of(dot.results[0].type) for dot in dots]
    return {
        "columns": sum(-(-shape[-2] // _LANES) * shape[-1] for shape in shapes),
        "reserved_columns": sum(
            _SMALLEST_ALLOCATION for dot in dots if dot.name == "tt.dot_scaled"
        ),
        "dots": len(dots),
    }


def _set(loop: Loop, disallow: bool) -> bool:
    """Set or remove the attribute; returns whether that changed anything."""
    attributes = loop.operation.attributes
    if (_DISALLOW in attributes) == disallow:
        return False
    if disallow:
        attributes[_DISALLOW] = ir.UnitAttr.get(loop.operation.context)
    else:
        del attributes[_DISALLOW]
    return True
