"""`warp-specialize-legality`: what upstream makes of `tt.warp_specialize` on Hopper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilepass.core.anchor import Anchor
from tilepass.core.pass_base import Pass, PassContext
from tilepass.core.refusal import Refusal, attempt
from tilepass.core.registry import register
from tilepass.ir import engine
from tilepass.ir.engine import Module, Operation
from tilepass.passes.triton.strip_assume import SPECIALIZE, strip_assumptions
from tilepass.passes.triton.warp_specialize_legality.facts import marked_function
from tilepass.passes.triton.warp_specialize_legality.rules import Settings, Verdict, judge


@register
class WarpSpecializeLegality(Pass):
    """Tell for every loop marked `tt.warp_specialize` what upstream would do with it, and why.

    Before:
        scf.for %tile = ... {
          %a = tt.descriptor_load %a_desc[%row, %k]        // a descriptor that the host made
          ttng.warp_group_dot ...
        } {tt.warp_specialize}
    After (`mode=guard`):
        scf.for %tile = ... { ... }
        remark: upstream miscompiles this loop: ...

    On sm_90 nvgpu-warp-specialization makes of a marked function one warp that loads and two groups
    of four that compute, each half of the tile: of M where the halves have 64 rows or more, else of
    N where they have 128 columns or more. It may ignore the loop, fail, or compile it wrongly; see
    `rules` for each case. Operands of other than 16 bits (fp8, int8, tf32) must be K-major. The
    anchor is directly before that pass, when flattening has been done or not. The verdicts
    hold for Triton 3.6 to 3.9 and were checked by compiling (and by executing what came out on the
    CPU).

    `mode=report` changes nothing. `mode=guard` removes what upstream would fail on or miscompile:
    an assumption that alone does the harm (as `strip-assume` does), else `tt.warp_specialize` from
    the loops of the function. Sound: neither says what is computed. Other targets are left to
    their own passes, with a remark.
    """

    name = "warp-specialize-legality"
    anchor = Anchor.before("nvgpu-warp-specialization").if_present()
    touches = ("scf.for",)

    @dataclass(frozen=True)
    class Options:
        mode: Literal["report", "guard"] = "report"

    options: Options

    def run(self, module: Module, context: PassContext) -> None:
        for function in module.body.operations:
            inside = engine.operations(function)
            loops = [each for each in inside if SPECIALIZE in each.attributes]
            if not loops:
                continue
            function_facts = attempt(marked_function, loops, inside, at=loops[0])
            verdict = (
                Verdict("not judged", str(function_facts))
                if isinstance(function_facts, Refusal)
                else judge(function_facts, Settings.of(module, context))
            )
            for loop in loops:
                context.remarks.analysis(loop, str(verdict))
            if self.options.mode == "guard" and verdict.remedy == "assumption":
                strip_assumptions(inside, context)
            elif self.options.mode == "guard" and verdict.remedy == "attribute":
                _strip_attribute(loops, context)


def _strip_attribute(loops: list[Operation], context: PassContext) -> None:
    for loop in loops:
        del loop.attributes[SPECIALIZE]
        context.remarks.passed(loop, f"removed {SPECIALIZE}: the loop is compiled without")
