"""Options from text: those of a pass as its frozen dataclass, and values of any other's."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, get_args, get_origin

from tilepass.core import tracebacks
from tilepass.core.errors import OptionError, TilepassError, nearest
from tilepass.core.pass_base import Pass, spell

_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


def build_options(pass_class: type[Pass], given: Mapping[str, str]) -> Any:
    """An `Options` of `pass_class` from option texts, kebab-case or snake_case.

    Raises OptionError, which names the pass, the option, and what it takes.
    """
    hints = _hints(pass_class)
    names = {field.name.replace("_", "-"): field.name for field in fields(pass_class.Options)}
    values: dict[str, Any] = {}
    for key, text in given.items():
        option = key.replace("_", "-")
        if option not in names:
            takes = ", ".join(names) or "none"
            raise OptionError(
                f"pass '{pass_class.name}' has no option '{key}'{nearest(option, names)} "
                f"(options: {takes})"
            )
        try:
            values[names[option]] = convert(text, hints[names[option]])
        except (ValueError, TypeError) as error:
            raise OptionError(f"pass '{pass_class.name}', option '{option}': {error}") from error
    return _made(pass_class, values)


def options_problem(pass_class: type[Pass]) -> str | None:
    """What keeps `Options` of a pass from being built from a pipeline; None for nothing."""
    if not is_dataclass(pass_class.Options):
        return "its Options are not a dataclass"
    without_default = [
        field.name
        for field in fields(pass_class.Options)
        if field.default is MISSING and field.default_factory is MISSING
    ]
    if without_default:
        return f"its options need defaults: {', '.join(without_default)}"
    return None


def describe_options(pass_class: type[Pass]) -> list[tuple[str, str, str]]:
    """(option, what it takes, default) of every option, in declaration order."""
    hints = _hints(pass_class)
    default = _made(pass_class, {})
    return [
        (
            field.name.replace("_", "-"),
            _describe(hints[field.name]),
            spell(getattr(default, field.name)),
        )
        for field in fields(pass_class.Options)
    ]


def _hints(pass_class: type[Pass]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(pass_class.Options)
    except Exception as error:
        told = tracebacks.describe(error, pass_class.__module__)
        raise OptionError(f"pass '{pass_class.name}': the types of its Options: {told}") from error


def _made(pass_class: type[Pass], values: Mapping[str, Any]) -> Any:
    """`Options` of these values, which its `__post_init__` may refuse."""
    try:
        return pass_class.Options(**values)
    except TilepassError:
        raise
    except Exception as error:
        told = tracebacks.describe(error, pass_class.__module__)
        raise OptionError(f"pass '{pass_class.name}', its Options: {told}") from error


def convert(text: str, kind: Any) -> Any:
    """`text` as a value of an annotated type: bool, int, float, str, Literal, None, or a union.

    Raises ValueError, which says what the type takes, and TypeError for any other type.
    """
    origin, alternatives = get_origin(kind), get_args(kind)
    found: list[Any] = []
    if origin is Literal:
        found = [value for value in alternatives if text == spell(value)]
    elif origin in (typing.Union, types.UnionType):
        found = list(_converted(text, alternatives))
    elif kind is bool:
        found = [word in _TRUE for word in (text.lower(),) if word in _TRUE + _FALSE]
    elif kind is types.NoneType:
        found = [None] * (text.lower() == "none")
    elif kind is str:
        found = [text]
    elif kind in (int, float):
        with suppress(ValueError):
            found = [kind(text)]
    else:
        raise TypeError(f"a pipeline cannot give an option of type {kind}")
    if not found:
        raise ValueError(f"'{text}' is not {_describe(kind)}")
    return found[0]


def _converted(text: str, alternatives: tuple[Any, ...]) -> Iterator[Any]:
    for alternative in alternatives:
        with suppress(ValueError):
            yield convert(text, alternative)


def _describe(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(spell(value) for value in get_args(hint))
    if get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(_describe(alternative) for alternative in get_args(hint))
    names = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}
    return names.get(hint, "none" if hint is types.NoneType else str(hint))
