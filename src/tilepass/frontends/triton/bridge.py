"""The bridge between Triton's modules and the IR engine's, and the trip that passes make over it.

A trip costs two prints and two parses, 4 ms for 200 operations. Passes that follow each other
share one; where none of the operations that they touch occurs, there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilepass.core.errors import ParseError, PassFailure, TilepassError
from tilepass.core.pass_base import Pass, PassContext
from tilepass.core.reproducer import Failure, watched, write_reproducer
from tilepass.frontends.triton.capture import (
    Captured,
    capture_diagnostics,
    parse_diagnostics,
)
from tilepass.frontends.triton.modules import (
    TritonModule,
    generic_text,
    load,
    new_context,
    operation_names,
    parse,
)
from tilepass.ir import engine
from tilepass.ir.aliases import Aliases, chunks
from tilepass.ir.checked_run import Problem, checked_run
from tilepass.ir.engine import ir
from tilepass.ir.memory_file import MemoryFile

__all__ = [
    "Captured",
    "Rewrite",
    "TritonModule",
    "capture_diagnostics",
    "from_engine",
    "generic_text",
    "load",
    "new_context",
    "operation_names",
    "parse",
    "parse_diagnostics",
    "read_named",
    "run_passes",
    "to_engine",
]

_PLACE = re.compile(r'loc\("([^"]*)":(\d+):(\d+)\)')
_VALUE = re.compile(r"%([A-Za-z_$.][\w$.-]*)")

MakeContext = Callable[[Pass], PassContext]
AfterPass = Callable[[Pass, Callable[[], str]], None]


@dataclass(frozen=True)
class Rewrite:
    """What the last of `passes` made of `before`, in generic text: `after`, which verifies.

    `original` prints the module before the first of the passes, as Triton does.
    """

    passes: Sequence[Pass]
    context: PassContext
    before: str
    after: engine.Module
    original: Callable[[], str]


Validate = Callable[[Rewrite], None]


def to_engine(module: TritonModule) -> engine.Module:
    """A copy of the module in the IR engine."""
    return engine.parse(generic_text(module))


def read_named(text: str, file: str) -> engine.Module:
    """A module of the engine from a file's text. Parameters without names in their locations, as
    those of hand-written IR, are called as the text calls them."""
    module = to_engine(load(text, file))
    lines = text.split("\n")
    for operation in engine.operations(module):
        if operation.name == "tt.func" and operation.regions[0].blocks:
            for argument in operation.regions[0].blocks[0].arguments:
                if name := _written_name(str(argument.location), lines, file):
                    with module.context:
                        ir.BlockArgument(argument).set_location(
                            ir.Location.name(name, argument.location)
                        )
    return module


def _written_name(location: str, lines: Sequence[str], file: str) -> str | None:
    """What stands where a location of the file itself points to, if that is a value."""
    at = _PLACE.fullmatch(location)
    if at is None or at[1] != file or int(at[2]) > len(lines):
        return None
    value = _VALUE.match(lines[int(at[2]) - 1], int(at[3]) - 1)
    return value[1] if value else None


def from_engine(
    module: engine.Module, context: Any, aliases: Aliases | None = None
) -> TritonModule:
    """The module in Triton's context. Raises ParseError where Triton does not accept it.

    `aliases` are those of the text that the module was parsed from, to shorten the way back.
    """
    with _printed(module, aliases) as file:
        return parse(file, context)


def _printed(module: engine.Module | engine.Operation, aliases: Aliases | None) -> MemoryFile:
    printed = MemoryFile()
    engine.print_to(module, printed)
    if aliases is None:
        return printed
    with printed:
        return MemoryFile(aliases.shorten(printed.chunks()))


def run_passes(
    module: TritonModule,
    passes: Sequence[Pass],
    make_context: MakeContext,
    after_pass: AfterPass | None = None,
    validate: Validate | None = None,
    rewrote: Callable[[Pass], None] | None = None,
) -> TritonModule:
    """Run passes one after the other on one trip; returns the module to go on with.

    That is `module` itself if no pass's `touches` occur; it is unchanged in any case. `after_pass`
    is called after each pass that ran, with a function that prints the module as Triton would;
    before that `validate`, which raises what it finds, and `rewrote`, for those that changed it.
    Raises PassFailure, with a reproducer, when a pass raises or leaves invalid IR.
    """
    everywhere = all(not a_pass.touches for a_pass in passes)
    names = set[str]() if everywhere else operation_names(module)
    if not any(_may_fire(a_pass, names) for a_pass in passes):
        return module
    trip = _Trip(module, passes, make_context, validate)
    for index, a_pass in enumerate(passes):
        if not _may_fire(a_pass, names):
            continue
        if trip.run(index) and rewrote:
            rewrote(a_pass)
        if after_pass:
            after_pass(a_pass, trip.pretty)
        if index + 1 < len(passes) and not everywhere:
            names = engine.operation_names(trip.working)
    return trip.finish()


def _may_fire(a_pass: Pass, names: set[str]) -> bool:
    return not a_pass.touches or not names.isdisjoint(a_pass.touches)


class _Trip:
    """One module's way through the engine."""

    def __init__(
        self,
        module: TritonModule,
        passes: Sequence[Pass],
        make_context: MakeContext,
        validate: Validate | None,
    ) -> None:
        self._original = module
        self._passes = passes
        self._make_context = make_context
        self._validate = validate
        self._aliases, text = Aliases.expand(generic_text(module))
        self.working = engine.parse_expanded(text)
        self._text = self._start = engine.print_generic(self.working)
        # (index of the pass, its context, the module after it): which pass broke the module, when
        # only Triton's verifier notices at the end. A single pass needs no copies.
        self._after: list[tuple[int, PassContext, engine.Operation | None]] = []

    def run(self, index: int) -> bool:
        """Run one pass and verify what the engine can verify; returns whether it changed it."""
        a_pass = self._passes[index]
        context = self._make_context(a_pass)
        before = self._text
        crash = Failure(self._passes[: index + 1], context, self._start, "crashed")
        if problem := watched(crash, lambda: self._run(a_pass, context)):
            raise self._failure(index, context, problem.reason) from problem.cause
        copy = self.working.operation.clone() if len(self._passes) > 1 else None
        self._after.append((index, context, copy))
        if before == self._text:
            return False
        if self._validate:
            # What Triton's verifier rejects is reported as that.
            self._parsed(self._shortened())
            passes, original = self._passes[: index + 1], self._original.str
            self._validate(Rewrite(passes, context, before, self.working, original))
        return True

    def _run(self, a_pass: Pass, context: PassContext) -> Problem | None:
        if problem := checked_run(a_pass, self.working, context):
            return problem
        # Of IR that hangs together no more, the printer crashes.
        self._text = engine.print_generic(self.working)
        return None

    def pretty(self) -> str:
        """The module as it is now, in Triton's form."""
        return self._parsed(self._shortened()).str()

    def finish(self) -> TritonModule:
        """The module back in Triton's context, verified by it; ends the trip."""
        # Its memory is wanted for what Triton makes of the text.
        del self.working
        return self._parsed(self._shortened())

    def _shortened(self) -> MemoryFile:
        """The module as the last pass left it, for Triton."""
        return MemoryFile(self._aliases.shorten(chunks(self._text)))

    def _parsed(self, file: MemoryFile) -> TritonModule:
        index, context, _ = self._after[-1]
        crash = Failure(self._passes[: index + 1], context, self._start, "left IR: Triton crashed")
        try:
            with file:
                return watched(crash, lambda: parse(file, self._original.context))
        except ParseError as error:
            self._require_exact_start()
            index, context, reason = self._culprit(error)
            raise self._failure(index, context, f"left invalid IR:\n{reason}") from error

    def _require_exact_start(self) -> None:
        """Raise TilepassError where Triton rejects what no pass has changed yet."""
        try:
            with _printed(engine.parse_expanded(self._start), self._aliases) as file:
                parse(file, self._original.context)
        except ParseError as error:
            _, context, _ = self._after[0]
            reason = "is not to blame: Triton rejects its own module from before the pass"
            failure = Failure(self._passes[:1], context, self._original.str(), reason)
            raise TilepassError(
                f"pass '{context.pass_name}' {reason}:\n{error}\n{write_reproducer(failure)}"
            ) from error

    def _culprit(self, last: ParseError) -> tuple[int, PassContext, str]:
        """The first pass after which Triton rejects the module."""
        for index, context, copy in self._after[:-1]:
            try:
                assert copy is not None
                with _printed(copy, self._aliases) as file:
                    parse(file, self._original.context)
            except ParseError as error:
                return index, context, str(error)
        index, context, _ = self._after[-1]
        return index, context, str(last)

    def _failure(self, index: int, context: PassContext, reason: str) -> PassFailure:
        failure = Failure(self._passes[: index + 1], context, self._original.str(), reason)
        return PassFailure(failure.message)
