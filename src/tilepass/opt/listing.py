"""`--list-passes` and `--help-pass`."""

from __future__ import annotations

import inspect

from tilepass.core.errors import TilepassError
from tilepass.core.options import describe_options
from tilepass.core.pass_base import Pass
from tilepass.core.registry import find_pass, pass_names
from tilepass.core.versions import triton_version
from tilepass.frontends.triton.builtin_passes import BuiltinOption, discover

_TAKES = {"bool": "true or false", "int": "an integer", "str": "a text"}


def list_passes() -> str:
    """Every pass with its anchor and options, tilepass's own first."""
    lines = ["passes of tilepass:"]
    for name in pass_names():
        try:
            lines += _own(find_pass(name))
        except TilepassError as error:
            lines.append(f"  {name}: cannot be used: {str(error).splitlines()[0]}")
    lines += ["", f"passes of {triton_version()}:"]
    for builtin in discover().values():
        lines.append(f"  {builtin.name}")
        lines += [_triton_option(option) for option in builtin.options]
    return "\n".join(lines)


def describe_pass(name: str) -> str:
    """All that a pass says of itself: place, docstring, options. Raises UnknownPassError."""
    pass_class = find_pass(name)
    text = inspect.cleandoc(pass_class.__doc__ or "")
    lines = [f"{name} @{pass_class.anchor}", "", *text.splitlines()]
    options = describe_options(pass_class)
    lines += ["", "options:" if options else "no options"]
    lines += [f"  {option}={default}: {takes}" for option, takes, default in options]
    return "\n".join(lines)


def _own(pass_class: type[Pass]) -> list[str]:
    summary = (pass_class.__doc__ or "").strip().split("\n")[0]
    lines = [f"  {pass_class.name} @{pass_class.anchor}", *([f"    {summary}"] if summary else [])]
    for option, takes, default in describe_options(pass_class):
        lines.append(f"    {option}={default}: {takes}")
    return lines


def _triton_option(option: BuiltinOption) -> str:
    default = "" if option.default is None else f"={option.default}"
    fixed = "" if option.settable else ", fixed by Triton's Python bindings"
    return f"    {option.name}{default}: {_TAKES[option.type]}{fixed}"
