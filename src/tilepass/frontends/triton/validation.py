"""Executing on the CPU what passes rewrote, while the kernel is compiled.

Imported only where validation is on: it loads the simulator. After each pass that changed a kernel
the module before it and the one after it run on the same random arguments, and must leave the same
bits in every array. At the end of ttgir, where all of Triton's passes that act on a rewrite have
run, so do the module before the first rewrite and the one that will run. Where they differ, Triton
compiles the kernel without any pass: what it changes by itself is not the passes' doing.
Before a rewritten kernel is lowered to LLVM, its asynchronous protocol is checked.
Not so the registers that unfinished dots read: older Tritons overwrite them without any pass (see
`fix-dot-wait`; `tilepass check` reports it).
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilepass.core.diagnostics import SourceLocation
from tilepass.core.errors import PassFailure, TilepassError
from tilepass.core.pass_base import Pass, PassContext
from tilepass.core.reproducer import Failure
from tilepass.frontends.triton.bridge import Rewrite, TritonModule, to_engine
from tilepass.ir import engine
from tilepass.sim import equivalence
from tilepass.sim.compiler import Program
from tilepass.sim.coverage import Goal
from tilepass.sim.equivalence import DEFAULT_SEEDS
from tilepass.sim.faults import Fault, SimulatorFailure, UnsupportedOperationsError
from tilepass.sim.inputs import parse_shapes
from tilepass.sim.protocol_check import ProtocolError, check_protocol
from tilepass.sim.values import STEP_LIMIT

# A pass may make a kernel take more steps, but not run on and on.
_STEPS_AFTER = 4 * STEP_LIMIT


@dataclass(frozen=True)
class _DifferentValues(Failure):
    """The passes made the kernel compute something else in this case."""

    case: str = ""

    def command(self, file: str) -> str:
        """Run the passes and compare what they leave with the file."""
        return f"{super().command(file)} | tilepass check {file} --against - {self.case}"


@dataclass(frozen=True)
class _DifferentResult(Failure):
    """What is lowered computes something else than the file; it is in `result`."""

    case: str = ""
    result: str = ""

    def command(self, file: str) -> str:
        """Compare the two."""
        return f"tilepass check {file} --against {shlex.quote(self.result)} {self.case}"


@dataclass(frozen=True)
class _WrongProtocol(Failure):
    """The file holds the kernel whose protocol goes wrong."""

    shapes: Sequence[str] = ()

    def command(self, file: str) -> str:
        """Check the file."""
        flags = [f"--shapes {shlex.quote(each)}" for each in self.shapes]
        return " ".join(["tilepass check", file, *flags])


@dataclass(frozen=True)
class _Difference(Exception):
    """Two forms of a kernel differ in a case."""

    case: equivalence.Case
    error: TilepassError


class Validator:
    """Checks what passes do, on sizes as of `tilepass check --shapes`; without any, on its own.

    Raises OptionError for sizes that cannot be read. What cannot be executed is a `missed` remark
    of the pass, `not validated: ...`; what was checked an `analysis` remark. Where the simulator
    itself fails, SimulatorFailure ends the compilation.
    """

    def __init__(self, shapes: Sequence[str] = ()) -> None:
        self._given = tuple(shapes)
        for text in shapes:
            parse_shapes(text)

    def check_values(self, rewrite: Rewrite) -> None:
        """Compare the kernel before the pass with the one after it.

        Raises PassFailure where they differ, or where only the second does something undefined.
        """
        context = rewrite.context
        before = engine.parse_expanded(rewrite.before)
        try:
            self._compare(before, rewrite.after, context, "")
        except _Difference as found:
            reason = f"changed what {_kernel(before)} computes\n{found.error}"
            failure = _DifferentValues(
                rewrite.passes, context, rewrite.original(), reason, case=found.case.flags
            )
            raise PassFailure(failure.message) from found.error

    def check_result(
        self,
        source: str,
        module: TritonModule,
        passes: Sequence[Pass],
        context: PassContext,
        stock: Callable[[], TritonModule],
    ) -> None:
        """Compare a kernel before its first rewrite with what is lowered of it.

        `source` is generic text, `module` TTGIR after all passes; `stock` compiles as far as that
        without these passes. Raises PassFailure where they differ and it is not Triton's doing.
        """
        before, after = engine.parse_expanded(source), to_engine(module)
        try:
            self._compare_results(before, after, context, stock)
        except _Difference as found:
            names = ", ".join(dict.fromkeys(each.name for each in passes))
            kernel = _kernel(before)
            reason = (
                f"changed what {kernel} computes: the difference shows at the end of ttgir, and "
                f"not without the pass (rewritten by: {names})\n{found.error}"
            )
            result = _written(module.str())
            failure = _DifferentResult(
                passes, context, source, reason, case=found.case.flags, result=result
            )
            raise PassFailure(failure.message) from found.error

    def _compare_results(
        self,
        before: engine.Module,
        after: engine.Module,
        context: PassContext,
        stock: Callable[[], TritonModule],
    ) -> None:
        """Where Triton alone changes a kernel, what it makes of it takes the place of `before`."""
        where = " at the end of ttgir"
        try:
            self._compare(before, after, context, where)
        except _Difference as found:
            without = _without(after, found.case, stock)
            if without is None:
                raise
            message = f"{_kernel(before)}: Triton's own passes change what it computes, with"
            context.remarks.analysis(None, f"{message} {found.case}: {found.error}")
            self._compare(without, after, context, f"{where} as without the passes")

    def _compare(
        self,
        one: engine.Module,
        other: engine.Module,
        context: PassContext,
        where: str,
    ) -> None:
        """Raises _Difference; what cannot be compared is a remark."""
        try:
            before, after = Program(one), Program(other)
        except TilepassError as error:
            _not_validated(context, error, f"{where.strip()}: " if where else "")
            return
        executed, skipped, reached = list[equivalence.Execution](), set[str](), set[Goal]()
        cases = equivalence.cases([before, after], self._given, DEFAULT_SEEDS, None)
        for case in cases:
            shapes = str(case.shapes)
            if shapes in skipped:
                continue
            try:
                left = equivalence.reference(before, case, reached=reached)
            except TilepassError as error:
                skipped.add(shapes)
                if not where:
                    # At the end of ttgir it was said already.
                    _not_validated(context, error, f"with shapes {case.said}, before the pass: ")
                continue
            try:
                equivalence.compare_with(
                    left, before, after, step_limit=_STEPS_AFTER, reached=reached
                )
            except SimulatorFailure:
                raise
            except TilepassError as error:
                raise _Difference(case, error) from error
            executed.append(left)
        if not executed:
            return
        said = "; ".join(dict.fromkeys(each.case.said for each in executed))
        message = f"{before.name} computes the same{where} in {len(executed)} cases (shapes {said})"
        open_ = equivalence.reservations(executed, before, after)
        context.remarks.analysis(None, "; ".join([f"validated: {message}", *open_]))
        for line in equivalence.missed([before, after], cases, reached):
            context.remarks.missed(None, f"not validated{where}: {line}")

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


def _kernel(module: engine.Module) -> str:
    return Program(module).name


def _without(
    after: engine.Module, case: equivalence.Case, stock: Callable[[], TritonModule]
) -> engine.Module | None:
    """What Triton alone makes of a kernel if it is the same as `after` in this case."""
    try:
        without = to_engine(stock())
        equivalence.compare(Program(without), Program(after), case, step_limit=_STEPS_AFTER)
    except SimulatorFailure:
        raise
    except (TilepassError, RuntimeError):
        return None
    return without


def _written(text: str) -> str:
    """The name of a new file with this text."""
    descriptor, path = tempfile.mkstemp(prefix="tilepass-result-", suffix=".ttgir")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return path


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
