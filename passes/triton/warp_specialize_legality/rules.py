"""What nvgpu-warp-specialization does with a function, by Triton version; in the order of asking.

Each rule was found by compiling on 3.6.0, 3.7.0, 3.8.0 and 3.9.0; what compiled was executed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilepass.core.pass_base import PassContext, Target
from tilepass.ir.engine import Module
from tilepass.passes.triton.warp_specialize_legality.facts import MarkedFunction

Kind = Literal["ignores", "fails on", "miscompiles", "works on", "not judged"]

HOPPER = 90
STAGES_ASKED = (3, 7)
"""The first version that leaves a kernel of one stage alone."""
BOXES_CHECKED = (3, 7)
"""The first version whose verifier compares a TMA copy's box with its buffer."""
ASSUMED = (
    "an assumption outside the loop keeps alive what the pass destroys (operation destroyed but "
    "still has uses); strip-assume removes it"
)
SHARED_MEMORY = 232448
"""Bytes of shared memory that a CTA may have on sm_90 (CUDA programming guide)."""


@dataclass(frozen=True)
class Settings:
    """What beside the function decides: where it is compiled for, by what, and how.

    `stages` is None where it is not known: when a file is processed.
    """

    target: Target | None
    triton: tuple[int, ...]
    stages: int | None

    @classmethod
    def of(cls, module: Module, context: PassContext) -> Settings:
        """Those of a pass's context."""
        stages = context.compile_options.get("num_stages")
        return cls(
            context.target, context.compiler.version, stages if isinstance(stages, int) else None
        )


@dataclass(frozen=True)
class Verdict:
    """What upstream does, and why."""

    kind: Kind
    reason: str

    @property
    def remedy(self) -> Literal["attribute", "assumption"] | None:
        """What to remove so that the kernel compiles, and right."""
        if self.kind not in ("fails on", "miscompiles"):
            return None
        return "assumption" if self.reason == ASSUMED else "attribute"

    def __str__(self) -> str:
        if self.kind == "not judged":
            return f"not judged: {self.reason}"
        return f"upstream {self.kind} this loop: {self.reason}"


def judge(function: MarkedFunction, settings: Settings) -> Verdict:
    """What upstream's pass does with a marked function."""
    return (
        _other_target(settings)
        or _ignored(function, settings)
        or _cannot_load(function)
        or _cannot_arrange(function)
        or _cannot_cut(function)
        or _wrong_descriptors(function, settings)
        or _wrong_offsets(function)
        or _too_large(function, settings)
        or _assumed(function)
        or _works(function)
    )


def _other_target(settings: Settings) -> Verdict | None:
    target = settings.target
    if target is None or (target.backend == "cuda" and target.arch == HOPPER):
        return None
    if target.backend != "cuda":
        return Verdict("ignores", f"the {target.backend} back end has no warp specialization")
    if isinstance(target.arch, int) and target.arch < HOPPER:
        return Verdict("ignores", f"{target} has no warp-group dots")
    return Verdict(
        "not judged", f"on {target} the loop is for tritongpu-automatic-warp-specialization"
    )


def _ignored(function: MarkedFunction, settings: Settings) -> Verdict | None:
    if function.not_specialized:
        return Verdict("ignores", function.not_specialized)
    if function.dot is None:
        return Verdict("ignores", "no warp-group dot in a loop has operands that are loaded there")
    if settings.stages is not None and settings.stages < 2 and settings.triton >= STAGES_ASKED:
        return Verdict("ignores", f"num_stages is {settings.stages}: nothing would overlap")
    return None


def _assumed(function: MarkedFunction) -> Verdict | None:
    return None if function.assumption is None else Verdict("fails on", ASSUMED)


def _cannot_load(function: MarkedFunction) -> Verdict | None:
    if function.by_pointer is None:
        return None
    return Verdict(
        "fails on",
        "an operand is loaded through pointers, and the loading warp can only do so by TMA; load "
        "through a descriptor made in the kernel",
    )


def _cannot_arrange(function: MarkedFunction) -> Verdict | None:
    if not function.rearranged:
        return None
    return Verdict(
        "fails on",
        f"{function.rearranged} and is not K-major, which wgmma takes with 16 bits alone: it would "
        "go through registers between the loading warp and the dot; store it K-major",
    )


def _cannot_cut(function: MarkedFunction) -> Verdict | None:
    if function.cut == "N" and not function.half_fits:
        return Verdict(
            "fails on",
            "the tile has too few rows to cut, and cut along N its halves are narrower than the "
            "dot's instruction",
        )
    if any(access.unowned for access in function.accesses):
        return Verdict(
            "fails on",
            "a coordinate that would be moved to the half's start is not a result of an operation "
            "(a loop's variable or an argument)",
        )
    return None


def _wrong_descriptors(function: MarkedFunction, settings: Settings) -> Verdict | None:
    by_host = [access for access in function.accesses if access.by_host]
    if not by_host:
        return None
    reason = (
        "a descriptor that is an argument of the function keeps its box when the tile is cut "
        f"along {function.cut}"
    )
    if settings.triton >= BOXES_CHECKED or any(access.stores for access in by_host):
        return Verdict("fails on", f"{reason}; make the descriptor in the kernel")
    return Verdict(
        "miscompiles",
        f"{reason}, and overflows a buffer of half its size; make the descriptor in the kernel",
    )


def _wrong_offsets(function: MarkedFunction) -> Verdict | None:
    if not function.doubled:
        return None
    return Verdict(
        "miscompiles",
        "a coordinate of a TMA access is also spread over a tensor (pointers, a mask): there the "
        "second half's offset is added twice",
    )


def _too_large(function: MarkedFunction, settings: Settings) -> Verdict | None:
    if settings.stages is None:
        return None
    size = settings.stages * function.slot_bytes + function.tile_bytes
    if size <= SHARED_MEMORY:
        return None
    return Verdict(
        "fails on",
        f"{settings.stages} stages of {function.slot_bytes} bytes and {function.tile_bytes} bytes "
        f"of tiles exceed the {SHARED_MEMORY} bytes of shared memory; take fewer stages",
    )


def _works(function: MarkedFunction) -> Verdict:
    if function.unusual:
        return Verdict("not judged", f"nothing is known to go wrong, but {function.unusual}")
    if function.cut is None:
        return Verdict(
            "works on", "but the tile is too small to cut: both groups compute all of it"
        )
    return Verdict(
        "works on",
        f"two groups, each half of the tile along {function.cut}, with the epilogue in each and "
        "dots that are waited for at once",
    )
