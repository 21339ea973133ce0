"""The compilers' stages by name, and which compiler a place is in."""

from __future__ import annotations

from typing import Literal

from tilepass.core.anchor import Anchor

# The one stage of the CuTe DSL: from Python to the module that its compiler is given.
TRACE = "trace"
# Triton's stages whose result is an MLIR module, and the one that starts from one. The latter's
# later passes work on LLVM operations, whose attributes differ between LLVM versions: the IR engine
# does not read them all, so EVERY means the passes of the former.
MLIR_STAGES = ("ttir", "glir", "ttgir")
LAST_STAGE = "llir"

Language = Literal["triton", "cute"]


def language_of(anchor: Anchor) -> Language | None:
    """Whose pipeline has this place; None for a stage of neither. Only Triton shows its passes."""
    if anchor.where == TRACE:
        return "cute"
    if anchor.position in ("before", "after") or anchor.where in (*MLIR_STAGES, LAST_STAGE):
        return "triton"
    return None
