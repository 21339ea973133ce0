"""`strip-assume`: keep assumptions from crashing Hopper's warp specialization."""

from __future__ import annotations

from tilepass.core.anchor import Anchor
from tilepass.core.pass_base import Pass, PassContext
from tilepass.core.registry import register
from tilepass.ir import engine
from tilepass.ir.effects import is_pure
from tilepass.ir.engine import Module, Operation, ir
from tilepass.ir.loops import defining_operation, is_inside_operation
from tilepass.ir.walks import is_used, module_integer

ASSUME = "llvm.intr.assume"
SPECIALIZE = "tt.warp_specialize"
# nvgpu-warp-specialization leaves other modules alone.
_WARPS = 4


@register
class StripAssume(Pass):
    """Remove `llvm.intr.assume` where nvgpu-warp-specialization would crash on it.

    Before:
        %positive = arith.cmpi sgt, %n, %c0
        llvm.intr.assume %positive
        scf.for ... { ... } {tt.warp_specialize}
    After:
        scf.for ... { ... } {tt.warp_specialize}

    That pass moves what a specialized loop needs into the partitions and destroys the originals,
    the operands of assumptions outside the loop included: "operation destroyed but still has uses"
    (Triton 3.6 and 3.9). Sound: an assumption computes nothing. The anchor is the last place before
    the crash, so that whatever runs earlier still sees the assumptions; on targets without that
    pass nothing happens.

    Kept, with a remark: assumptions inside the specialized loops, which do no harm; all of a
    function that has no such loop or a condition with an else branch, and all of a module with
    other than 4 warps, since those are not specialized.
    """

    name = "strip-assume"
    anchor = Anchor.before("nvgpu-warp-specialization").if_present()
    touches = (ASSUME,)

    def run(self, module: Module, context: PassContext) -> None:
        for function in module.body.operations:
            strip_assumptions(engine.operations(function), context)


def strip_assumptions(function: list[Operation], context: PassContext) -> None:
    """Remove those of a function, given as all operations inside it, that do harm."""
    assumptions = [each for each in function if each.name == ASSUME]
    if not assumptions:
        return
    loops = [each for each in function if SPECIALIZE in each.attributes]
    if reason := why_not_specialized(loops, function):
        context.remarks.missed(assumptions[0], f"assumptions kept: {reason}")
        return
    for assumption in assumptions:
        if any(is_inside_operation(assumption, loop) for loop in loops):
            context.remarks.analysis(assumption, "assumption kept: inside the specialized loop")
            continue
        condition = assumption.operands[0]
        context.remarks.passed(
            assumption, "removed an assumption that nvgpu-warp-specialization would crash on"
        )
        assumption.erase()
        _erase_unused(condition)


def why_not_specialized(loops: list[Operation], function: list[Operation]) -> str:
    """Why nvgpu-warp-specialization leaves a function alone, empty if it does not."""
    if not loops:
        return "no loop of the function asks for warp specialization"
    if any(each.name == "scf.if" and len(each.regions[1].blocks) for each in function):
        return "a function with an else branch is not warp specialized"
    warps = module_integer(loops[0], "ttg.num-warps")
    if warps != _WARPS:
        return f"a program of {warps} warps is not warp specialized"
    return ""


def _erase_unused(value: ir.Value) -> None:
    """Erase the pure operations that only an erased one used."""
    pending = [value]
    while pending:
        operation = defining_operation(pending.pop())
        if operation is None or not is_pure(operation):
            continue
        if is_used(operation):
            continue
        pending.extend(operation.operands)
        operation.erase()
