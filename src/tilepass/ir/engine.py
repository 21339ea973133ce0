"""The IR engine: real MLIR through the Python bindings that nvidia-cutlass-dsl ships.

The only module that names the bindings. Triton IR enters in generic form, its dialects
unregistered; attributes and types of those dialects are opaque texts (see ir.layouts for views).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cutlass._mlir import ir, passmanager, rewrite

from tilepass.core.diagnostics import Diagnostic, SourceLocation
from tilepass.core.errors import ParseError

if TYPE_CHECKING:
    from collections.abc import Mapping

Module = ir.Module
Operation = ir.Operation

__all__ = [
    "Module",
    "Operation",
    "expand_aliases",
    "ir",
    "location_of",
    "new_context",
    "parse",
    "passmanager",
    "print_generic",
    "rewrite",
    "verify",
]

_ALIAS = re.compile(r"^([#!][A-Za-z_][\w$]*) = (.*)$", re.MULTILINE)
_FILE_LOCATION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


def new_context() -> ir.Context:
    """A context in which operations of any dialect are allowed."""
    context = ir.Context()
    context.allow_unregistered_dialects = True
    return context


def parse(text: str, context: ir.Context | None = None) -> Module:
    """Parse generic MLIR text. Raises ParseError with the diagnostics."""
    try:
        return ir.Module.parse(expand_aliases(text), context or new_context())
    except ir.MLIRError as error:
        raise ParseError(str(error)) from error


def print_generic(module: Module) -> str:
    """Generic text of a module with locations."""
    return module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)


def verify(module: Module) -> list[Diagnostic]:
    """The errors of the verifier; empty for a valid module."""
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        return [Diagnostic("error", str(error))]
    return []


def expand_aliases(text: str) -> str:
    """Replace attribute and type aliases by their definitions, outside string literals.

    The bodies of unregistered types are opaque to the parser: an alias inside one would stay a
    name without a meaning. `#loc` aliases are understood everywhere and stay.
    """
    aliases = {
        name: body for name, body in _ALIAS.findall(text) if not name.startswith("#loc")
    }
    if not aliases:
        return text
    names = "|".join(re.escape(name) for name in sorted(aliases, key=len, reverse=True))
    token = re.compile(rf'"(?:[^"\\]|\\.)*"|(?:{names})(?![\w$])(?! = )')
    for name, body in aliases.items():
        aliases[name] = _replace(token, body, aliases)
    without = _ALIAS.sub(lambda match: match[0] if match[1].startswith("#loc") else "", text)
    return _replace(token, without, aliases)


def location_of(operation: Operation) -> SourceLocation | None:
    """The innermost file, line and column in an operation's location, None if it has none."""
    match = _FILE_LOCATION.search(str(operation.location))
    return SourceLocation(match[1], int(match[2]), int(match[3])) if match else None


def _replace(token: re.Pattern[str], text: str, aliases: Mapping[str, str]) -> str:
    return token.sub(lambda match: aliases.get(match[0], match[0]), text)
