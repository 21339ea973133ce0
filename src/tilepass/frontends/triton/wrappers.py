"""Wrapped functions of Triton: those that make keys without asking the inspection hook."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from triton import knobs

from tilepass.frontends.cache_key import CacheKey, pipeline_key
from tilepass.frontends.triton.overriding import overrides_of
from tilepass.frontends.triton.segments import Plan, compiler_module, instrument

HOOK = "add_stages_inspection_hook"
_jit_module: Any = importlib.import_module("triton.runtime.jit")
_autotuner_module: Any = importlib.import_module("triton.runtime.autotuner")


def wrappers(plan: Plan, key: CacheKey) -> Iterator[tuple[Any, str, Any]]:
    """Replacements for functions of Triton that make keys.

    Triton 3.6 asks the hook for no key; no version does for that of asynchronous compilations, of
    preloaded kernels and of what autotuning has measured.
    """
    yield (
        compiler_module,
        "get_cache_key",
        _bound_to_key(compiler_module.get_cache_key, plan, key.key),
    )
    if not key.key:
        return
    stores = compiler_module.get_cache_manager
    yield compiler_module, "get_cache_manager", _storing_under_true_keys(stores, plan, key.key)
    if not uses_hook(_jit_module.JITFunction.run):
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


def _bound_to_key(function: Callable[..., str], plan: Plan, suffix: str) -> Callable[..., str]:
    """Makes the key of a compilation, and lets its backend carry out what the key stands for."""

    def get_cache_key(source: Any, backend: Any, *arguments: Any, **named: Any) -> str:
        original = backend.add_stages

        def add_stages(stages: Any, options: Any, language: Any) -> None:
            original(stages, options, language)
            overrides = overrides_of(source, options.__dict__)
            instrument(plan, backend, stages, options, language, overrides)

        backend.add_stages = add_stages
        return function(source, backend, *arguments, **named) + suffix

    return get_cache_key


def _storing_under_true_keys(
    function: Callable[[str], Any], plan: Plan, key: str
) -> Callable[[str], Any]:
    """A kernel is found again by its group of files; without one its files are of no account.

    None is stored when the pipeline's key has ceased to hold all code that took part, nor while
    files that no key holds may have replaced what passes made.
    """

    def get_cache_manager(hash: str) -> Any:
        manager = function(hash)
        original = manager.put_group

        def put_group(*arguments: Any, **named: Any) -> Any:
            if knobs.compilation.override or pipeline_key(plan.passes).key != key:
                return None
            return original(*arguments, **named)

        manager.put_group = put_group
        return manager

    return get_cache_manager


def uses_hook(function: Any) -> bool:
    """Whether a function of Triton asks the inspection hook."""
    return HOOK in function.__code__.co_names


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
