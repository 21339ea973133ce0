"""Trial compilations: what would come of a module that is in the middle of Triton's pipeline.

A copy in its own context takes the way that the module itself is to take: the passes of
tilepass at the same place that come after the one which asks, Triton's remaining passes, every
later stage, with the passes of tilepass at their places. Those decide without trials, and what they
remark is not heard. Nothing is written but the figures, beside what Triton caches.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from triton._C import libtriton
from triton.errors import TritonError
from triton.runtime import cache

from tilepass.core.diagnostics import Diagnostic
from tilepass.core.errors import TilepassError
from tilepass.core.figures import StaticFigures
from tilepass.core.pass_base import PassContext, Placed
from tilepass.core.remarks import RemarkSink
from tilepass.frontends.cache_key import pipeline_key
from tilepass.frontends.triton.assembling import STAGE
from tilepass.frontends.triton.capture import capture_diagnostics
from tilepass.frontends.triton.modules import TritonModule, generic_text, load, new_context
from tilepass.frontends.triton.overriding import no_overrides
from tilepass.frontends.triton.recording import is_stock
from tilepass.frontends.triton.run_builtin import failure_reason
from tilepass.ir import engine

if TYPE_CHECKING:
    from tilepass.frontends.triton.segments import Rest, Weaving

_native: Any = libtriton
_FILE = "tilepass-trial.json"
_KEPT = 1024
_known: OrderedDict[str, StaticFigures] = OrderedDict()


def after(passes: Sequence[Placed], rest: Rest) -> Rest:
    """What a stage does after the passes before these at one place."""
    return lambda other, module: rest(other, other.run_python(passes, module, rest))


def make_trial(
    weaving: Weaving, rest: Rest, following: Sequence[Placed]
) -> Callable[[engine.Module], StaticFigures] | None:
    """`PassContext.trial` of a pass that `rest` comes after, which begins with the `following`
    ones. None where stages are not Triton's own, or for another target than CUDA."""
    if not _can_be_tried(weaving):
        return None
    place = [weaving.current, *map(str, following)]
    return lambda module: _figures(weaving, engine.print_generic(module), place, rest)


def stock_figures(
    weaving: Weaving, module: TritonModule, rest: Rest
) -> Callable[[], StaticFigures] | None:
    """What gives the figures of a module without any pass of tilepass, None as in `make_trial`."""
    if not _can_be_tried(weaving):
        return None
    stock = replace(weaving, plan=replace(weaving.plan, passes=()))
    return lambda: _figures(stock, generic_text(module), [stock.current, "stock"], rest)


def mute(context: PassContext) -> None:
    """Let nobody hear what a pass says in a trial."""
    sink = context.remarks
    context.remarks, context.history = RemarkSink(sink.pass_name, sink.locate), []


def check_shared_memory(weaving: Weaving) -> None:
    """After the stage that allocates shared memory: TilepassError where a forced decision led to
    more of it than the target has, and the source's form does not take too much itself."""
    limit, needed = weaving.target.shared_bytes, weaving.metadata.get("shared")
    if weaving.quiet or limit is None or not isinstance(needed, int) or needed <= limit:
        return
    forced = [
        (context, decision)
        for _, context in weaving.ran
        for decision in context.decisions
        if decision.source == "forced"
    ]
    if not forced or not weaving.changed_by or _fits(weaving, limit) is False:
        return
    context, decision = forced[-1]
    message = (
        f"[{context.pass_name}] {decision.kind} = {decision.value}, as asked for, makes the kernel "
        f"take {needed} bytes of shared memory of {limit}: it cannot be launched on "
        f"{weaving.target}; take a smaller tile or fewer stages"
    )
    raise TilepassError(Diagnostic("error", message, decision.location).format())


def report_added(weaving: Weaving) -> None:
    """Say where a kernel that passes have rewritten spills more, or runs its dots one after the
    other, where the source's form does not."""
    log = weaving.log
    if not weaving.changed_by or log is None:
        return
    found = _of_log(weaving)
    if not found.suspicious:
        return
    source = _unchanged(weaving)
    drawback = found.drawback(source or StaticFigures(registers=0))
    if not drawback:
        return
    changed = list(dict.fromkeys(placed.instance.name for placed in weaving.changed_by))
    context = next(c for _, c in reversed(weaving.ran) if c.pass_name in changed)
    where = context.decisions[-1].location if context.decisions else None
    by = "" if len(changed) == 1 else f", by {' and '.join(changed)} together"
    cost = (
        f"trial of the source's form: {source.cost}" if source else "no trial of the source's form"
    )
    context.remarks.missed(where, f"the kernel as it was rewritten{by}: {drawback} ({cost})")


def _fits(weaving: Weaving, limit: int) -> bool | None:
    """Whether the source's form takes no more shared memory than there is, None if not known."""
    source = _unchanged(weaving)
    return None if source is None else source.shared_bytes <= limit


def _unchanged(weaving: Weaving) -> StaticFigures | None:
    try:
        return weaving.unchanged() if weaving.unchanged else None
    except TilepassError:
        return None


def _can_be_tried(weaving: Weaving) -> bool:
    if weaving.target.backend != "cuda" or STAGE not in weaving.stages:
        return False
    later = list(weaving.stages)[list(weaving.stages).index(weaving.current) :]
    return all(is_stock(weaving.stages[name], weaving.backend) for name in later)


def _figures(weaving: Weaving, text: str, place: Sequence[object], run: Rest) -> StaticFigures:
    """The figures of a module, compiled unless they are known. Raises TilepassError."""
    key = _key(weaving, text, place)
    if (known := _recall(key)) is not None:
        return replace(known, cached=True)
    started = perf_counter()
    other = replace(
        weaving,
        plan=replace(weaving.plan, observers=(), validator=None),
        places=weaving.places.forked(),
        overrides=no_overrides,
        quiet=True,
        metadata=dict(weaving.metadata),
        begun=True,
        changed_by=[],
        ran=[],
        unchanged=None,
        log=None,
    )
    _compile(other, text, run)
    found = replace(_of_log(other), milliseconds=round(1000 * (perf_counter() - started)))
    _remember(key, found)
    return found


def _compile(other: Weaving, text: str, run: Rest) -> None:
    """Compile to a binary; `other` then has the assembler's log and the metadata."""
    names = list(other.stages)
    later = names[names.index(other.current) + 1 :]
    # The back end prints a PTX that the assembler does not take.
    with capture_diagnostics(forward=False) as captured, redirect_stdout(io.StringIO()):
        try:
            result = run(other, load(text, "trial", new_context()))
            for name in later[: later.index(STAGE) + 1]:
                result = other.stage(name, other.stages[name])(result, other.metadata)
        except (RuntimeError, TritonError) as error:
            raise TilepassError(failure_reason(captured.text) or str(error)) from error


def _of_log(weaving: Weaving) -> StaticFigures:
    log = weaving.log
    assert log is not None
    return StaticFigures(
        registers=log.registers,
        stack_bytes=log.stack_bytes,
        shared_bytes=weaving.metadata.get("shared") or 0,
        spill_store_bytes=log.spill_store_bytes,
        spill_load_bytes=log.spill_load_bytes,
        serialized=log.serialized,
    )


def _key(weaving: Weaving, text: str, place: Sequence[object]) -> str:
    """A digest of everything that the figures depend on."""
    parts: Sequence[object] = (
        text,
        *place,
        weaving.target,
        weaving.language,
        sorted((name, str(value)) for name, value in weaving.options.items()),
        pipeline_key(weaving.plan.passes).key,
        cache.triton_key(),
        weaving.backend.hash(),
        sorted(_native.get_cache_invalidating_env_vars().items()),
    )
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def _recall(key: str) -> StaticFigures | None:
    if (known := _known.get(key)) is not None:
        return known
    path: str | None = cache.get_cache_manager(key).get_file(_FILE)
    if path is None:
        return None
    try:
        fields = json.loads(Path(path).read_text())
        found = StaticFigures(**(fields | {"serialized": tuple(fields["serialized"])}))
    except (OSError, ValueError, TypeError, KeyError):
        # Half a file of a full disk: compile again.
        return None
    _known[key] = found
    return found


def _remember(key: str, found: StaticFigures) -> None:
    _known[key] = found
    if len(_known) > _KEPT:
        _known.popitem(last=False)
    text = json.dumps(asdict(found))
    cache.get_cache_manager(key).put(text, _FILE, binary=False)
