"""Running the passes of a pipeline on a traced module, or repeating what they did before.

An implicit JIT traces a function again on every call, to find its binary in the DSL's caches by the
hash of the module. Passes that take seconds must not run on every call too.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tilepass.core import underway
from tilepass.core.decisions import Decision
from tilepass.core.errors import PassFailure, TilepassError
from tilepass.core.pass_base import Pass, PassContext, Placed
from tilepass.core.remarks import Remark
from tilepass.core.reproducer import Failure, watched
from tilepass.frontends.cute.lowering import clone
from tilepass.ir import engine
from tilepass.ir.checked_run import checked_run
from tilepass.ir.engine import Module, ir

# In a module that passes have run on: what they were. The DSL's caches are keyed by the module.
STAMP = "tilepass.pipeline"
_REMEMBERED = 16

ContextOf = Callable[[Pass], PassContext]
Watch = Callable[[Pass], None]


@dataclass(frozen=True)
class _Outcome:
    """What a pass said, and decided."""

    a_pass: Pass
    remarks: tuple[Remark, ...]
    decisions: tuple[Decision, ...]


@dataclass(frozen=True)
class _Rewrite:
    """What became of a module, as bytecode; None where no pass had anything to look at."""

    outcomes: tuple[_Outcome, ...]
    bytecode: bytes | None


_remembered: OrderedDict[tuple[str, str], _Rewrite] = OrderedDict()


def rewrite(
    module: Module, passes: Iterable[Placed], stamp: str, context_of: ContextOf, watch: Watch
) -> None:
    """Run passes in place, each verified, and call `watch` after each.

    A module that passes have run on carries `stamp`. Raises PassFailure, with a reproducer, where a
    pass fails that is not to be left out then.
    """
    _run(module, passes, stamp, context_of, watch)


def rewrite_once(
    module: Module, key: str, passes: Iterable[Placed], stamp: str, context_of: ContextOf
) -> None:
    """As `rewrite`; a module that had this `key`, and passes with this stamp, are only repeated.

    The remarks and decisions are, too.
    """
    known = _remembered.get((key, stamp))
    if known is None:
        outcomes = _run(module, passes, stamp, context_of, lambda _: None)
        known = _Rewrite(tuple(outcomes), _bytecode(module) if outcomes else None)
        _remembered[key, stamp] = known
        if len(_remembered) > _REMEMBERED:
            _remembered.popitem(last=False)
        return
    _remembered.move_to_end((key, stamp))
    for outcome in known.outcomes:
        context = context_of(outcome.a_pass)
        for remark in outcome.remarks:
            context.remarks.repeat(remark)
        for decision in outcome.decisions:
            context.record(decision)
    if known.bytecode is not None:
        _replace(module, known.bytecode)


def _run(
    module: Module, passes: Iterable[Placed], stamp: str, context_of: ContextOf, watch: Watch
) -> list[_Outcome]:
    outcomes: list[_Outcome] = []
    for placed in passes:
        a_pass = placed.instance
        if a_pass.touches and engine.operation_names(module).isdisjoint(a_pass.touches):
            continue
        context = context_of(a_pass)
        try:
            _run_one(module, a_pass, context)
        except TilepassError as error:
            if placed.on_failure == "stop":
                raise
            context.retract()
            context.remarks.missed(None, f"left out of this kernel: {error}")
        decisions = tuple(context.decisions)
        outcomes.append(_Outcome(a_pass, tuple(context.remarks.remarks), decisions))
        watch(a_pass)
    if outcomes:
        module.operation.attributes[STAMP] = ir.StringAttr.get(stamp, module.context)
    return outcomes


def _run_one(module: Module, a_pass: Pass, context: PassContext) -> None:
    """Run a pass; where it fails the module is as it was."""
    before = clone(module)
    text = engine.print_generic(before) if underway.is_attributed() else ""
    crash = Failure([a_pass], context, text, "crashed")
    try:
        problem = watched(crash, lambda: checked_run(a_pass, module, context))
        if problem:
            text, reason = engine.print_generic(before), problem.reason
            if problem.cause is None and engine.verify(before):
                reason = f"is not to blame: the module was invalid before it\n{reason}"
            failure = Failure([a_pass], context, text, reason)
            raise PassFailure(failure.message) from problem.cause
    except TilepassError:
        _replace(module, _bytecode(before))
        raise


def _bytecode(module: Module) -> bytes:
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def _replace(module: Module, bytecode: bytes) -> None:
    """Put what the bytecode holds into `module`."""
    other = ir.Module.parse(bytecode, module.context)
    for operation in list(module.body.operations):
        operation.operation.erase()
    for operation in list(other.body.operations):
        module.body.append(operation)
    for name in other.operation.attributes:
        module.operation.attributes[name] = other.operation.attributes[name]
