"""Putting a pipeline in force in this process: `with enabled("flatten-loops"): ...`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilepass.core.decisions import Decision
from tilepass.core.errors import OptionError, nearest
from tilepass.core.pass_base import (
    BinaryFigures,
    CompilerVersion,
    Pass,
    PassContext,
    Placed,
    Target,
)
from tilepass.core.remarks import Remark, RemarkKind
from tilepass.core.versions import cute_version, triton_version
from tilepass.frontends.contexts import make_context
from tilepass.frontends.cute.part import CutePart, is_for_cute
from tilepass.frontends.placed import place_passes
from tilepass.frontends.triton.part import TritonPart

if TYPE_CHECKING:
    from tilepass.frontends.observing import StageObserver
    from tilepass.frontends.triton.validation import Validator
    from tilepass.ir.engine import Module

REMARK_KINDS: tuple[RemarkKind, ...] = ("passed", "missed", "analysis")


@dataclass
class Session:
    """What happened in one `with enabled(...)` block, over all kernels compiled in it."""

    pipeline: str
    shown: frozenset[RemarkKind]
    remarks: list[Remark] = field(default_factory=list[Remark])
    decisions: list[Decision] = field(default_factory=list[Decision])
    _printed: set[str] = field(default_factory=set[str])

    def hear(self, remark: Remark) -> None:
        """Keep a remark, and print it to stderr the first time if its kind is shown."""
        self.remarks.append(remark)
        text = remark.format()
        if remark.kind in self.shown and text not in self._printed:
            self._printed.add(text)
            # Without a stderr `print` would take stdout.
            if sys.stderr:
                print(text, file=sys.stderr)


class Activation(ContextDecorator):
    """A pipeline that can be put in force, any number of times, nested or not."""

    def __init__(
        self,
        passes: Sequence[Placed],
        observers: Sequence[StageObserver],
        shown: frozenset[RemarkKind],
        validator: Validator | None = None,
    ) -> None:
        self.passes = tuple(passes)
        self._shown = shown
        for_cute = [placed for placed in passes if is_for_cute(placed)]
        for_triton = [placed for placed in passes if not is_for_cute(placed)]
        # A pipeline without passes is one for Triton: it means stock Triton.
        required = bool(for_triton) or not for_cute
        if required:
            triton_version()
        self._triton = TritonPart(for_triton, observers, validator, required=required)
        self._cute = CutePart(for_cute, observers, _make_trial)
        self._not_validated = for_cute if validator else []
        self.key = self._triton.key

    def __enter__(self) -> Session:
        """Put the pipeline in force; the session collects its remarks and decisions."""
        return self.enter()

    def enter(self, *, of_environment: bool = False) -> Session:
        """As `__enter__`; `of_environment` where the processes started from here have it too."""
        session = Session(",".join(map(str, self.passes)), self._shown)
        skipped = _skipper(session)
        maker = _context_maker(session, triton_version)
        self._triton.enter(maker, skipped, of_environment=of_environment)
        maker = _context_maker(session, cute_version)
        self._cute.enter(maker, session.hear, of_environment=of_environment)
        for placed in self._not_validated:
            reason = "not validated: the simulator executes Triton's IR, not CuTe's"
            session.hear(Remark("missed", placed.instance.name, reason))
        return session

    def __exit__(self, *exception: object) -> None:
        """Take the pipeline out of force."""
        self._cute.exit()
        self._triton.exit()


def enabled(
    pipeline_text: str,
    *,
    observers: Iterable[StageObserver] = (),
    load: Iterable[str | Path] = (),
    remarks: str = "missed",
    validate: bool = False,
    validate_shapes: Sequence[str] = (),
    on_failure: str = "stop",
) -> Activation:
    """A context manager in which Triton and the CuTe DSL compile with a pipeline of passes.

    An inner block's pipeline replaces the outer one's: `enabled("")` gives the stock compilers.
    Observers of all blocks are called. `load` names Python files with passes. `remarks` lists the
    kinds of remarks that go to stderr: `passed`, `missed`, `analysis`, `all`, `none`.

    With `validate`, kernels that passes rewrote are executed on the CPU while they are compiled; a
    difference ends the compilation (see frontends.triton.validation). `validate_shapes` are sizes
    for that, as of `tilepass check --shapes`, and imply it. What a cache holds is not compiled, and
    so not validated; nor are CuTe kernels, which a remark says.

    Where the pipeline for CuTe changes, caches in which libraries keep kernels that they compiled
    are emptied, and those on disk are left alone (see frontends.cute.library_caches). A kernel that
    the program itself holds stays what it was compiled to.

    `on_failure="skip"`: a pass that raises, refuses what the pipeline asks of it, leaves invalid IR
    or changes what a kernel computes is left out of that kernel, with a `missed` remark, and the
    compilation goes on; `stop` ends it. Where what passes made fails later, in Triton's own passes
    or in the check of its protocol, the kernel is compiled without any of them; not so where the
    assembler fails.

    The pipeline holds for the process, all of its threads included, and for processes that it
    forks; for processes that start anew see `tilepass run` and the variable TILEPASS. Enter and
    leave it while no other thread is in the first launch of a kernel: the caches on disk stay right
    in any case, but that launch may keep the kernel in memory under the other pipeline.

    Raises PipelineSyntaxError, UnknownPassError, OptionError, UnsupportedVersionError, AnchorError
    for a pass of one compiler at a place of the other; compiling raises AnchorError for a pass
    whose place the compilation does not have, and PassFailure.
    """
    shown = parse_remark_kinds(remarks)
    passes = place_passes(pipeline_text, load, on_failure=on_failure)
    validator = _make_validator(validate_shapes) if validate or validate_shapes else None
    return Activation(passes, tuple(observers), shown, validator)


def parse_remark_kinds(text: str) -> frozenset[RemarkKind]:
    """The kinds in `missed`, `passed,missed`, `all` or `none`. Raises OptionError."""
    shown: set[RemarkKind] = set()
    for word in filter(None, (part.strip() for part in text.split(","))):
        if word == "all":
            shown.update(REMARK_KINDS)
        elif word in REMARK_KINDS:
            shown.add(word)
        elif word != "none":
            known = (*REMARK_KINDS, "all", "none")
            raise OptionError(
                f"remarks: '{word}' is not one of {', '.join(known)}{nearest(word, known)}"
            )
    return frozenset(shown)


def _make_validator(shapes: Sequence[str]) -> Validator:
    # Here and not above: it loads the simulator.
    from tilepass.frontends.triton.validation import Validator

    return Validator(shapes)


def _make_trial(pipeline: str, target: Target) -> Callable[[Module], BinaryFigures]:
    # Here and not above: it is used by few passes, and loads Triton for its tools.
    from tilepass.frontends.cute.trial import make_trial

    return make_trial(pipeline, target)


def _context_maker(session: Session, version: Callable[[], CompilerVersion]) -> Any:
    def make(instance: Pass, target: Target, options: Mapping[str, object]) -> PassContext:
        return make_context(
            instance.name,
            version(),
            target,
            options,
            listeners=(session.hear,),
            history=session.decisions,
        )

    return make


def _skipper(session: Session) -> Any:
    def skipped(placed: Placed, reason: str) -> None:
        name = placed.instance.name
        session.hear(Remark("missed", name, f"did not run: {reason}"))

    return skipped
