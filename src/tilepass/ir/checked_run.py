"""Running a pass on a module of the engine, and what is wrong afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from tilepass.core import tracebacks
from tilepass.core.errors import PassFailure, TilepassError, is_diagnostic
from tilepass.core.pass_base import Pass, PassContext
from tilepass.executed import Running
from tilepass.ir import engine
from tilepass.ir.engine import ir
from tilepass.ir.guards import guarded
from tilepass.ir.values import plain_values

_UNFORESEEN = (
    "imported {} while it ran, which no cache key holds: what is compiled now is not kept on disk "
    "(an import statement in the pass's file is found beforehand)"
)


@dataclass(frozen=True)
class Problem:
    """How a pass failed: `raised ...` with the author's line, or `left invalid IR...`."""

    reason: str
    cause: BaseException | None = None


def checked_run(a_pass: Pass, module: engine.Module, context: PassContext) -> Problem | None:
    """Run `a_pass` and verify; returns what went wrong, or None.

    Raises PassFailure where the pass itself refuses with a TilepassError.
    """
    try:
        with (
            guarded(),
            plain_values(),
            module.context,
            ir.Location.unknown(),
            Running() as imported,
        ):
            result: object = a_pass.run(module, context)
    except TilepassError as error:
        separator = "\n" if is_diagnostic(str(error)) else " "
        raise PassFailure(f"pass '{a_pass.name}':{separator}{error}") from error
    except (Exception, SystemExit) as error:
        # `sys.exit()` in a pass would end the user's program without a word.
        return Problem(f"raised {tracebacks.describe(error, type(a_pass).__module__)}", error)
    if imported:
        context.remarks.missed(None, _UNFORESEEN.format(", ".join(imported)))
    if result is not None:
        code = type(a_pass).run.__code__
        place = f"{code.co_filename}:{code.co_firstlineno}, in run"
        expected = "expected None, as the module is rewritten in place"
        return Problem(f"returned a value of type {type(result).__name__}, {expected} ({place})")
    if errors := engine.verify(module):
        shown = "\n".join(error.format() for error in errors)
        return Problem(f"left invalid IR:\n{shown}")
    return None
