"""What the command lines of all commands have in common."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from typing import Any

from tilepass.core import tracebacks
from tilepass.core.errors import OptionError

_ONE_DASH = re.compile(r"-([A-Za-z][\w-]+)")


def add_traceback_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--traceback`; it reaches the processes that a command starts too."""
    text = f"print errors with their traceback (or {tracebacks.VARIABLE}=1)"
    parser.add_argument("--traceback", action=_Traceback, nargs=0, help=text)


def add_compile_only_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags with which a program's kernels are compiled and not run, without a GPU."""
    add = parser.add_argument
    add("--compile-only", action="store_true", help="a program finds a GPU that is stood in for: "
        "its kernels are compiled, as it launches them, and not run")  # fmt: skip
    add("--target", "--arch", metavar="BACKEND:ARCH", help="cuda:90, hip:gfx942, ...; for a "
        "program it means --compile-only (default: a file's own, else cuda:90)")  # fmt: skip
    add("--all-configs", action="store_true", help="autotuners compile all of their "
        "configurations (up to the first that fits); means --compile-only")  # fmt: skip


def add_kernel_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags for a `@triton.jit` function of a file, which no launch tells about."""
    add = parser.add_argument
    add("--signature", metavar="TYPES", help="types of the arguments of file.py:kernel, in order "
        "or by name: '*bf16:16,i32:16', 'x=*bf16:16,n=i32' (:16: divisible by 16)")  # fmt: skip
    add("--constexpr", metavar="NAME=VALUE", action="append", default=[],
        help="a constant of file.py:kernel; repeatable")  # fmt: skip
    add("--num-warps", metavar="N", help="of file.py:kernel; of a .ttir file, which names none (4)")
    add("--num-stages", metavar="N", help="of file.py:kernel")


def settings_of(texts: Sequence[str], problem: str) -> dict[str, str]:
    """`["a=1"]` as `{"a": "1"}`. Raises OptionError: `problem` with the text in the place of {}."""
    settings: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise OptionError(problem.format(text))
        settings[name] = value
    return settings


def require_two_dashes(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """A usage error for `-only-changed`, which argparse takes for `-o nly-changed`."""
    # It has no public list of its flags.
    flags: dict[str, Any] = vars(parser)["_option_string_actions"]
    for argument in arguments:
        match = _ONE_DASH.match(argument)
        if match and match[0] not in flags and f"-{match[0]}" in flags:
            parser.error(f"'{match[0]}' has two dashes: -{match[0]}")


def split_command(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """A command's own arguments, and after `--` those of the program that it runs."""
    if "--" not in arguments:
        return list(arguments), []
    at = list(arguments).index("--")
    return list(arguments[:at]), list(arguments[at + 1 :])


def positive_number(text: str) -> int:
    """The value of an option that counts something. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return int(text)


class _Traceback(argparse.Action):
    def __call__(self, *_: Any) -> None:
        os.environ[tracebacks.VARIABLE] = "1"
