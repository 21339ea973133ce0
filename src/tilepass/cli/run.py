"""`tilepass run -p PIPELINE -- python app.py ARGUMENTS`: run a program with passes enabled."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tilepass.core.errors import TilepassError
from tilepass.core.flags import add_compile_only_flags, add_traceback_flag

_DESCRIPTION = """\
Run a program in which Triton and the CuTe DSL compile with a pipeline of passes, each with those
that are made for it. The program needs no change; the Python processes that it starts are included.
Its exit status is passed through.

The pipeline reaches the processes by environment variables, which work without this command too
where tilepass is installed (and only there in processes that ignore PYTHONPATH, as `python -I`; in
none that starts without its `site` module, as `python -S`):
  TILEPASS          the pipeline
  TILEPASS_LOAD     files with passes, separated like PATH
  TILEPASS_REMARKS  the kinds of remarks that go to stderr
  TILEPASS_ON_FAILURE  stop or skip (--on-failure)
  TILEPASS_VALIDATE, TILEPASS_VALIDATE_SHAPES  1, and shapes separated by ';' (--validate)
  TILEPASS_TRACEBACK  1: errors of passes with their traceback (--traceback)

With --validate every kernel that a pass rewrote is executed on the CPU while it is compiled: before
the pass and after it, for the same random arguments, of shapes that follow from the kernel. Every
array must be the same, bit by bit; so it must at the end of the stage ttgir, where Triton's passes
have acted on the rewrite, unless Triton alone changes it in the same way. If a rewritten kernel has
barriers or asynchronous copies, they are checked at the end of the stage ttgir. A failure ends the
compilation, with the pass, what differs or the schedule that goes wrong, and a file that reproduces
it. What cannot be executed (operations that the simulator does not know, a kernel that goes wrong
on these shapes without the pass) is a remark of the kind missed, 'not validated: ...', and the
compilation goes on; so is what no shapes reached. A kernel that Triton's cache holds is not
compiled, and so not validated: point TRITON_CACHE_DIR to an empty folder to check everything. CuTe
kernels are not executed: there is no simulator for them, which a remark says.

With --on-failure=skip a pass that fails (raises, refuses what the pipeline asks of it, leaves
invalid IR, changes what a kernel computes) is left out of that kernel, with a remark of the kind
missed that holds the reason and the reproducer, and the program goes on. Where what passes made of
a kernel fails later, in Triton's own passes or in the check of its protocol, the kernel is compiled
without any of them; where the assembler fails on it, the compilation ends in any case.

While passes for CuTe are in force, libraries are told to leave their own caches of CuTe kernels on
disk alone (FlashInfer, FlashAttention, QuACK: by the variables that they have for it): those are
keyed by shapes and options, and know nothing of passes.

With --compile-only the program needs no GPU. It finds one of the target: torch.cuda answers as on
such a machine, "cuda" tensors lie in the host's memory, and what the program launches is compiled
with the specialization and the options of the launch, and does nothing. What it prints of results
and times means nothing; a check in it that fails for that becomes a note. The last line says
what was compiled.
"""


def main(arguments: Sequence[str]) -> int:
    """Replace this process by the program; returns only where that fails.

    Raises TilepassError for a pipeline that is in error, or a program that cannot be started.
    """
    options = _parser().parse_args(arguments)
    command: list[str] = options.command[options.command[:1] == ["--"] :]
    if not command:
        _parser().error("the program to run is missing (tilepass run -p PIPELINE -- python app.py)")
    shapes: list[str] = options.validate_shapes
    from tilepass.subjects.program import compile_only_asked, program_environment
    from tilepass.variables import EMPTY_PIPELINE

    compile_only = compile_only_asked(
        options.target, asked=options.compile_only, all_configurations=options.all_configs
    )
    if options.pipeline is None and compile_only is None:
        _parser().error("the following arguments are required: -p/--pipeline")
    pipeline = options.pipeline or EMPTY_PIPELINE
    _check(pipeline, options.load, options.remarks, shapes)
    environment = program_environment(
        os.environ,
        pipeline,
        options.load,
        options.remarks,
        validate=options.validate,
        shapes=shapes,
        on_failure=options.on_failure,
        compile_only=compile_only,
    )
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        raise TilepassError(f"cannot run '{command[0]}': {error.strerror}") from error


def _check(pipeline: str, load: Sequence[str], remarks: str, shapes: Sequence[str]) -> None:
    """Find errors before the program starts: it may import triton late, or never."""
    from tilepass.activate import parse_remark_kinds
    from tilepass.frontends.placed import place_passes

    parse_remark_kinds(remarks)
    # What there is to say about the files, the program says.
    place_passes(pipeline, load, quiet=True)
    if shapes:
        from tilepass.sim.inputs import parse_shapes

        for text in shapes:
            parse_shapes(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilepass run",
        usage="tilepass run -p PIPELINE [--load FILE] [--remarks KINDS] [--validate] "
        "[--validate-shapes SHAPES] [--on-failure stop|skip] "
        "[--compile-only] [--target BACKEND:ARCH] [--all-configs] -- PROGRAM [ARGUMENT ...]",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-p",
        "--pipeline",
        help="the passes, e.g. 'flatten-loops{mode=on}' (with --compile-only: none)",
    )
    parser.add_argument(
        "--load", action="append", default=[], metavar="FILE", help="a Python file with passes"
    )
    parser.add_argument(
        "--remarks",
        default="missed",
        metavar="KINDS",
        help="remarks on stderr: passed, missed, analysis, all, none (default: missed)",
    )
    parser.add_argument(
        "--validate", action="store_true", help="execute kernels that passes rewrote on the CPU"
    )
    parser.add_argument(
        "--validate-shapes",
        action="append",
        default=[],
        metavar="SHAPES",
        help="sizes for --validate (implied), as of `tilepass check --shapes` (default: some "
        "that follow from the kernel); may be given several times",
    )
    parser.add_argument(
        "--on-failure",
        choices=("stop", "skip"),
        default="stop",
        help="what happens to a kernel in which a pass fails (default: stop)",
    )
    add_compile_only_flags(parser)
    add_traceback_flag(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM")
    return parser
