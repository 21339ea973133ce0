"""What a pass is given to run with, whatever ran it."""

from __future__ import annotations

from collections.abc import Mapping

from tilepass.core.decisions import Decision
from tilepass.core.diagnostics import SourceLocation
from tilepass.core.pass_base import CompilerVersion, PassContext, Target
from tilepass.core.remarks import RemarkListener, RemarkSink


def make_context(
    pass_name: str,
    compiler: CompilerVersion,
    target: Target | None,
    options: Mapping[str, object] | None = None,
    *,
    listeners: tuple[RemarkListener, ...] = (),
    history: list[Decision] | None = None,
) -> PassContext:
    """The context of one run of a pass; its remarks go to the listeners, decisions to `history`."""
    sink = RemarkSink(pass_name, _locate, listeners)
    context = PassContext(pass_name, compiler, sink, target, options or {})
    if history is not None:
        context.history = history
    return context


def _locate(where: object) -> SourceLocation | None:
    # Here and not above: it loads the engine, which a run of Triton's passes does not need.
    from tilepass.ir import engine

    return engine.location_of(where)
