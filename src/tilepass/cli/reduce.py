"""`tilepass reduce FILE -- COMMAND ... {} ...`: the smallest IR for which a command still fails."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilepass.core.errors import OptionError, TilepassError
from tilepass.core.files import write_whole
from tilepass.core.flags import (
    add_traceback_flag,
    positive_number,
    require_two_dashes,
    split_command,
)

if TYPE_CHECKING:
    from tilepass.ir.engine import Module

_HEADER = "// tilepass reduce: "


def main(arguments: Sequence[str]) -> int:
    """Write the reduced IR; returns 0. Raises TilepassError where the command does not fail."""
    parser = _parser()
    own, words = split_command(arguments)
    require_two_dashes(parser, own)
    options = parser.parse_args(own)
    if not any("{}" in word for word in words):
        raise OptionError("the command has no {} for the file's name")
    match = _pattern(options.match) if options.match else None
    from tilepass.opt.light_triton import load_libtriton

    load_libtriton()
    from tilepass.opt.source import read_source
    from tilepass.opt.work import is_cute
    from tilepass.reduce import Command, reduce
    from tilepass.reduce.edits import size

    text = read_source(options.file).text
    output = Path(options.output or f"{Path(options.file).stem}-reduced.mlir")
    header = _HEADER + _digest(text, *words, options.match or "")
    tried_file = output.with_name(output.name + ".tried")
    text = _unfinished(output, header) or text
    read, printed = _cute() if is_cute(text) else _triton(with_places="loc(" in text)
    module = read(text)
    before, started = size(module), time.monotonic()
    # What a search that was ended has tried; this one adds to it.
    tried = set(tried_file.read_text().split()) if tried_file.exists() else set[str]()

    def keep(smaller: str) -> None:
        write_whole(output, f"{header}\n{smaller}\n")
        write_whole(tried_file, "\n".join(tried))

    search = reduce(
        module,
        text,
        Command(words, _execute, match, options.timeout),
        printed,
        keep,
        tried,
        options.jobs,
    )
    tried_file.unlink(missing_ok=True)
    seconds = time.monotonic() - started
    print(
        f"{output}: {size(search.module)} of {before} operations, {search.runs} runs of the "
        f"command, {seconds:.0f} s"
    )
    return 0


def _execute(words: Sequence[str]) -> int:
    """The exit status of a command; one of tilepass runs in this process, which has imported what
    it needs."""
    name = Path(words[0]).name
    if name == "tilepass-opt":
        from tilepass.cli.opt import main as opt

        return opt(words[1:])
    if name == "tilepass":
        from tilepass.cli.main import main as tilepass

        return tilepass(words[1:])
    return subprocess.run(list(words), check=False).returncode


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _unfinished(output: Path, header: str) -> str | None:
    """What an earlier search has come to. Raises OptionError for a file that is none's."""
    if not output.exists():
        return None
    first, _, rest = output.read_text().partition("\n")
    if first == header:
        return rest
    raise OptionError(f"{output} exists and is not from a reduction of this file by this command")


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise OptionError(f"--match '{text}': {error}") from error


def _triton(*, with_places: bool) -> tuple[Callable[[str], Module], Callable[[Module], str]]:
    """How to read and to print a module of Triton, which its verifier has to accept."""
    from tilepass.frontends.triton import bridge

    def printed(module: Module) -> str:
        shown = bridge.from_engine(module, bridge.new_context())
        return (shown.str() if with_places else shown.str_nodebug()).rstrip()

    return lambda text: bridge.to_engine(bridge.load(text, "module.mlir")), printed


def _cute() -> tuple[Callable[[str], Module], Callable[[Module], str]]:
    from tilepass.ir import engine

    def printed(module: Module) -> str:
        if problems := engine.verify(module):
            raise TilepassError(str(problems[0]))
        return engine.print_readable(module, locations=False).rstrip()

    return engine.parse_expanded, printed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilepass reduce",
        usage="%(prog)s FILE [options] -- COMMAND ... {} ...",
        description="Make IR as small as possible while a command fails on it as it does on FILE: "
        "with the same exit status and the same first error, numbers and places aside. In the "
        "command {} stands for the file's name. What is found is written at once; the same command "
        "line goes on where one was ended.",
        epilog="examples:\n"
        "  tilepass reduce kernel.ttgir -- tilepass check {}\n"
        "  tilepass reduce kernel.ttir --match 'differs' -- sh -c \\\n"
        "    'tilepass-opt {} -p my-pass -o {}.after && tilepass check {} --against {}.after'",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="IR file")
    parser.add_argument("-o", "--output", metavar="FILE", help="the result (NAME-reduced.mlir)")
    parser.add_argument("--match", metavar="REGEX", help="what the output has to hold, in place of "
                        "the same first error")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help="seconds after "
                        "which a run is ended and counts as no failure (60)")  # fmt: skip
    parser.add_argument("--jobs", type=positive_number, default=os.cpu_count() or 1, metavar="N",
                        help="runs side by side (as many as processors)")  # fmt: skip
    add_traceback_flag(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
