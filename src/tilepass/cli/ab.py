"""`tilepass ab KERNEL --a PIPELINE --b PIPELINE`: does a pass pay? Timed launch by launch."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilepass.core.errors import TilepassError
from tilepass.core.flags import (
    add_kernel_flags,
    add_traceback_flag,
    require_two_dashes,
    split_command,
)
from tilepass.core.pass_base import Target

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tilepass.ab.job import Arm, Job
    from tilepass.ab.report import Report
    from tilepass.ab.session import Means
    from tilepass.ab.subjects import Subject
    from tilepass.dump.program_run import Recording

INTERRUPTED = 130
_PLOTS = (".png", ".svg", ".pdf")

_EPILOG = """\
KERNEL is a kernel of tilepass (persistent-matmul, mxfp4-matmul, ...), or `module:function` or
`file.py:function` of your own, in a module that also holds make_inputs(shape, seed, device="cuda")
and reference(inputs); FUNCTION(inputs, **options) launches and returns its outputs. `python -c
"import tilepass.ab.subjects as s; help(s)"` tells the rest.

--library is `module:function` or `file.py:function` too: it takes what make_inputs returns and is
timed beside the arms, as tilepass.ab.torch_matmul:mm is for the matmuls (cuBLAS).

A program (after --), or a @triton.jit function of a file with --signature, is not timed: what it
is compiled to under each arm is compared, kernel by kernel; it needs no GPU.

Every arm is checked against the reference first. Then A, the other arms and a duplicate of A are
launched in turn, in random order, until each ratio is known to --precision. Without a GPU the arms
are compiled and their static figures compared.

Exit status: 0; 1 where a shape could not be done, an output was wrong, or the budget ended; 130
after Ctrl-C. What was measured is written all the same, and marked partial.

examples:
  tilepass ab persistent-matmul --b 'flatten-loops{mode=off}' --shape 8192x8192x512
  tilepass ab persistent-matmul --config-a FLATTEN=1 --config-b FLATTEN=0 --json result.json
  tilepass ab persistent-matmul --b flatten-loops --library tilepass.ab.torch_matmul:mm
  tilepass ab --b flatten-loops --arch cuda:100 -- python app.py
  tilepass ab my_kernels.py:my_matmul --b 'acc-multi-buffer{mode=disallow}' --shape 4096x4096
"""


def main(argv: Sequence[str]) -> int:
    """Entry point; returns the exit status. Raises TilepassError."""
    own, command = split_command(argv)
    parser = _parser()
    require_two_dashes(parser, own)
    arguments = parser.parse_args(own)
    if (arguments.kernel is None) == (not command):
        parser.error("give either a kernel, or a program after --")
    if arguments.plot and arguments.plot.suffix not in _PLOTS:
        # Told now, not after minutes of measuring.
        raise TilepassError(f"--plot {arguments.plot}: expected a file named {', '.join(_PLOTS)}")
    if command or arguments.signature is not None:
        return _finish(_compare_compiled(command, arguments), arguments)
    job, subject = _job(arguments)
    from tilepass.ab.arms import check_pipelines
    from tilepass.ab.session import need_gpu, run_static

    check_pipelines(job.arms, job.load)
    use_gpu = need_gpu(arguments.require_gpu) and not arguments.compile_only
    if use_gpu:
        report = _run_with_progress(job, subject, _means(arguments), arguments)
    else:
        if arguments.arch.backend != "cuda":
            raise TilepassError(f"--arch {arguments.arch}: kernels that run are NVIDIA's")
        report = run_static(job, subject, arguments.arch.arch)
    return _finish(report, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilepass ab",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("kernel", nargs="?", metavar="KERNEL")
    add("--a", metavar="PIPELINE", default="", help="passes of the baseline (none)")
    add("--b", metavar="PIPELINE", default="", help="passes of the other arm (none)")
    add("--arm", metavar="PIPELINE", action="append", default=[], help="a further arm")
    add("--library", metavar="FUNCTION", action="append", default=[], help="arm: see below")
    add("--config", metavar="NAME=VALUE", action="append", default=[], help="kernel option")
    add("--config-a", metavar="NAME=VALUE", action="append", default=[], help="of arm A only")
    add("--config-b", metavar="NAME=VALUE", action="append", default=[], help="of arm B only")
    add("--shape", metavar="MxNxK", action="append", default=[], help="repeatable")
    add("--load", metavar="FILE", action="append", default=[], help="file that registers passes")
    add("--threshold", type=percent, default=0.005, metavar="%", help="SAME within (0.5)")
    add("--precision", type=percent, default=0.002, metavar="%", help="half interval (0.2)")
    add("--seconds", type=float, default=10.0, help="sampling per shape at most (10)")
    add("--rounds", type=int, default=4000, help="rounds per shape at most (4000)")
    add("--budget", type=float, metavar="SECONDS", help="for everything (no limit)")
    add("--seed", type=int, default=0)
    add("--json", type=Path, metavar="FILE", help="write the report, after every shape")
    add("--raw", action="store_true", help="with every paired sample in it")
    add("--plot", type=Path, metavar="FILE", help="ratios with intervals (.png, .svg, .pdf)")
    add("--force", action="store_true", help="time equal binaries and differing kernel names too")
    add("--equal-bits", action="store_true", help="fail where outputs differ from A's in any bit")
    add("--no-figures", action="store_true", help="leave out registers, spills, instructions")
    add("--require-gpu", action="store_true", help="fail where there is none")
    add("--compile-only", "--dry-run", action="store_true", help="as if there were no GPU")
    add("--arch", "--target", type=_target, default=Target("cuda", 90), metavar="ARCH",
        help="compiled for, where nothing runs: 90, cuda:90, hip:gfx942 (cuda:90)")  # fmt: skip
    add("--all-configs", action="store_true", help="a program's autotuners compile all of their "
        "configurations (up to the first that fits)")  # fmt: skip
    add_kernel_flags(parser)
    add("--jobs", type=positive, help="processes that compile (one per core)")
    add("--launch-timeout", type=float, default=60.0, metavar="SECONDS", help="hung after (60)")
    add_traceback_flag(parser)
    return parser


def positive(text: str) -> int:
    """A number from 1 on."""
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def _target(text: str) -> Target:
    try:
        return Target.parse(f"cuda:{text}" if text.isdecimal() else text)
    except TilepassError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def percent(text: str) -> float:
    """A fraction; argparse shows the name of this function."""
    return float(text) / 100


def _compare_compiled(command: Sequence[str], arguments: argparse.Namespace) -> Report:
    """What a program, or a kernel with a signature, is compiled to under each arm."""
    from tilepass.ab.arms import check_pipelines
    from tilepass.ab.compiled import compare_compiled
    from tilepass.dump.program_run import recorded_kernel, recorded_program
    from tilepass.subjects.kernel import kernel_spec
    from tilepass.subjects.program import CompileOnly

    arms, target = _arms(arguments), arguments.arch
    if command and any(arm.overrides for arm in arms):
        raise TilepassError("--config-a and --config-b are options of a kernel, not of a program")
    check_pipelines(arms, arguments.load)

    def record(arm: Arm) -> AbstractContextManager[Recording]:
        if command:
            compile_only = CompileOnly(target, arguments.all_configs)
            return recorded_program(
                command, arm.pipeline, arguments.load, compile_only=compile_only
            )
        kernel = kernel_spec(arguments.kernel, arguments, arm.overrides)
        return recorded_kernel(kernel, target, arm.pipeline, arguments.load)

    what = " ".join(command) or arguments.kernel
    return compare_compiled(what, arms, target, record, arguments.load)


def _arms(arguments: argparse.Namespace) -> list[Arm]:
    from tilepass.ab.job import Arm, arm_label, parse_settings

    return [
        Arm("A", arguments.a, parse_settings("--config-a", arguments.config_a)),
        Arm("B", arguments.b, parse_settings("--config-b", arguments.config_b)),
        *(Arm(arm_label(2 + index), text) for index, text in enumerate(arguments.arm)),
    ]


def _job(arguments: argparse.Namespace) -> tuple[Job, Subject]:
    from tilepass.ab.job import Arm, Job, Point, arm_label, parse_settings, parse_shape
    from tilepass.ab.protocol import Plan
    from tilepass.ab.statistics import Criteria
    from tilepass.ab.subjects import find_library, find_subject

    arms = _arms(arguments)
    for library in arguments.library:
        arms.append(Arm(arm_label(len(arms)), library=library))
        find_library(library)
    try:
        plan = Plan(
            criteria=Criteria(threshold=arguments.threshold, precision=arguments.precision),
            most_rounds=arguments.rounds,
            seconds=arguments.seconds,
            seed=arguments.seed,
        )
    except ValueError as error:
        raise TilepassError(str(error)) from error
    subject = find_subject(arguments.kernel)
    shapes = [parse_shape(text) for text in arguments.shape] or list(subject.default_shapes)
    if not shapes:
        raise TilepassError(f"kernel '{subject.name}' names no DEFAULT_SHAPES: give --shape")
    shared = parse_settings("--config", arguments.config)
    job = Job(
        kernel=arguments.kernel,
        arms=tuple(arms),
        points=tuple(Point(shape, shared) for shape in shapes),
        plan=plan,
        load=tuple(arguments.load),
        force=arguments.force,
        need_equal_bits=arguments.equal_bits,
    )
    for point in job.points:
        for arm in job.arms:
            subject.configure(point, arm)
    return job, subject


def _means(arguments: argparse.Namespace) -> Means:
    from tilepass.ab.session import Means
    from tilepass.ab.supervisor import Limits

    limits = Limits(launch=arguments.launch_timeout)
    return Means(arguments.jobs or os.cpu_count() or 1, arguments.budget, limits)


def _run_with_progress(
    job: Job, subject: Subject, means: Means, arguments: argparse.Namespace
) -> Report:
    from tilepass.ab.events import Event
    from tilepass.ab.progress import showing_progress
    from tilepass.ab.report import empty_report
    from tilepass.ab.session import finished, run_on_gpu
    from tilepass.core.files import write_json

    if arguments.json:
        # A file that cannot be written is found now, not after minutes of measuring.
        write_json(arguments.json, empty_report(job))
    with showing_progress(len(job.points)) as show:

        def listen(report: Report, event: Event) -> None:
            show(report, event)
            # After every shape: what was measured survives whatever happens next.
            if arguments.json and finished(event):
                write_json(arguments.json, report.to_dict(arguments.raw))

        return run_on_gpu(job, subject, means, listen)


def _finish(report: Report, arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from tilepass.ab.plot import plot_report
    from tilepass.ab.session import add_figures
    from tilepass.ab.table import print_report
    from tilepass.core.files import write_json

    if not arguments.no_figures and report.ended_by is None and not report.figures:
        add_figures(report)
    # Rich takes a pipe for 80 columns wide, and would cut the tables.
    print_report(report, Console() if sys.stdout.isatty() else Console(width=200))
    if arguments.json:
        write_json(arguments.json, report.to_dict(arguments.raw))
    if arguments.plot:
        plot_report(report, arguments.plot)
    if report.failure is not None:
        raise TilepassError(report.failure)
    if report.ended_by == "Ctrl-C":
        return INTERRUPTED
    return 1 if report.failed or report.partial else 0
