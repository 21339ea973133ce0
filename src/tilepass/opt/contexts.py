"""What a pass is given to run with when a file, and no compilation, is processed."""

from __future__ import annotations

import re

from tilepass.core.diagnostics import SourceLocation
from tilepass.core.pass_base import PassContext, Target
from tilepass.core.remarks import RemarkListener, RemarkSink
from tilepass.opt.source import Part
from tilepass.opt.steps import Step
from tilepass.opt.work import Work, without_comments

_MODULE_TARGET = re.compile(r'"?ttg\.target"?\s*=\s*"([^"]*)"')


def make_context(
    step: Step, work: Work, target: Target | None, listener: RemarkListener
) -> PassContext:
    """The context of one step; every remark goes to `listener`."""
    sink = RemarkSink(step.name, _locate, (listener,))
    return PassContext(step.name, work.compiler, sink, target)


def target_of_module(part: Part) -> Target | None:
    """The target that a TTGIR module names. Raises TilepassError for one of another form."""
    code = without_comments(part.text)
    match = _MODULE_TARGET.search(code)
    if match is None:
        return None
    line = part.first_line + code.count("\n", 0, match.start())
    return Target.parse(match[1], f"{part.file}:{line}: ttg.target")


def _locate(where: object) -> SourceLocation | None:
    # Here and not above: it loads the engine, which a run of Triton's passes does not need.
    from tilepass.ir import engine

    return engine.location_of(where)
