"""Reading the bodies of Triton's attributes and types: nested lists, numbers, names, attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tilepass.core.errors import ParseError

Literal = int | bool | str | tuple["Literal", ...]
"""A parameter: a number, a flag, a list, or the text of anything else."""

_OPENING, _CLOSING = "<{[(", ">}])"
_NUMBER = re.compile(r"-?\d+$")


def split_list(text: str) -> list[str]:
    """The parts of a text between its outermost commas, blanks around them dropped."""
    parts: list[str] = []
    depth = start = 0
    for at, character in enumerate(text):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING and not (character == ">" and text[at - 1] == "-"):
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last or parts else []


def parse_parameters(text: str) -> dict[str, Literal]:
    """The parameters in `a = 1, b = [2, 3]`, in order. Raises ParseError for another form."""
    parameters: dict[str, Literal] = {}
    for part in split_list(text):
        name, equals, value = part.partition("=")
        if not equals:
            raise ParseError(f"expected 'name = value' in '{part}'")
        parameters[name.strip()] = parse_literal(value.strip())
    return parameters


def parse_literal(text: str) -> Literal:
    """The value of a parameter."""
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.match(text):
        return int(text)
    if text.startswith("[") and text.endswith("]"):
        return tuple(parse_literal(part) for part in split_list(text[1:-1]))
    return text


def print_literal(value: Literal) -> str:
    """The value as MLIR prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(print_literal, value))}]"
    return str(value)


def print_parameters(parameters: Mapping[str, Literal]) -> str:
    """The parameters as MLIR prints them."""
    return ", ".join(f"{name} = {print_literal(value)}" for name, value in parameters.items())


def unwrap(text: str, start: str, end: str = ">") -> str | None:
    """What stands between `start` and `end`, None where `text` is not so wrapped."""
    if text.startswith(start) and text.endswith(end):
        return text[len(start) : len(text) - len(end)]
    return None
