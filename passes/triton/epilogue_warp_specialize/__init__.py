"""`epilogue-warp-specialize`: share a persistent matmul out among specialized warps."""

from __future__ import annotations

from tilepass.core.anchor import Anchor
from tilepass.core.pass_base import Pass, PassContext
from tilepass.core.registry import register
from tilepass.ir.engine import Module
from tilepass.passes.triton.epilogue_warp_specialize.description import Refusal
from tilepass.passes.triton.epilogue_warp_specialize.match import candidate_loops, match
from tilepass.passes.triton.epilogue_warp_specialize.options import Options as _Options


@register
class EpilogueWarpSpecialize(Pass):
    """Derive a warp-specialized kernel from a plain persistent one."""

    name = "epilogue-warp-specialize"
    anchor = Anchor.after("triton-loop-aware-cse")
    touches = ("ttng.warp_group_dot",)

    Options = _Options
    options: _Options

    def run(self, module: Module, context: PassContext) -> None:
        for loop in candidate_loops(module):
            nest = match(loop, context.target)
            if isinstance(nest, Refusal):
                context.remarks.missed(nest.operation, str(nest))
