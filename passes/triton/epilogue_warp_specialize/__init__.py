"""`epilogue-warp-specialize`: share a persistent matmul out among specialized warps."""

from __future__ import annotations

from collections.abc import Mapping

from tilepass.analysis.nest_facts import dots_in, nest_facts
from tilepass.core.anchor import Anchor
from tilepass.core.decisions import Choice, Fact
from tilepass.core.diagnostics import Diagnostic
from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Pass, PassContext, Target
from tilepass.core.registry import register
from tilepass.ir.engine import Module
from tilepass.ir.loops import Loop, nest_of
from tilepass.passes.triton.epilogue_warp_specialize.budget import choose, limits_of
from tilepass.passes.triton.epilogue_warp_specialize.cost_model import scheme_choice
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, Refusal
from tilepass.passes.triton.epilogue_warp_specialize.machine import Machine
from tilepass.passes.triton.epilogue_warp_specialize.match import candidate_loops, match
from tilepass.passes.triton.epilogue_warp_specialize.options import Options as _Options
from tilepass.passes.triton.epilogue_warp_specialize.options import Plan
from tilepass.passes.triton.epilogue_warp_specialize.table import SCHEMES


@register
class EpilogueWarpSpecialize(Pass):
    """Derive a warp-specialized kernel from a plain persistent one."""

    name = "epilogue-warp-specialize"
    anchor = Anchor.after("triton-loop-aware-cse")
    touches = ("ttng.warp_group_dot",)

    Options = _Options
    options: _Options

    def run(self, module: Module, context: PassContext) -> None:
        if self.options.scheme == "none":
            return
        for loop in candidate_loops(module):
            nest = match(loop, context.target)
            if isinstance(nest, Refusal):
                self._refuse(loop, nest, context)
            else:
                self._specialize(nest, context)

    def _specialize(self, nest: PersistentNest, context: PassContext) -> None:
        machine = _machine(context)
        found = {
            name: self._plan(name, nest, machine)
            for name in SCHEMES
            if self.options.scheme in ("auto", name)
        }
        plans = {name: plan for name, plan in found.items() if isinstance(plan, Plan)}
        refusals = {name: plan for name, plan in found.items() if isinstance(plan, Refusal)}
        if not plans:
            for refusal in refusals.values():
                self._refuse(nest.outer, refusal, context)
            return
        decision = context.decide(
            "warp-specialize",
            nest.outer.operation,
            self._facts(nest, plans, context),
            forced=None if self.options.scheme == "auto" else self.options.scheme,
            model=scheme_choice,
            default=Choice("none", "no measurement covers these facts"),
        )
        plan = plans.get(decision.value)
        if plan is None:
            context.remarks.missed(nest.outer.operation, f"left as it is: {decision}")
            return
        context.remarks.passed(nest.outer.operation, f"{plan}: {decision}")
        SCHEMES[plan.scheme].build(nest, plan, machine)

    def _plan(self, name: str, nest: PersistentNest, machine: Machine) -> Plan | Refusal:
        scheme = SCHEMES[name]
        refusal = scheme.obstacle(nest, machine)
        return refusal or choose(scheme, nest, self.options, machine.limits)

    def _facts(
        self, nest: PersistentNest, plans: Mapping[str, Plan], context: PassContext
    ) -> Mapping[str, Fact]:
        loops = nest_of(nest.outer)
        assert loops is not None
        facts = dict(nest_facts(loops, context))
        facts["stores"] = "tma" if nest.tma_stores else "pointers"
        facts["tile_load_bytes"] = sum(load.bytes for load in nest.tile_loads)
        for name, plan in plans.items():
            facts[f"stages_{name.replace('-', '_')}"] = plan.stages
        return facts

    def _refuse(self, loop: Loop, refusal: Refusal, context: PassContext) -> None:
        scheme = self.options.scheme
        if scheme == "auto" or not _can_be_meant(loop):
            context.remarks.missed(refusal.operation, f"not specialized: {refusal}")
            return
        message = f"scheme={scheme}, but this loop cannot be specialized so: {refusal}"
        place = context.remarks.locate(refusal.operation)
        raise TilepassError(Diagnostic("error", message, place).format())


def _machine(context: PassContext) -> Machine:
    """The matcher has seen to it that the target is known."""
    target = context.target or Target("cuda", 90)
    limits = limits_of(target)
    assert limits is not None
    return Machine(context.compiler.version, limits)


def _can_be_meant(loop: Loop) -> bool:
    """Whether a user who forces a scheme may mean this loop: one with the dot in an inner loop."""
    return any(dots_in(inner) for inner in loop.inner)
