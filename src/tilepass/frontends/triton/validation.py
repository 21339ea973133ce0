"""Executing on the CPU what passes rewrote, while the kernel is compiled.

Imported only where validation is on: it loads the simulator. After each pass that changed a kernel
the module before it and the one after it run on the same random arguments, and must leave the same
bits in every array. Triton's own passes are not compared: what they do to a kernel is not the
pass's doing. Before a rewritten kernel is lowered to LLVM, its asynchronous protocol is checked.
Not so the registers that unfinished dots read: older Tritons overwrite them without any pass (see
`fix-dot-wait`; `tilepass check` reports it).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from tilepass.core.diagnostics import SourceLocation
from tilepass.core.errors import PassFailure, TilepassError
from tilepass.core.pass_base import Pass, PassContext
from tilepass.frontends.triton.bridge import Rewrite, TritonModule, to_engine
from tilepass.frontends.triton.reproducer import Failure
from tilepass.ir import engine
from tilepass.sim import equivalence
from tilepass.sim.compiler import Program
from tilepass.sim.equivalence import DEFAULT_SEEDS, DEFAULT_SHAPES
from tilepass.sim.faults import Fault, SimulatorFailure, UnsupportedOperationsError
from tilepass.sim.inputs import parse_shapes
from tilepass.sim.protocol.command import ProtocolError, check_protocol
from tilepass.sim.values import STEP_LIMIT

# A pass may make a kernel take more steps, but not run on and on.
_STEPS_AFTER = 4 * STEP_LIMIT


@dataclass(frozen=True)
class _DifferentValues(Failure):
    """The passes made the kernel compute something else on these shapes."""

    shapes: str = ""

    def command(self, file: str) -> str:
        """Run the passes and compare what they leave with the file."""
        flag = f"--shapes {shlex.quote(self.shapes)}"
        return f"{super().command(file)} | tilepass check {file} --against - {flag}"


@dataclass(frozen=True)
class _WrongProtocol(Failure):
    """The file holds the kernel whose protocol goes wrong."""

    shapes: Sequence[str] = ()

    def command(self, file: str) -> str:
        """Check the file."""
        flags = [f"--shapes {shlex.quote(each)}" for each in self.shapes]
        return " ".join(["tilepass check", file, *flags])


class Validator:
    """Checks what passes do, on sizes as of `tilepass check --shapes`; without any, on its own.

    Raises OptionError for sizes that cannot be read. What cannot be executed is a `missed` remark
    of the pass, `not validated: ...`; what was checked an `analysis` remark. Where the simulator
    itself fails, SimulatorFailure ends the compilation.
    """

    def __init__(self, shapes: Sequence[str] = ()) -> None:
        self._given = tuple(shapes)
        self._shapes = [parse_shapes(text) for text in shapes or DEFAULT_SHAPES]

    def check_values(self, rewrite: Rewrite) -> None:
        """Compare the kernel before the pass with the one after it.

        Raises PassFailure where they differ, or where only the second does something undefined.
        """
        context = rewrite.context
        try:
            before = Program(engine.parse_expanded(rewrite.before))
            after = Program(rewrite.after)
        except TilepassError as error:
            _not_validated(context, error)
            return
        executed, skipped = 0, set[str]()
        for case in equivalence.cases(before, self._shapes, DEFAULT_SEEDS, None):
            shapes = str(case.shapes)
            if shapes in skipped:
                continue
            try:
                left = equivalence.reference(before, case)
            except TilepassError as error:
                skipped.add(shapes)
                _not_validated(context, error, f"with shapes {shapes}, before the pass: ")
                continue
            try:
                equivalence.compare_with(left, before, after, step_limit=_STEPS_AFTER)
            except TilepassError as error:
                raise _different(rewrite, before.name, shapes, error) from error
            executed += 1
        if executed:
            message = f"validated: {before.name} computes the same in {executed} cases"
            context.remarks.analysis(None, message)

    def check_protocol(
        self, module: TritonModule, passes: Sequence[Pass], context: PassContext
    ) -> None:
        """Check barriers and asynchronous copies of a kernel that these passes rewrote.

        `module` is TTGIR after all of Triton's passes on it; `context` is the last pass's. Raises
        PassFailure with the schedule that goes wrong.
        """
        try:
            said = check_protocol(to_engine(module), None, self._given, DEFAULT_SEEDS)
        except ProtocolError as error:
            names = ", ".join(dict.fromkeys(each.name for each in passes))
            reason = (
                "rewrote a kernel whose asynchronous protocol goes wrong at the end of ttgir "
                f"(rewritten by: {names})\n{error}"
            )
            failure = _WrongProtocol(passes, context, module.str(), reason, shapes=self._given)
            raise PassFailure(failure.message) from error
        except TilepassError as error:
            _not_validated(context, error, "protocol: ")
            return
        if said:
            context.remarks.analysis(None, f"validated: protocol: {said}")


def _different(rewrite: Rewrite, kernel: str, shapes: str, error: TilepassError) -> PassFailure:
    """The pass's failure; raises what is none of the pass's."""
    if isinstance(error, SimulatorFailure):
        raise error
    reason = f"changed what {kernel} computes\n{error}"
    original = rewrite.original()
    failure = _DifferentValues(rewrite.passes, rewrite.context, original, reason, shapes=shapes)
    return PassFailure(failure.message)


def _not_validated(context: PassContext, error: TilepassError, what: str = "") -> None:
    """The remark; raises what is a mistake of the simulator."""
    if isinstance(error, SimulatorFailure):
        raise error
    location, why = _summary(error)
    context.remarks.missed(location, f"not validated: {what}{why}")


def _summary(error: TilepassError) -> tuple[SourceLocation | None, str]:
    """Where and why, on one line."""
    if isinstance(error, UnsupportedOperationsError):
        first, *others = dict.fromkeys(each.message for each in error.found)
        more = f" (and {len(others)} more such operations)" if others else ""
        return error.found[0].location, first + more
    if isinstance(error, Fault):
        where = f"{error.operation}: " if error.operation else ""
        return error.location, f"{where}{error.message}"
    return None, str(error)
