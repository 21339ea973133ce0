"""The same values in all modules, whether the CuTe DSL is loaded or not.

The DSL tells the bindings for 27 types what to make of a value: a special object, which takes
eight times as long, and whose `==` and `+` build operations. While passes run these casters are put
aside: an operand is an `ir.OpResult` or an `ir.BlockArgument`, and reading it builds nothing.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from tilepass.core.errors import UnsupportedVersionError
from tilepass.ir.engine import ir

Caster = Callable[[ir.Value], Any]

_bindings: Any = ir
_register: Any = _bindings.register_value_caster
_NATIVE = "cutlass._mlir._mlir_libs."
_REGISTERED = "Value caster is already registered: "

_lock = threading.Lock()
_depth = 0
_casters: dict[Any, Caster] = {}
# Types without a caster that were asked for theirs: that leaves one behind.
_asked: set[Any] = set()


class _PerThread(threading.local):
    """How many of the blocks that are open the thread is in."""

    depth = 0


_per_thread = _PerThread()


@contextmanager
def plain_values() -> Generator[None]:
    """Inside the block, in this thread, no value is an object of the DSL."""
    _enter(+1)
    try:
        yield
    finally:
        _enter(-1)


def _enter(change: int) -> None:
    global _depth
    with _lock:
        _depth += change
        _per_thread.depth += change
        if _depth == max(change, 0):
            _install()


def _install() -> None:
    for type_id, caster in _casters.items():
        _register(type_id, replace=True)(_aside(caster) if _depth else caster)


def _aside(caster: Caster) -> Caster:
    """A caster that other threads, which may be tracing, do not miss."""
    return lambda value: value if _per_thread.depth else caster(value)


def _renew() -> None:
    """In a forked child: the threads inside blocks are not there."""
    global _lock, _depth
    _lock, _depth = threading.Lock(), _per_thread.depth
    _install()


os.register_at_fork(after_in_child=_renew)


def _noting(type_id: Any, *, replace: bool = False) -> Callable[[Caster], Caster]:
    """`register_value_caster`, for what is loaded later."""

    def register(caster: Caster) -> Caster:
        with _lock:
            _register(type_id, replace=replace or type_id in _asked)(caster)
            _casters[type_id] = caster
            _install()
        return caster

    return register


def _read_back() -> None:
    """Find what the DSL has registered: the bindings do not give it, but name it in an error."""
    for type_id in _type_ids():
        try:
            _register(type_id)(_unchanged)
            _asked.add(type_id)
        except RuntimeError as error:
            _casters[type_id] = _class_named(str(error))


def _unchanged(value: ir.Value) -> ir.Value:
    return value


def _type_ids() -> Iterator[Any]:
    for name, module in list(sys.modules.items()):
        for each in list(vars(module).values()) if name.startswith(_NATIVE) else ():
            if isinstance(each, type) and issubclass(each, ir.Type):
                native: Any = each
                found = getattr(native, "static_typeid", None)
                found = found or getattr(native, "get_static_typeid", None)
                if found:
                    yield found() if callable(found) else found


def _class_named(message: str) -> Caster:
    """The class of `Value caster is already registered: <class 'module.Name'>`."""
    text = message.removeprefix(_REGISTERED)
    module, _, name = text.removeprefix("<class '").removesuffix("'>").rpartition(".")
    found: Any = getattr(sys.modules.get(module), name, None)
    if repr(found) != text:
        raise UnsupportedVersionError(
            f"nvidia-cutlass-dsl is not supported: the class of its values {text} cannot be found"
        )
    return found


_bindings.register_value_caster = _noting
if "cutlass" in sys.modules:
    _read_back()
