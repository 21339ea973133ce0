"""Putting pipelines into Triton and taking them out again.

Triton has one inspection hook for the whole process. It is set, and a few of Triton's functions
are wrapped (see wrappers.py), while at least one pipeline is in force; afterwards everything is as
it was. Other threads see the same pipeline. One that changes while a kernel is compiled has no
part in it: the passes are those of the pipeline whose key the kernel is stored under.
"""

from __future__ import annotations

import concurrent.futures
import importlib
import inspect
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from triton import knobs

from tilepass.core.errors import TilepassError
from tilepass.frontends.cache_key import EMPTY, CacheKey
from tilepass.frontends.observing import StageObserver
from tilepass.frontends.triton import inductor
from tilepass.frontends.triton.segments import Plan, instrument
from tilepass.frontends.triton.wrappers import HOOK, compiler_module, uses_hook, wrappers

_runtime: Any = knobs.runtime
_async_module: Any = importlib.import_module("triton.runtime._async_compile")

Hook = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Level:
    """A pipeline in force: its plan and its key.

    One that comes from the environment is in force in the processes started from here as well.
    """

    plan: Plan
    key: CacheKey
    of_environment: bool = False


@dataclass(frozen=True)
class _Patch:
    """An attribute that was set; `original` is None where the object had none of its own."""

    owner: Any
    name: str
    value: Any
    original: Any


_lock = threading.RLock()
_levels: list[Level] = []
_patches: list[_Patch] = []
_hook: Hook | None = None
_foreign_hook: Hook | None = None
# The top level, with the observers of all.
_in_force: Level | None = None
_inductor = ExitStack()


def push(level: Level) -> None:
    """Put a pipeline in force; it replaces the one below, whose observers go on looking."""
    with _lock:
        _finish_asynchronous_compilations()
        before = current_key()
        _levels.append(level)
        _install()
        # At its start a program has compiled nothing, and may be in the middle of importing torch.
        if current_key() != before and not level.of_environment:
            inductor.forget_compiled()


def pop(level: Level) -> None:
    """Take a pipeline out, the latest or another one.

    Raises TilepassError where someone has replaced the hook in between: passes were not run.
    """
    with _lock:
        _finish_asynchronous_compilations()
        before = current_key()
        _levels.remove(level)
        replaced = getattr(_runtime, HOOK) is not _hook
        _install()
        if current_key() != before:
            inductor.forget_compiled()
        if replaced:
            raise TilepassError(
                f"triton.knobs.runtime.{HOOK} was replaced while a pipeline was enabled: "
                "passes have not been run since (call the previous hook from the new one)"
            )


def current_key() -> CacheKey:
    """The key of the pipeline in force; that of stock Triton if there is none."""
    return _levels[-1].key if _levels else EMPTY


def _key_of_workers() -> CacheKey:
    """The key of the pipeline in force in worker processes."""
    return next((level.key for level in reversed(_levels) if level.of_environment), EMPTY)


def _install() -> None:
    """Make Triton do what the levels ask for."""
    global _hook, _foreign_hook, _in_force, _inductor
    present = getattr(_runtime, HOOK)
    if present is not _hook:
        _foreign_hook = present
    _restore()
    if not _levels:
        setattr(_runtime, HOOK, _foreign_hook)
        _hook = _foreign_hook = _in_force = None
        return
    top = _levels[-1]
    observers: list[StageObserver] = []
    for level in _levels:
        observers.extend(level.plan.observers)
    plan = replace(top.plan, observers=tuple(observers))
    _in_force = Level(plan, top.key)
    _hook = _make_hook(_in_force, _foreign_hook)
    setattr(_runtime, HOOK, _hook)
    for owner, name, value in wrappers(_in_force.plan, _in_force.key):
        _patches.append(_Patch(owner, name, value, _own(owner, name)))
        setattr(owner, name, value)
    workers_follow = top.key == _key_of_workers()
    if top.key.key or not workers_follow:
        _inductor = inductor.under_pipeline(top.key.key, workers_follow=workers_follow)


def _restore() -> None:
    _inductor.close()
    while _patches:
        patch = _patches.pop()
        if _own(patch.owner, patch.name) is not patch.value:
            continue
        if patch.original is None:
            delattr(patch.owner, patch.name)
        else:
            setattr(patch.owner, patch.name, patch.original)


def _own(owner: Any, name: str) -> Any:
    """An attribute of `owner` itself, not of its class; None without."""
    return owner.__dict__.get(name)


def _make_hook(level: Level, foreign: Hook | None) -> Hook:
    """The hook: called without arguments it returns keys, on every launch.

    The compile key gets its part where it is made (see wrappers.py), together with the passes.
    """
    plan, keys = level.plan, ("", level.key.hash)

    def hook(
        backend: Any = None,
        stages: Any = None,
        options: Any = None,
        language: Any = None,
        capability: Any = None,
    ) -> Any:
        if stages is None:
            return keys
        if foreign is not None:
            foreign(backend, stages, options, language, capability)
        # Someone may go on calling a hook whose pipeline is no longer in force.
        if level is _in_force and not _is_called_by_compile():
            instrument(plan, backend, stages, options, language)
        return None

    if foreign is None or not uses_hook(compiler_module.compile):
        return hook

    def hook_with_foreign_key(*arguments: Any, **named: Any) -> Any:
        if not arguments and not named:
            foreign_key, foreign_hash = foreign()
            return foreign_key, f"{foreign_hash}{keys[1]}"
        return hook(*arguments, **named)

    return hook_with_foreign_key


def _is_called_by_compile() -> bool:
    """Whether the stages are made in `triton.compile`, not in a program's own way of compiling."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != "add_stages":
        frame = frame.f_back
    # A wrapper puts a function of that name in between.
    while frame is not None and frame.f_code.co_name == "add_stages":
        frame = frame.f_back
    return frame is not None and frame.f_code is compiler_module.compile.__code__


def _finish_asynchronous_compilations() -> None:
    """What was submitted under one pipeline must not be compiled under another."""
    mode = _async_module.active_mode.get()
    if mode is not None:
        concurrent.futures.wait(mode.raw_futures)
