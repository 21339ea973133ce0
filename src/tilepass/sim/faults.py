"""What a simulated program can do wrong, and what the simulator cannot do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tilepass.core.diagnostics import Diagnostic, SourceLocation
from tilepass.core.errors import TilepassError
from tilepass.ir import engine


class Fault(TilepassError):
    """Something that the simulated program does wrong; the message begins with its location."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.location: SourceLocation | None = None
        self.operation: str | None = None
        self.notes: list[str] = []

    def locate(self, operation: engine.Operation | None) -> None:
        """Blame an operation; the first to be blamed is the innermost."""
        if self.operation is None and operation is not None:
            self.operation = operation.name
            self.location = engine.location_of(operation)

    def note(self, text: str) -> None:
        """Add a line below the message."""
        self.notes.append(text)

    def __str__(self) -> str:
        where = f"{self.operation}: " if self.operation else ""
        notes = tuple(Diagnostic("note", text) for text in self.notes)
        return Diagnostic("error", where + self.message, self.location, notes).format()


class UndefinedBehaviour(Fault):
    """A poison value decides about control flow, an address, or a value in memory."""


class OutOfBounds(Fault):
    """An access outside all buffers."""


class UninitializedRead(Fault):
    """A read of memory that nobody wrote."""


class StepLimit(Fault):
    """The program took more steps than allowed; located at the loop that took the last."""


class Deadlock(Fault):
    """Every partition waits."""


class AssertionFailed(Fault):
    """A `tt.assert` or an assumption that does not hold."""


class MemoryMisuse(Fault):
    """A misaligned access, a freed buffer, a view of the wrong shape."""


class SimulatorFailure(TilepassError):
    """The simulator itself failed, where it did: a mistake of tilepass, not of the kernel."""

    def __init__(self, error: Exception, operation: engine.Operation | None = None) -> None:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        at = f"{operation.name}: " if operation is not None else ""
        location = engine.location_of(operation) if operation is not None else None
        note = Diagnostic("note", "a mistake of tilepass, not of the kernel: please report it")
        message = f"{at}the simulator fails with {said}"
        super().__init__(Diagnostic("error", message, location, (note,)).format())


def raise_blaming(error: Exception, operation: engine.Operation | None) -> NoReturn:
    """Raise an error that came up in an operation: faults are located there, what is no
    TilepassError becomes a SimulatorFailure."""
    if isinstance(error, Fault):
        error.locate(operation)
    if isinstance(error, TilepassError):
        raise error
    raise SimulatorFailure(error, operation) from error


class UnsupportedOperationsError(TilepassError):
    """Operations that the simulator does not know, all of them, each with its location."""

    def __init__(self, found: Sequence[Diagnostic]) -> None:
        super().__init__("\n".join(each.format() for each in found))
        self.found = tuple(found)


class ArgumentError(TilepassError):
    """An argument of the wrong number, shape, type or divisibility; the message names it."""
