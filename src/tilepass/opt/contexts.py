"""What a pass is given to run with when a file, and no compilation, is processed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tilepass.core.errors import OptionError
from tilepass.core.pass_base import BinaryFigures, Pass, PassContext, Target
from tilepass.core.remarks import RemarkListener
from tilepass.core.versions import CUTE
from tilepass.frontends import contexts
from tilepass.opt.source import Part
from tilepass.opt.steps import Step
from tilepass.opt.work import Work, without_comments

if TYPE_CHECKING:
    from tilepass.ir.engine import Module

_MODULE_TARGET = re.compile(r'"?ttg\.target"?\s*=\s*"([^"]*)"')


def make_context(
    step: Step, work: Work, target: Target | None, listener: RemarkListener
) -> PassContext:
    """The context of one step; every remark goes to `listener`."""
    context = contexts.make_context(step.name, work.compiler, target, listeners=(listener,))
    if isinstance(step, Pass) and work.compiler.name == CUTE.distribution:
        context.lower = lambda module: _lower(module, target)
        context.trial = lambda module: _trial(module, target)
    return context


def target_of_module(part: Part) -> Target | None:
    """The target that a TTGIR module names. Raises TilepassError for one of another form."""
    code = without_comments(part.text)
    match = _MODULE_TARGET.search(code)
    if match is None:
        return None
    line = part.first_line + code.count("\n", 0, match.start())
    return Target.parse(match[1], f"{part.file}:{line}: ttg.target")


def _lower(module: Module, target: Target | None) -> Module:
    from tilepass.frontends.cute.lowering import chip_of, lower_for_analysis, stock_pipeline

    return lower_for_analysis(module, stock_pipeline(chip_of(_required(target))))


def _trial(module: Module, target: Target | None) -> BinaryFigures:
    from tilepass.frontends.cute.lowering import chip_of, stock_pipeline
    from tilepass.frontends.cute.trial import make_trial

    target = _required(target)
    return make_trial(stock_pipeline(chip_of(target)), target)(module)


def _required(target: Target | None) -> Target:
    if target is None:
        raise OptionError("compiles a copy of the module: give --target (cuda:90)")
    return target
