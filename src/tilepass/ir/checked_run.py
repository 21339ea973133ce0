"""Running a pass on a module of the engine, and what is wrong afterwards."""

from __future__ import annotations

import traceback

from tilepass.core.errors import PassFailure, TilepassError, is_diagnostic
from tilepass.core.pass_base import Pass, PassContext
from tilepass.executed import Running
from tilepass.ir import engine
from tilepass.ir.asides import asides_apart
from tilepass.ir.guards import guarded

_UNFORESEEN = (
    "imported {} while it ran, which no cache key holds: what is compiled now is not kept on disk "
    "(an import statement in the pass's file is found beforehand)"
)


def checked_run(a_pass: Pass, module: engine.Module, context: PassContext) -> str | None:
    """Run `a_pass` and verify; returns None, or how it failed: `raised ...`, `left invalid IR...`.

    Raises PassFailure where the pass itself refuses with a TilepassError.
    """
    try:
        with guarded(), asides_apart(module), Running() as imported:
            a_pass.run(module, context)
    except TilepassError as error:
        separator = "\n" if is_diagnostic(str(error)) else " "
        raise PassFailure(f"pass '{a_pass.name}':{separator}{error}") from error
    except (Exception, SystemExit) as error:
        # `sys.exit()` in a pass would end the user's program without a word.
        return _raised(error)
    if imported:
        context.remarks.missed(None, _UNFORESEEN.format(", ".join(imported)))
    if errors := engine.verify(module):
        shown = "\n".join(error.format() for error in errors)
        return f"left invalid IR:\n{shown}"
    return None


def _raised(error: BaseException) -> str:
    """`raised ValueError: ... (file.py:12, in run)`, the place being where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.filename}:{last.lineno}, in {last.name}"
    return f"raised {type(error).__name__}: {error} ({place})"
