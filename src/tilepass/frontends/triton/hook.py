"""Putting pipelines into Triton and taking them out again.

Triton has one inspection hook for the whole process. It is set, and a few of Triton's functions
are wrapped (see `_wrappers`), while at least one pipeline is in force; afterwards everything is as
it was. Other threads see the same pipeline. One that changes while a kernel is compiled has no
part in it: the passes are those of the pipeline whose key the kernel is stored under.
"""

from __future__ import annotations

import concurrent.futures
import importlib
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from triton import knobs

from tilepass.core.errors import TilepassError
from tilepass.frontends.triton import inductor
from tilepass.frontends.triton.cache_key import EMPTY, CacheKey
from tilepass.frontends.triton.segments import Plan, StageObserver, instrument

_HOOK = "add_stages_inspection_hook"
_runtime: Any = knobs.runtime
_compiler_module: Any = importlib.import_module("triton.compiler.compiler")
_jit_module: Any = importlib.import_module("triton.runtime.jit")
_autotuner_module: Any = importlib.import_module("triton.runtime.autotuner")
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
        replaced = getattr(_runtime, _HOOK) is not _hook
        _install()
        if current_key() != before:
            inductor.forget_compiled()
        if replaced:
            raise TilepassError(
                f"triton.knobs.runtime.{_HOOK} was replaced while a pipeline was enabled: "
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
    present = getattr(_runtime, _HOOK)
    if present is not _hook:
        _foreign_hook = present
    _restore()
    if not _levels:
        setattr(_runtime, _HOOK, _foreign_hook)
        _hook = _foreign_hook = _in_force = None
        return
    top = _levels[-1]
    observers: list[StageObserver] = []
    for level in _levels:
        observers.extend(level.plan.observers)
    plan = Plan(top.plan.passes, tuple(observers), top.plan.make_context, top.plan.skipped)
    _in_force = Level(plan, top.key)
    _hook = _make_hook(_in_force, _foreign_hook)
    setattr(_runtime, _HOOK, _hook)
    for owner, name, value in _wrappers(_in_force):
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

    The compile key gets its part where it is made (`_bound_to_key`), together with the passes.
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

    if foreign is None or not _uses_hook(_compiler_module.compile):
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
    # `_bound_to_key` puts a function of that name in between.
    while frame is not None and frame.f_code.co_name == "add_stages":
        frame = frame.f_back
    return frame is not None and frame.f_code is _compiler_module.compile.__code__


def _bound_to_key(function: Callable[..., str], level: Level) -> Callable[..., str]:
    """Makes the key of a compilation, and lets its backend carry out what the key stands for."""
    plan, suffix = level.plan, level.key.key

    def get_cache_key(source: Any, backend: Any, *arguments: Any, **named: Any) -> str:
        original = backend.add_stages

        def add_stages(stages: Any, options: Any, language: Any) -> None:
            original(stages, options, language)
            instrument(plan, backend, stages, options, language)

        backend.add_stages = add_stages
        return function(source, backend, *arguments, **named) + suffix

    return get_cache_key


def _wrappers(level: Level) -> Iterator[tuple[Any, str, Any]]:
    """Replacements for functions of Triton that make keys.

    Triton 3.6 asks the hook for no key; no version does for that of asynchronous compilations, of
    preloaded kernels and of what autotuning has measured.
    """
    key = level.key
    yield (
        _compiler_module,
        "get_cache_key",
        _bound_to_key(_compiler_module.get_cache_key, level),
    )
    if not key.key:
        return
    if not _uses_hook(_jit_module.JITFunction.run):
        yield _jit_module, "compute_cache_key", _with_entry(_jit_module.compute_cache_key, key.hash)
    yield _jit_module, "get_cache_key", _with_suffix(_jit_module.get_cache_key, key.key)
    yield (
        _jit_module.JITFunction,
        "preload",
        _not_under_another_key(_jit_module.JITFunction.preload, key.hash),
    )
    yield (
        _autotuner_module,
        "get_cache_invalidating_env_vars",
        _with_variable(_autotuner_module.get_cache_invalidating_env_vars, key.key),
    )
    yield _autotuner_module.Autotuner, "cache", _cache_of_pipeline(key.hash)


def _uses_hook(function: Any) -> bool:
    return _HOOK in function.__code__.co_names


def _with_suffix(function: Callable[..., str], suffix: str) -> Callable[..., str]:
    def get_cache_key(*arguments: Any, **named: Any) -> str:
        return function(*arguments, **named) + suffix

    return get_cache_key


def _with_entry(function: Callable[..., str], entry: str) -> Callable[..., str]:
    """Called on every launch, so it does as little as it can."""

    def compute_cache_key(kernel_key_cache: Any, specialization: Any, options: Any) -> str:
        return function(kernel_key_cache, [*specialization, entry], options)

    return compute_cache_key


def _not_under_another_key(function: Callable[..., Any], own: str) -> Callable[..., Any]:
    """Preloading stores a kernel under the key of the process that recorded it.

    Under the key of another pipeline, or of none, later launches would find the wrong kernel.
    The kernel is in Triton's disk cache all the same.
    """

    def preload(self: Any, specialization_data: str) -> Any:
        before = {device: set(entry[0]) for device, entry in self.device_caches.items()}
        kernel = function(self, specialization_data)
        for device, entry in self.device_caches.items():
            for key in set(entry[0]) - before.get(device, set[str]()):
                if own not in key:
                    del entry[0][key]
        return kernel

    return preload


def _with_variable(function: Callable[[], dict[str, str]], key: str) -> Callable[..., Any]:
    """Timings on disk are keyed by the environment variables that invalidate caches."""

    def get_cache_invalidating_env_vars() -> dict[str, str]:
        return {**function(), "TILEPASS": key}

    return get_cache_invalidating_env_vars


def _cache_of_pipeline(pipeline_hash: str) -> property:
    """The chosen configurations of an `Autotuner`, one set per pipeline."""
    attribute = f"_tilepass_cache_{pipeline_hash}"

    def get(tuner: Any) -> dict[Any, Any]:
        return tuner.__dict__.setdefault(attribute, {})

    def put(tuner: Any, value: dict[Any, Any]) -> None:
        tuner.__dict__.setdefault("cache", {})
        tuner.__dict__[attribute] = value

    return property(get, put)


def _finish_asynchronous_compilations() -> None:
    """What was submitted under one pipeline must not be compiled under another."""
    mode = _async_module.active_mode.get()
    if mode is not None:
        concurrent.futures.wait(mode.raw_futures)
