"""Putting pipelines into the CuTe DSL and taking them out again.

The DSL calls trace-finalize hooks with each traced module, before it hashes the module for its
caches and before any of its passes. Ours is there while a pipeline in force has something to do
with CuTe modules; the DSL may be imported before or after that.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tilepass.after_import import AfterImport
from tilepass.core.pass_base import Pass, PassContext
from tilepass.frontends.cute import dsl as cute_dsl
from tilepass.frontends.cute.rewriting import rewrite, rewrite_once
from tilepass.frontends.cute.tracing import MakeContext, MakeTrial, Trace
from tilepass.frontends.cute.watching import Watched
from tilepass.frontends.observing import StageObserver
from tilepass.frontends.placed import Placed
from tilepass.ir.engine import Module


@dataclass(frozen=True, eq=False)
class Level:
    """A pipeline in force: its passes for CuTe modules, and the key that stands for them."""

    passes: tuple[Placed, ...]
    observers: tuple[StageObserver, ...]
    key: str
    make_context: MakeContext
    make_trial: MakeTrial


# Held while levels change and while the DSL traces and compiles.
_lock = threading.RLock()
_levels: list[Level] = []
# Modules that the observers of now have been shown: an implicit JIT traces one on every call.
_shown: set[str] = set()
_attached: ExitStack | None = None
_waiting: AfterImport | None = None


def push(level: Level) -> None:
    """Put a pipeline in force; it replaces the one below."""
    with _lock:
        _levels.append(level)
        _install()


def pop(level: Level) -> None:
    """Take a pipeline out, the latest or another one."""
    with _lock:
        _levels.remove(level)
        _install()


def _install() -> None:
    """Attach to the DSL, now or when it is imported, if the pipeline in force needs that."""
    global _attached, _waiting
    _shown.clear()
    if _waiting is not None:
        _waiting.cancel()
        _waiting = None
    wanted = bool(_levels and (_levels[-1].passes or _observers()))
    if not wanted:
        if _attached is not None:
            _attached.close()
            _attached = None
    elif _attached is None:
        if cute_dsl.is_ready():
            _attached = cute_dsl.attach(_on_trace, _lock)
        else:
            _waiting = AfterImport(cute_dsl.READY_MODULE, _install_in_turn)


def _install_in_turn() -> None:
    with _lock:
        _install()


def _on_trace(owner: Any, module: Module, function_name: str) -> None:
    """The trace-finalize hook."""
    with _lock:
        if _levels:
            _process(_levels[-1], Trace.of(owner, module, function_name))


def _process(level: Level, trace: Trace) -> None:
    def context_of(a_pass: Pass) -> PassContext:
        return trace.context(a_pass, level.make_context, level.make_trial)

    observers, kernels = _observers(), trace.kernels()
    if not observers or not kernels or trace.key in _shown:
        rewrite_once(trace.module, trace.key, level.passes, level.key, context_of)
        return
    _shown.add(trace.key)
    watched = Watched(trace, kernels, observers)

    def watched_context(a_pass: Pass) -> PassContext:
        context = context_of(a_pass)
        watched.before_pass(context)
        return context

    rewrite(trace.module, level.passes, level.key, watched_context, watched.after_pass)
    watched.finish()


def _observers() -> list[StageObserver]:
    return [observer for level in _levels for observer in level.observers]
