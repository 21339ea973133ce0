"""Exceptions in functions that native code calls: patterns, type conversions, walks.

The bindings let an exception of a callback go through C++ that does not expect one, or cast what it
returns without a check: the process aborts. `stand_ins` are for the functions that take
callbacks and for those that call them. A callback that raises is noted, and answers that it does
not apply, as do all after it; where the native function returns, the exception is raised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from tilepass.ir.engine import ir, passmanager, rewrite

Function = Callable[..., Any]
# What a callback answers once one has raised, the types that it may answer, and these in words.
_Answer = tuple[object, tuple[type, ...], str]

# A callback's answer where None crashes: what it was asked about.
_ARGUMENT = object()


class _PerThread(threading.local):
    """What the first callback raised that did."""

    error: BaseException | None = None


_raised = _PerThread()


@contextmanager
def raising() -> Generator[None]:
    """Raise at the end what a callback raised inside."""
    outer, _raised.error = _raised.error, None
    try:
        yield
    finally:
        error, _raised.error = _raised.error, outer
        if error is not None:
            raise error


def _safe(callback: Function, refusal: object, returns: tuple[type, ...], what: str) -> Function:
    """The callback as native code may call it. `refusal` is its answer once one has raised."""

    def call(*arguments: Any) -> Any:
        answer = arguments[0] if refusal is _ARGUMENT else refusal
        if _raised.error is not None:
            return answer
        try:
            result = callback(*arguments)
            if isinstance(result, returns):
                return result
            _wrong_result(callback, result, what)
        # `KeyboardInterrupt` would end the process like any other.
        except BaseException as error:
            _raised.error = error
        return answer

    return call


def _wrong_result(callback: Function, result: object, what: str) -> None:
    code = getattr(callback, "__code__", None)
    place = f" of line {code.co_firstlineno}" if code else ""
    raise TypeError(f"the callback{place} returned {result!r}, expected {what}")


def _takes(stock: Function, position: int, answer: _Answer) -> Function:
    """`stock` with the callback at `position` made safe."""

    def call(*arguments: Any, **named: Any) -> Any:
        given = list(arguments)
        if position < len(given) and callable(given[position]):
            given[position] = _safe(given[position], *answer)
        for name in ("fn", "convert", "callback"):
            if name in named:
                named[name] = _safe(named[name], *answer)
        return stock(*given, **named)

    return call


def _calls(stock: Function) -> Function:
    """`stock`, which calls callbacks, and what they raise."""

    def call(*arguments: Any, **named: Any) -> Any:
        with raising():
            return stock(*arguments, **named)

    return call


def stand_ins() -> list[tuple[Any, str, Function]]:
    """(owner, attribute, stand-in) of every function that takes callbacks or calls them."""
    drivers, manager, operation = _any(rewrite), _any(passmanager.PassManager), _any(ir.Operation)
    patterns = drivers.RewritePatternSet
    # Of versions that have them.
    types, pdl = getattr(drivers, "TypeConverter", None), getattr(drivers, "PDLModule", None)
    # A pattern that answers True does not match.
    matched = (True, (bool, type(None)), "None, or a bool: whether the pattern does not match")
    converted = (_ARGUMENT, (ir.Type, type(None)), "a type or None")
    anything = (None, (object,), "anything")
    taking: list[tuple[Any, str, int, _Answer]] = [
        (patterns, "add", 2, matched),
        (patterns, "add_conversion", 2, matched),
        (types, "add_conversion", 1, converted),
        (pdl, "register_constraint_function", 2, (True, (object,), "anything")),
        (pdl, "register_rewrite_function", 2, anything),
        (manager, "add", 1, anything),
    ]
    calling: list[tuple[Any, str]] = [
        (drivers, "apply_full_conversion"),
        (drivers, "apply_partial_conversion"),
        (drivers, "apply_patterns_and_fold_greedily"),
        (drivers, "walk_and_apply_patterns"),
        (types, "convert_type"),
        (manager, "run"),
    ]
    walked = (ir.WalkResult.INTERRUPT, (ir.WalkResult,), "a WalkResult")
    return [
        *(
            (owner, name, _takes(getattr(owner, name), position, answer))
            for owner, name, position, answer in taking
            if hasattr(owner, name)
        ),
        *(
            (owner, name, _calls(getattr(owner, name)))
            for owner, name in calling
            if hasattr(owner, name)
        ),
        (operation.__mro__[1], "walk", _calls(_takes(operation.walk, 1, walked))),
    ]


def _any(value: object) -> Any:
    """The bindings' stubs lag behind them."""
    return value
