"""Caches of compiled kernels that libraries keep beside the DSL's, under their own keys.

Such a key is made of shapes and types, so the entry of one pipeline would be found under another.
In memory: what a library calls a cache is emptied when the pipeline changes (`functools.cache` and
`lru_cache`; variables of modules, or attributes of functions, classes and objects, whose name says
so). On disk: the libraries that are known to have one are told to leave it alone while passes are
in force, by the variable that they document for that; the cache keeps the stock kernels.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, cast

_DISK_CACHES_OFF = {
    # FlashInfer: flashinfer/jit/cute_dsl_core.py, and its b12x kernels.
    "FLASHINFER_CUTE_DSL_DISABLE_CACHE": "1",
    "B12X_COMPILE_DISK_CACHE": "0",
    # FlashAttention 4, which has it off by default, and libraries that took its cache over.
    "FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED": "0",
    "QUACK_CACHE_ENABLED": "0",
}
# `functools` does not name the type of what it decorates functions with.
_CachedFunction: Any = type(functools.cache(lambda: None))
# How deep in a cache's entries a kernel may be: in tuples, objects, closures around it.
_DEPTH = 5
# What leads to everything.
_NO_ENTRIES = (type, types.ModuleType, types.FrameType, types.CodeType)


def disk_caches_off() -> ExitStack:
    """Let no library read or write kernels on disk; undone by closing."""
    undo = ExitStack()
    for name, value in _DISK_CACHES_OFF.items():
        undo.callback(_restore, name, os.environ.get(name))
        os.environ[name] = value
    return undo


def forget_compiled(report: Callable[[str], None]) -> None:
    """Empty the caches in memory that hold compiled kernels.

    `report` is told of variables that hold some and are not called a cache: they are the program's,
    and their kernels stay what they are.
    """
    holders = _holders()
    reported: set[int] = set()
    for holder in holders.values():
        if type(holder) is _CachedFunction:
            cast("Any", holder).cache_clear()
    for name, value in list(_variables(holders.values())) if holders else ():
        if id(value) not in holders:
            continue
        clear = getattr(value, "clear", None)
        if clear and "cache" in name.rpartition(".")[2].lower():
            clear()
        elif issubclass(type(value), dict | list) and id(value) not in reported:
            # A module may have two names (`__main__`).
            reported.add(id(value))
            report(f"{name} holds kernels that were compiled before; they stay as they are")


def _holders() -> dict[int, object]:
    """What compiled kernels are in, directly or not, by identity.

    Looked for from the kernels: they are few, and what might hold one is all there is.
    """
    kernels, objects = _compiled_types(), gc.get_objects()
    # Of all that there is: a look into a set is five times as fast as `issubclass`.
    inner = [one for one, kind in zip(objects, map(type, objects), strict=True) if kind in kernels]
    del objects
    found: dict[int, object] = {}
    for _ in range(_DEPTH if inner else 0):
        outer = [one for one in gc.get_referrers(*inner) if one is not inner and _is_entry(one)]
        outer = [one for one in outer if id(one) not in found]
        found.update((id(one), one) for one in outer)
        inner = outer
        if not inner:
            break
    return found


def _is_entry(value: object) -> bool:
    """Whether what leads to this may be a cache, and is not just the program."""
    kind = type(value)
    if kind is dict and "__spec__" in cast("dict[Any, Any]", value):
        # The variables of a module.
        return False
    return not (issubclass(kind, _NO_ENTRIES) or kind.__module__.startswith("cutlass."))


def _compiled_types() -> set[type[Any]]:
    """What `cute.compile` returns (with or without TVM-FFI), and what `.to(device)` makes of it."""
    module: Any = sys.modules["cutlass.base_dsl.jit_executor"]
    found: set[type[Any]] = {module.JitCompiledFunction, module.JitExecutor}
    while more := {each for kind in found for each in kind.__subclasses__()} - found:
        found |= more
    return found


def _restore(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _variables(holders: Iterable[object]) -> Iterator[tuple[str, Any]]:
    """Variables of modules, attributes of their functions and classes, and those of the objects
    among `holders`, with their full names."""
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == "cutlass" or type(module) is not types.ModuleType:
            continue
        for name, value in list(vars(module).items()):
            yield f"{module_name}.{name}", value
            # Not `isinstance`: it asks objects for their class, and some are deprecated and warn.
            if _has_attributes(value) and value.__module__ == module_name:
                for attribute, held in list(_attributes_of(value).items()):
                    yield f"{module_name}.{name}.{attribute}", held
    for holder in holders:
        if type(holder) is types.FunctionType:
            continue
        for attribute, held in list(_attributes_of(holder).items()):
            yield f"{type(holder).__module__}.{type(holder).__qualname__}.{attribute}", held


def _has_attributes(value: object) -> bool:
    """Whether a variable is a function or a class."""
    return type(value) is types.FunctionType or issubclass(type(value), type)


def _attributes_of(value: object) -> Mapping[str, Any]:
    """The attributes of an object itself; none of one that has no place for any."""
    try:
        return cast("Mapping[str, Any]", vars(value))
    except TypeError:
        return {}
