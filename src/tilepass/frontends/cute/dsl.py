"""The parts of the CuTe DSL that are used (those for source lines are in source_lines).

The DSL is reached through `sys.modules`: what is here is for a program that has imported it.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from threading import RLock
from typing import Any

from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Target
from tilepass.frontends.cute import source_lines
from tilepass.ir.engine import Module, ir

# The module whose import ends with both DSLs made (`@cute.jit`, `@cute.experimental.jit`).
READY_MODULE = "cutlass.cute"

# `hook(dsl, module, function name)`, after tracing and before the module is hashed.
TraceHook = Callable[[Any, Module, str], None]
_LINKED = "link-libraries"


def is_ready() -> bool:
    """Whether the program has imported the DSL."""
    return bool(_instances())


def attach(hook: TraceHook, lock: RLock) -> ExitStack:
    """Have `hook` called for every traced function; undone by closing.

    While it is attached one thread traces and compiles at a time: the DSL keeps the state of a
    trace (module, options, names) in its one object. Traced operations have their source lines.
    """
    undo = ExitStack()
    for dsl in _instances():
        dsl.register_trace_finalize_hook(hook)
        # The DSL has no function that takes a hook out.
        undo.callback(dsl._trace_finalize_hooks.remove, hook)
    for owner, name, value in _replacements(lock):
        undo.callback(setattr, owner, name, owner.__dict__[name])
        setattr(owner, name, value)
    return undo


def compile_pipeline(dsl: Any, module: Module) -> str:
    """The pass pipeline with which `dsl` compiles `module`, which it has just traced."""
    pipeline: str = dsl.preprocess_pipeline(dsl._get_pipeline(None), chip_of(dsl))
    libraries = dict.fromkeys(_link_libraries(module))
    if not libraries:
        return pipeline
    # The DSL adds them to its options when the hooks are done.
    given = re.search(r"link-libraries='([^']*)'", pipeline)
    listed = ",".join([*([given[1]] if given else []), *libraries])
    pipeline = pipeline.replace(given[0], "") if given else pipeline
    return pipeline.replace("cute-to-nvvm{", f"cute-to-nvvm{{link-libraries='{listed}' ", 1)


def _link_libraries(module: Module) -> Iterator[str]:
    """The bitcode files that kernels of the module call into."""
    for operation in module.body.operations:
        attributes = operation.operation.attributes
        if operation.operation.name == "gpu.module" and _LINKED in attributes:
            for file in ir.ArrayAttr(attributes[_LINKED]):
                yield ir.StringAttr(file).value


def chip_of(dsl: Any) -> str:
    """The chip that is compiled for: `sm_90a`."""
    return dsl.compile_options.gpu_arch or dsl.envar.arch


def target_of(dsl: Any) -> Target:
    """The target that is compiled for."""
    match = re.match(r"sm_(\d+)", chip_of(dsl))
    if match is None:
        raise TilepassError(f"the CuTe DSL compiles for '{chip_of(dsl)}', expected sm_NUMBER")
    return Target("cuda", int(match[1]))


def compile_options(dsl: Any) -> Mapping[str, object]:
    """The chip and the options of the compilation, as a pass is told of them."""
    return {"chip": chip_of(dsl), "options": " ".join(dsl.compile_options.to_str().split())}


def module_hash(dsl: Any, module: Module, function_name: str) -> str:
    """The key under which the DSL's caches keep what it makes of `module`."""
    return dsl.get_module_hash(module, function_name)


def _instances() -> list[Any]:
    module: Any = sys.modules.get("cutlass.base_dsl.dsl")
    return list(module.DSLSingletonMeta._instances.values()) if module else []


def _replacements(lock: RLock) -> Iterator[tuple[Any, str, Any]]:
    """What the DSL's functions are replaced by while a hook is attached."""
    dsl: Any = importlib.import_module("cutlass.base_dsl.dsl")
    compiler: Any = importlib.import_module("cutlass.base_dsl.compiler")
    entries = [
        (compiler.CompileCallable, "_compile"),
        (dsl.BaseDSL, "_preprocess_and_replace_code"),
        (dsl.BaseDSL, "_func"),
        (dsl.BaseDSL, "_device_func"),
    ]
    for owner, name in entries:
        if name in owner.__dict__:
            yield owner, name, _serialized(owner.__dict__[name], lock)
    yield from source_lines.replacements()


def _serialized(method: Any, lock: RLock) -> Any:
    """A method, static or not, that runs under `lock` and raises what a hook raised as it is."""
    static = isinstance(method, staticmethod)
    function: Any = method.__func__ if static else method

    def serialized(*arguments: Any, **named: Any) -> Any:
        with lock:
            try:
                return function(*arguments, **named)
            except Exception as error:
                # The DSL wraps what a hook raises.
                if isinstance(error.__cause__, TilepassError):
                    raise error.__cause__ from None
                raise

    # The DSL follows `__wrapped__` to the user's function: none is set here.
    serialized.__name__ = function.__name__
    return staticmethod(serialized) if static else serialized
