"""`tilepass explain WHAT -p PIPELINE`: why the passes of a pipeline decide as they do."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilepass.core.errors import OptionError
from tilepass.core.flags import (
    add_compile_only_flags,
    add_kernel_flags,
    add_traceback_flag,
    require_two_dashes,
    settings_of,
    split_command,
)

if TYPE_CHECKING:
    from tilepass.subjects.program import CompileOnly


def main(arguments: Sequence[str]) -> int:
    """Print the account; returns a program's exit status. Raises TilepassError."""
    own, after = split_command(arguments)
    parser = _parser()
    require_two_dashes(parser, own)
    options = parser.parse_intermixed_args(own)
    if options.what is None and not after:
        parser.error("give an IR file, a kernel, or a program after --")
    from tilepass.core.pass_base import Target
    from tilepass.core.registry import load_file
    from tilepass.explain import subjects
    from tilepass.subjects.kernel import kernel_spec

    for file in options.load:
        load_file(file)
    target = Target.parse(options.target, "--target") if options.target else None
    suffix = Path(options.what or "").suffix
    if options.what is None:
        account = subjects.explain_command(after, options.pipeline, options.load, stand_in(options))
    elif options.signature is not None:
        account = subjects.explain_spec(
            kernel_spec(options.what, options), target, options.pipeline, options.load
        )
    elif options.what == "-" or suffix in subjects.IR_SUFFIXES:
        if options.arguments or after:
            raise OptionError(f"{options.what}: an IR file takes no arguments")
        account = subjects.explain_file(options.what, options.pipeline, target)
    elif suffix == ".py":
        account = subjects.explain_program(
            options.what, [*options.arguments, *after], options.pipeline, stand_in(options)
        )
    else:
        problem = "'{}': expected FIELD=VALUE, a field of the kernel's configuration"
        fields = settings_of(options.arguments, problem)
        account = subjects.explain_kernel(options.what, options.pipeline, target, fields)
    print(account.to_json() if options.json else account.to_text())
    return account.status


def stand_in(options: argparse.Namespace) -> CompileOnly | None:
    """The GPU that a program finds where it finds none, or where the flags ask for one."""
    from tilepass.subjects.program import compile_only_without_gpu

    return compile_only_without_gpu(
        options.target, asked=options.compile_only, all_configurations=options.all_configs
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilepass explain",
        description="Run a pipeline and print every decision: what was chosen, by whom, from which "
        "facts, and what the others would have chosen.",
        epilog="A @triton.jit function is file.py:kernel with --signature. "
        "For a kernel of tilepass, ARGUMENTs are fields of its configuration: block_m=64. "
        "A program runs with its kernels compiled anew, without a GPU as far as its launches; its "
        "flags come after --: explain app.py -p PIPELINE -- --size 4, or as a command: "
        "explain -p PIPELINE -- python app.py --size 4.",
    )
    parser.add_argument("what", nargs="?", metavar="WHAT", help="IR file (- for standard input), "
                        "kernel, or program (.py)")  # fmt: skip
    parser.add_argument("arguments", metavar="ARGUMENT", nargs="*", help="for a kernel or program")
    parser.add_argument("-p", "--pipeline", metavar="PIPELINE", required=True)
    add_kernel_flags(parser)
    add_compile_only_flags(parser)
    parser.add_argument("--load", action="append", default=[], metavar="FILE", help="Python file "
                        "of passes")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_traceback_flag(parser)
    return parser
