"""`tilepass dump-ir`: the IR after every stage and pass of a kernel, a program or an IR file."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilepass.core.errors import TilepassError
from tilepass.core.flags import (
    add_compile_only_flags,
    add_kernel_flags,
    add_traceback_flag,
    require_two_dashes,
    settings_of,
    split_command,
)
from tilepass.core.pass_base import Target

if TYPE_CHECKING:
    from tilepass.dump.kernel_files import RecorderOptions
    from tilepass.dump.report import KernelReport

_EPILOG = """\
WHAT is a kernel of tilepass (persistent-matmul, mxfp4-matmul, ...), a .ttir or .ttgir file, which
goes through the stages after its own, a .mlir file with a module that the CuTe DSL traced, a
Python function without arguments that compiles CuTe kernels (file.py:function, module:function), or
a @triton.jit function with --signature.

A program is given after `--`; the processes that it starts are included, and kernels that are in a
cache are compiled again to be dumped. Without a GPU, or with --compile-only, it finds one that is
stood in for, and its kernels are compiled and not run.

Every kernel and specialization gets a folder with numbered files: the IR after each pass, a .diff
where the pass changed it, PTX, SASS, figures.json, and index.html, which shows all of it. Of the
CuTe DSL's own passes these are the ones up to strength-reduction, run on a copy; those behind it,
and a few that only simplify, do not run alone.

Exit status: that of the program if it fails; 1 for an error, where no kernel was dumped, or
where a kernel's SASS or figures could not be had.

examples:
  tilepass dump-ir persistent-matmul --target cuda:90 -p 'flatten-loops{mode=on}'
  tilepass dump-ir kernel.ttgir --only-changed -o dump
  tilepass dump-ir kernel.ttgir --only-pipeline -p 'tritongpu-coalesce,canonicalize'
  tilepass dump-ir -o dump -- python app.py --size 4096
  tilepass dump-ir my_kernel.py:compile_it --target cuda:90
  tilepass dump-ir my_kernel.py:add --signature '*fp32:16,*fp32:16,i32' --constexpr BLOCK=1024
"""


def main(arguments: Sequence[str]) -> int:
    """Entry point; returns the exit status. Raises TilepassError."""
    own, command = split_command(arguments)
    parser = _parser()
    require_two_dashes(parser, own)
    options = parser.parse_args(own)
    if (options.what is None) == (not command):
        parser.error("give either a kernel or file, or a program after --")
    if command and options.only_pipeline:
        parser.error("--only-pipeline is for files")
    if options.kernel and options.only_pipeline:
        parser.error("--kernel chooses among compiled kernels: not with --only-pipeline")
    folder = _new_dump(Path(options.output))
    from tilepass.dump.kernel_files import RecorderOptions

    recorder_options = RecorderOptions(
        folder, options.only_changed, options.locations, _pattern(options.kernel)
    )
    if command:
        return _dump_program(command, options, recorder_options)
    return _dump_compilation(options, recorder_options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilepass dump-ir",
        usage="tilepass dump-ir WHAT [options]\n       tilepass dump-ir [options] -- PROGRAM ...",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("what", nargs="?", metavar="WHAT", help="a kernel's name, an IR file or a function")
    add("-p", "--pipeline", default="", metavar="PIPELINE", help="passes to run (none)")
    add("-o", "--output", default="tilepass-dump", metavar="DIR",
        help="a folder that is new or empty (tilepass-dump)")  # fmt: skip
    add("--config", metavar="NAME=VALUE", action="append", default=[],
        help="option of a kernel of tilepass, compile option of a file; repeatable")  # fmt: skip
    add_kernel_flags(parser)
    add("--load", metavar="FILE", action="append", default=[], help="file that registers passes")
    add("--only-pipeline", action="store_true",
        help="run no stage on the file, only -p, which may name Triton's passes")  # fmt: skip
    add("--only-changed", action="store_true", help="leave out the IR after passes without effect")
    add("--locations", action="store_true",
        help="keep source locations in the IR; CuTe's is in generic form then")  # fmt: skip
    add("--kernel", metavar="REGEX", default="", help="names of the kernels to dump (all)")
    add("--no-html", action="store_true", help="write no pages")
    add_compile_only_flags(parser)
    add_traceback_flag(parser)
    return parser


def _new_dump(folder: Path) -> Path:
    """The folder, made if need be. Raises TilepassError where it holds something already."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise TilepassError(f"{folder} is not empty: give another folder with -o")
    except OSError as error:
        raise TilepassError(f"cannot write to the folder {folder}: {error.strerror}") from error
    if not os.access(folder, os.W_OK):
        raise TilepassError(f"cannot write to the folder {folder}: Permission denied")
    return folder.resolve()


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise TilepassError(f"--kernel {text}: {error}") from error


def _dump_compilation(options: argparse.Namespace, recorder_options: RecorderOptions) -> int:
    from tilepass.core.versions import triton_version
    from tilepass.dump.cute_sources import call_function
    from tilepass.dump.recorder import Recorder
    from tilepass.dump.sources import (
        compile_file,
        compile_kernel,
        compile_workload,
        default_target,
    )
    from tilepass.subjects.kernel import is_spec, kernel_spec

    recorder = Recorder(recorder_options, compiler=str(triton_version()), pipeline=options.pipeline)
    passes = (options.pipeline, options.load, recorder)
    target = Target.parse(options.target, "--target") if options.target else None
    settings = settings_of(options.config, "--config {}: expected NAME=VALUE")
    if options.num_warps is not None:
        settings["num_warps"] = options.num_warps
    try:
        if options.signature is not None:
            kernel = kernel_spec(options.what, options, settings)
            compile_kernel(kernel, target or default_target(), *passes)
        elif is_spec(options.what):
            if settings:
                raise TilepassError("--config: a function takes no options")
            call_function(options.what, target or default_target(), *passes)
        elif options.only_pipeline:
            from tilepass.dump.pipeline_run import dump_pipeline

            path = Path(options.what)
            dump_pipeline(path, target, options.pipeline, options.load, recorder_options)
        elif _is_file(options.what):
            compile_file(Path(options.what), target, settings, *passes)
        else:
            compile_workload(options.what, target or default_target(), settings, *passes)
    except BaseException:
        # What was recorded before an error shows where it came from.
        _finish_after_error(recorder_options.folder, options.no_html)
        raise
    reports, others = _finish(recorder_options.folder, options.no_html)
    _require_kernels(options.what, reports, others, options.kernel)
    return 0


def _dump_program(
    command: list[str], options: argparse.Namespace, recorder_options: RecorderOptions
) -> int:
    from tilepass.dump.program_run import record_program
    from tilepass.dump.store import DumpError
    from tilepass.subjects.program import compile_only_without_gpu

    compile_only = compile_only_without_gpu(
        options.target, asked=options.compile_only, all_configurations=options.all_configs
    )
    status = record_program(
        command, options.pipeline, options.load, recorder_options, compile_only=compile_only
    )
    try:
        reports, others = _finish(recorder_options.folder, options.no_html)
    except DumpError as error:
        if not status:
            raise
        print(f"error: {error}", file=sys.stderr)
        reports, others = [], []
    if status:
        print(f"error: {command[0]} ended with exit status {status}", file=sys.stderr)
        return status
    _require_kernels(" ".join(command), reports, others, options.kernel)
    return 0


def _finish(folder: Path, no_html: bool) -> tuple[list[KernelReport], list[str]]:
    """Complete the dump and say what is in it; returns also the names of kernels left out."""
    from tilepass.dump.left_out import take_left_out
    from tilepass.dump.report import finish_dump

    others = take_left_out(folder)
    reports = finish_dump(folder)
    for report in reports:
        print(report.summary())
        print(f"  {report.folder}")
    if reports and not no_html:
        from tilepass.dump.html import write_pages

        print(f"page: {write_pages(folder, reports)}")
    return reports, others


def _finish_after_error(folder: Path, no_html: bool) -> None:
    """Complete the dump as far as that goes: the error before it is the one to report."""
    from tilepass.dump.store import DumpError

    try:
        _finish(folder, no_html)
    except DumpError as error:
        print(f"note: the dump could not be completed: {error}", file=sys.stderr)


def _require_kernels(
    what: str, reports: Sequence[KernelReport], others: Sequence[str], pattern: str
) -> None:
    """Raise TilepassError where no kernel is dumped, or one lacks what it was to lead to."""
    if not reports and others:
        raise TilepassError(
            f"{what} compiled no kernel whose name matches '{pattern}', only {', '.join(others)}"
        )
    if not reports:
        raise TilepassError(f"{what} compiled no kernel")
    problems = [f"{report.name}: {report.problem}" for report in reports if report.problem]
    if problems:
        raise TilepassError(f"the dump is incomplete: {'; '.join(problems)}")


def _is_file(what: str) -> bool:
    if what.endswith(".py"):
        raise TilepassError(f"{what} is a program: tilepass dump-ir -- python {what}")
    return bool(Path(what).suffix) or os.sep in what
