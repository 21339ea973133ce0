"""What a pass is, and what it is given to run with."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tilepass.core.anchor import Anchor
from tilepass.core.assembler import AssemblerLog
from tilepass.core.decisions import (
    Choice,
    Decision,
    Fact,
    after_trials,
    decide,
    kept,
)
from tilepass.core.diagnostics import Diagnostic
from tilepass.core.errors import TilepassError
from tilepass.core.figures import BinaryFigures, StaticFigures, Trial
from tilepass.core.pipeline_spec import spell_value
from tilepass.core.refusal import Refusal
from tilepass.core.remarks import RemarkSink

if TYPE_CHECKING:
    from tilepass.ir.engine import Module

__all__ = [
    "Anchor",
    "BinaryFigures",
    "CompilerVersion",
    "Forms",
    "NoOptions",
    "Pass",
    "PassContext",
    "StaticFigures",
    "Target",
]


@dataclass(frozen=True)
class Target:
    """The GPU compiled for: `arch` is 90 for sm_90, "gfx942" on AMD; warp size in lanes."""

    backend: Literal["cuda", "hip"]
    arch: int | str
    warp_size: int = 32

    @classmethod
    def parse(cls, text: str, origin: str = "target") -> Target:
        """Read `cuda:90` or `hip:gfx942`. Raises TilepassError, which names `origin`."""
        backend, _, arch = text.partition(":")
        if backend == "cuda" and re.fullmatch(r"[0-9]+", arch):
            return cls("cuda", int(arch), 32)
        if backend == "hip" and re.fullmatch(r"gfx\w+", arch):
            # Wavefronts are 64 lanes wide up to CDNA (gfx9), 32 on RDNA (gfx10 and later).
            return cls("hip", arch, 64 if arch.startswith("gfx9") else 32)
        raise TilepassError(
            f"{origin} '{text}': expected cuda:NUMBER (cuda:90) or hip:gfxNAME (hip:gfx942)"
        )

    @property
    def shared_bytes(self) -> int | None:
        """The most shared memory that one CTA can have, None where it is not known."""
        return _SHARED_BYTES.get(self.arch)

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}"


_KIB = 1024
# CUDA C++ Programming Guide, technical specifications per compute capability: maximum amount of
# shared memory per thread block. AMD's LDS per work group: CDNA 3 and 4 ISA, "LDS".
_SHARED_BYTES: Mapping[int | str, int] = {
    **dict.fromkeys((80, 87), 163 * _KIB),
    **dict.fromkeys((86, 89, 120, 121), 99 * _KIB),
    **dict.fromkeys((90, 100, 103), 227 * _KIB),
    "gfx942": 64 * _KIB,
    "gfx950": 160 * _KIB,
}


@dataclass(frozen=True, order=True)
class CompilerVersion:
    """The compiler that a pass runs in, e.g. `("triton", (3, 6, 0))`."""

    name: str
    version: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.version))}"


@dataclass(frozen=True)
class Forms:
    """What a decision chooses between: the form that the source has, and how to make another.

    `make` gives a copy of the module in which the decision has gone a value's way; for `source`
    that is the module as it stands. `objection` says what, without a trial, speaks against a value
    that changes the source's form; empty if nothing does.
    """

    source: str
    make: Callable[[str], Module]
    objection: Callable[[str], str] = lambda _: ""


@dataclass
class PassContext:
    """What a pass may know and use besides the module.

    `target` is None where neither the command line nor the module names one; `compile_options`
    are the compiler's own (num_warps, num_stages, ...), empty when a file is processed.

    Two ways to see what the compiler would make of a module, which stays as it is. None where there
    are none:
    `lower` (CuTe) gives a lowered copy for analysis; its operations keep their locations, and live
    only as long as the copy is held.
    `trial` compiles a copy to a binary and returns its figures: BinaryFigures in CuTe. In Triton it
    goes on from the place of the pass in the pipeline, passes of tilepass that come later included;
    None where a file is processed, and on AMD. `decide` calls it where it is given `forms`.
    Both raise TilepassError where the compiler does not take the module.

    `decisions` are those of this run of the pass, `history` those of all runs.
    """

    pass_name: str
    compiler: CompilerVersion
    remarks: RemarkSink
    target: Target | None = None
    compile_options: Mapping[str, object] = field(default_factory=dict[str, object])
    decisions: list[Decision] = field(default_factory=list[Decision])
    lower: Callable[[Module], Module] | None = None
    trial: Callable[[Module], StaticFigures] | None = None
    history: list[Decision] = field(default_factory=list[Decision])

    def decide(
        self,
        kind: str,
        where: object,
        facts: Mapping[str, Fact],
        *,
        forced: str | None = None,
        model: Callable[[Mapping[str, Fact]], Choice | None],
        default: Choice,
        forms: Forms | None = None,
    ) -> Decision:
        """Decide and record: forced > cost model > default (see core.decisions).

        With `forms`, what a cost model would change is compiled first where the compiler can do
        that, and not chosen where its figures speak against it. A forced choice is not tried.
        """
        decision = decide(
            kind,
            facts,
            forced=forced,
            model=model,
            default=default,
            location=self.remarks.locate(where),
        )
        if forms and decision.source == "cost-model" and decision.value != forms.source:
            decision = self._tried(decision, forms)
        self.record(decision)
        return decision

    def record(self, decision: Decision) -> None:
        """Keep a decision, new or of an earlier run of the pass that had the same outcome."""
        self.decisions.append(decision)
        self.history.append(decision)

    def retract(self) -> None:
        """Take back what this run decided: nothing of it has come true."""
        for decision in self.decisions:
            self.history.remove(decision)
        self.decisions.clear()

    def refuse(self, refusal: Refusal, instead: str = "", *, forced: str = "") -> None:
        """Tell why an operation stays as it is.

        A missed remark that begins with what happens `instead`; where the user has `forced` the
        rewrite, TilepassError at the operation that says so (`mode=on, but ...`).
        """
        if not forced:
            message = f"{instead}: {refusal}" if instead else str(refusal)
            self.remarks.missed(refusal.operation, message)
            return
        place = self.remarks.place(refusal.operation)
        raise TilepassError(Diagnostic("error", f"{forced}: {refusal}", place).format())

    def _tried(self, decision: Decision, forms: Forms) -> Decision:
        if reason := forms.objection(decision.value):
            return kept(decision, forms.source, reason)
        trial = self.trial
        if trial is None:
            return replace(decision, trials=None)

        def compile_form(value: str) -> Trial:
            try:
                return Trial(value, trial(forms.make(value)))
            except TilepassError as error:
                return Trial(value, None, str(error).strip().partition("\n")[0])

        limit = self.target.shared_bytes if self.target else None
        return after_trials(decision, forms.source, compile_form, limit)


@dataclass(frozen=True)
class NoOptions:
    """The options of a pass that has none."""


class Pass(ABC):
    """A compiler pass. Subclasses set `name`, `anchor`, `touches`, and `Options` if they have any.

    `touches` names operations (`"tt.dot"`): a module whose text holds none of them is not even
    parsed. An empty tuple means every module. A pass that touches operations stays in the compiler
    that its `anchor` is in, wherever a pipeline places it.

    A pass that is not `movable` stays at its anchor: what it rests on may not hold elsewhere.
    """

    name: ClassVar[str]
    anchor: ClassVar[Anchor]
    touches: ClassVar[tuple[str, ...]] = ()
    movable: ClassVar[bool] = True
    Options: ClassVar[type[Any]] = NoOptions

    def __init__(self, options: Any = None) -> None:
        self.options: Any = self.Options() if options is None else options

    @abstractmethod
    def run(self, module: Module, context: PassContext) -> None:
        """Inspect and rewrite `module` in place."""

    def assembled(self, log: AssemblerLog, context: PassContext) -> None:
        """Look at what the assembler said of a kernel, with the context that `run` had for it.

        Only where a pass overrides this is the log kept.
        """
        del log, context

    def __str__(self) -> str:
        """The pass in pipeline syntax, with every option spelled out."""
        options = ",".join(
            f"{option.name.replace('_', '-')}="
            + spell_value(spell(getattr(self.options, option.name)))
            for option in fields(self.options)
        )
        return f"{self.name}{{{options}}}" if options else self.name


def spell(value: object) -> str:
    """An option value as text, as `build_options` reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


OnFailure = Literal["stop", "skip"]
ON_FAILURE: tuple[OnFailure, ...] = ("stop", "skip")


@dataclass(frozen=True)
class Placed:
    """A pass and where it runs.

    `on_failure`: where it raises, leaves invalid IR or changes what a kernel computes, the
    compilation stops, or goes on with the kernel as it was before the pass.
    """

    instance: Pass
    anchor: Anchor
    on_failure: OnFailure = "stop"

    def __str__(self) -> str:
        """The pass in pipeline syntax, its options and anchor spelled out."""
        return f"{self.instance}@{self.anchor}"
