"""Where in a compiler's pipeline a pass runs: the compilers' stages by name, places in them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from tilepass.core.errors import AnchorError, nearest

Position = Literal["start", "end", "before", "after"]
_ANCHOR = re.compile(r"(start|end|before|after):([\w.+-]+?|\*)(?:#(\d+))?(\?)?$")
EVERY = "*"
# The one stage of the CuTe DSL: from Python to the module that its compiler is given.
TRACE = "trace"
# Triton's stages whose result is an MLIR module, and the one that starts from one. The latter's
# later passes work on LLVM operations, whose attributes differ between LLVM versions: the IR engine
# does not read them all, so EVERY means the passes of the former.
MLIR_STAGES = ("ttir", "glir", "ttgir")
LAST_STAGE = "llir"

Language = Literal["triton", "cute"]
# The stages of both compilers where modules are MLIR.
_ENDS = (*MLIR_STAGES, TRACE)


@dataclass(frozen=True)
class Anchor:
    """The start or end of a stage (`ttir`, `ttgir`), or a place next to one of Triton's passes.

    `where` is the stage's or the pass's name, or EVERY for a place next to each pass of the stages
    that end in MLIR; `occurrence` counts from 0 over the runs of that pass in the compilation. An
    `optional` anchor need not exist: any other that the compilation does not have is an error.
    """

    position: Position
    where: str
    occurrence: int = 0
    optional: bool = False

    @classmethod
    def end_of(cls, stage: str) -> Anchor:
        """After the last pass of a stage. Raises AnchorError for one that does not exist."""
        if stage not in _ENDS:
            raise AnchorError(
                f"anchor 'end:{stage}': there is no such place{nearest(stage, _ENDS)} "
                f"(stages: {', '.join(_ENDS)})"
            )
        return cls("end", stage)

    @classmethod
    def before(cls, triton_pass: str, occurrence: int = 0) -> Anchor:
        """Immediately before a run of `triton_pass`. Raises AnchorError for what is not a name."""
        return cls.parse(str(cls("before", triton_pass, occurrence)))

    @classmethod
    def after(cls, triton_pass: str, occurrence: int = 0) -> Anchor:
        """Immediately after a run of `triton_pass`. Raises AnchorError for what is not a name."""
        return cls.parse(str(cls("after", triton_pass, occurrence)))

    def if_present(self) -> Anchor:
        """This place where the compilation has it, else nowhere."""
        return replace(self, optional=True)

    @classmethod
    def parse(cls, text: str) -> Anchor:
        """Read `start:ttir`, `end:ttgir`, `before:PASS`, `after:PASS#1`, `after:PASS?`, `after:*`.

        Raises AnchorError where the text has another form.
        """
        match = _ANCHOR.match(text)
        needs_pass = match and (match[3] or match[2] == EVERY)
        if not match or (needs_pass and match[1] in ("start", "end")):
            raise AnchorError(
                f"anchor '{text}': expected start:STAGE, end:STAGE, before:PASS or after:PASS, "
                "the last two with an optional #OCCURRENCE, each with a '?' if it may be missing"
            )
        position: Position = match[1]  # pyright: ignore[reportAssignmentType]
        return cls(position, match[2], int(match[3] or 0), match[4] is not None)

    def __str__(self) -> str:
        count = f"#{self.occurrence}" if self.occurrence else ""
        return f"{self.position}:{self.where}{count}{'?' if self.optional else ''}"


def language_of(anchor: Anchor) -> Language | None:
    """Whose pipeline has this place; None for a stage of neither. Only Triton shows its passes."""
    if anchor.where == TRACE:
        return "cute"
    if anchor.position in ("before", "after") or anchor.where in (*MLIR_STAGES, LAST_STAGE):
        return "triton"
    return None
