# The DSL ships no types.
# pyright: basic, reportAttributeAccessIssue=false
"""From a recipe to its lowered module, without a GPU and without the compiler's later passes."""

from __future__ import annotations

from cutlass import cute
from cutlass.cutlass_dsl import CuTeDSL

from tests.fuzz_zero_structure.kernels import FuzzKernel, fake_arguments
from tests.fuzz_zero_structure.recipe import Recipe
from tilepass.analysis.zero_structure.program import tag_sites
from tilepass.frontends.cute.lowering import lower_for_analysis, stock_pipeline
from tilepass.ir.engine import Module, copied

CHIP = "sm_90a"


class _Traced(Exception):
    """Raised to stop the DSL once the module is there."""


def traced(recipe: Recipe) -> Module:
    """The module of a recipe's kernel as the DSL traces it."""
    found: list[Module] = []

    def keep(_owner: object, module: Module, _function: str) -> None:
        found.append(copied(module))
        raise _Traced

    kernel = FuzzKernel(recipe)
    try:
        with CuTeDSL._get_dsl().trace_finalize_hooks(keep):
            cute.compile[(cute.GPUArch(CHIP),)](kernel, *fake_arguments(recipe))
    except Exception:
        # The DSL wraps what a hook raises; an error before the hook is the kernel's own.
        if not found:
            raise
    return found[0]


def lowered(recipe: Recipe) -> Module:
    """The tagged module of a recipe, lowered for analysis."""
    module = traced(recipe)
    tag_sites(module)
    return lower_for_analysis(module, stock_pipeline(CHIP))
