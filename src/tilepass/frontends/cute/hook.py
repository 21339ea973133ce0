"""Putting pipelines into the CuTe DSL and taking them out again.

The DSL calls trace-finalize hooks with each traced module, before it hashes the module for its
caches and before any of its passes. Ours is there while a pipeline in force has something to do
with CuTe modules; the DSL may be imported before or after that.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tilepass.after_import import AfterImport
from tilepass.core.pass_base import Pass, PassContext, Placed
from tilepass.core.remarks import Remark
from tilepass.frontends.cute import dsl as cute_dsl
from tilepass.frontends.cute import library_caches, source_lines
from tilepass.frontends.cute.rewriting import rewrite, rewrite_once
from tilepass.frontends.cute.tracing import MakeContext, MakeTrial, Trace
from tilepass.frontends.cute.watching import Watched
from tilepass.frontends.observing import StageObserver
from tilepass.ir.engine import Module


@dataclass(frozen=True, eq=False)
class Level:
    """A pipeline in force: its passes for CuTe modules, and the key that stands for them.

    One that comes from the environment is there before the program has compiled anything.
    """

    passes: tuple[Placed, ...]
    observers: tuple[StageObserver, ...]
    key: str
    hear: Callable[[Remark], None]
    make_context: MakeContext
    make_trial: MakeTrial
    of_environment: bool = False


# Held while levels change and while the DSL traces and compiles.
_lock = threading.RLock()
_levels: list[Level] = []
# Modules that the observers of now have been shown: an implicit JIT traces one on every call.
_shown: set[str] = set()
_attached: ExitStack | None = None
_disk_caches_off: ExitStack | None = None
_waiting: AfterImport | None = None


def _renew_lock() -> None:
    """In a forked child: the thread that holds the lock to compile is not there."""
    lock: Any = _lock
    if not lock._is_owned():
        lock._at_fork_reinit()


os.register_at_fork(after_in_child=_renew_lock)


def push(level: Level) -> None:
    """Put a pipeline in force; it replaces the one below."""
    with _lock:
        before = _current_key()
        _levels.append(level)
        _install()
        if _current_key() != before and not level.of_environment:
            _forget_compiled(level)


def pop(level: Level) -> None:
    """Take a pipeline out, the latest or another one."""
    with _lock:
        before = _current_key()
        _levels.remove(level)
        _install()
        if _current_key() != before:
            _forget_compiled(level)


def key_in_force() -> str:
    """What tells the pipeline in force from others, its passes' sources included; empty without."""
    with _lock:
        return _current_key()


def _current_key() -> str:
    return _levels[-1].key if _levels else ""


def _forget_compiled(level: Level) -> None:
    """Let libraries compile again under the new pipeline."""

    def report(text: str) -> None:
        level.hear(Remark("missed", "library-caches", text))

    if cute_dsl.is_ready():
        library_caches.forget_compiled(report)


def _install() -> None:
    """Attach to the DSL, now or when it is imported, if the pipeline in force needs that."""
    global _attached, _disk_caches_off, _waiting
    if _disk_caches_off is not None:
        _disk_caches_off.close()
        _disk_caches_off = None
    if _current_key():
        _disk_caches_off = library_caches.disk_caches_off()
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
    with _lock, source_lines.paused():
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
