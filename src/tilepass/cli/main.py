"""`tilepass COMMAND ...`: the umbrella command; imports the module of the command called."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import tilepass
from tilepass.cli.guard import run_guarded
from tilepass.core.errors import nearest


@dataclass(frozen=True)
class _Command:
    """Where a command's `main(argv) -> int` is, and its line in the help.

    `in_child`: it loads native code into its own process, which may crash.
    """

    module: str
    summary: str
    in_child: bool = False


COMMANDS = {
    "opt": _Command(
        "tilepass.cli.opt", "run passes on an IR file (the same as tilepass-opt)", True
    ),
    "dump-ir": _Command(
        "tilepass.cli.dump_ir", "the IR after every stage and pass of a kernel", True
    ),
    "ab": _Command("tilepass.cli.ab", "time a kernel with a pass on and off, in pairs", True),
    "run": _Command("tilepass.cli.run", "run a program with passes enabled"),
    "check": _Command("tilepass.cli.check", "execute a kernel's IR on the CPU, compare two", True),
    "explain": _Command("tilepass.cli.explain", "why passes decided as they did", True),
    # Its own children take what crashes.
    "reduce": _Command("tilepass.cli.reduce", "the smallest IR for which a command still fails"),
    "diff": _Command("tilepass.cli.diff", "two dumps, or two reports of ab: what differs"),
    "doctor": _Command(
        "tilepass.cli.doctor", "check the installed versions and the IR bridge", True
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `tilepass`; returns the exit status of the command."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in COMMANDS:
        command = COMMANDS[arguments[0]]
        run = importlib.import_module(command.module).main
        return run_guarded(run, arguments[1:], in_child=command.in_child and argv is None)
    return _no_command(arguments)


def _no_command(arguments: Sequence[str]) -> int:
    """`--help`, `--version`, or a usage error; exits as argparse does."""
    parser = argparse.ArgumentParser(
        prog="tilepass",
        description=tilepass.__doc__,
        usage="tilepass [-h] [--version] COMMAND ...",
        epilog="commands:\n"
        + "\n".join(f"  {name:<10}{command.summary}" for name, command in COMMANDS.items())
        + "\n\n`tilepass COMMAND --help` describes a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tilepass {tilepass.__version__}")
    parser.add_argument("command", nargs="?", metavar="COMMAND", help="one of the commands below")
    command = parser.parse_known_args(arguments)[0].command
    if command is None:
        parser.error("a command is missing")
    parser.error(f"unknown command '{command}'{nearest(command, COMMANDS)}")


if __name__ == "__main__":
    sys.exit(main())
