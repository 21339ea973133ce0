"""`tilepass check`: execute the IR of a kernel, or of all that a program launches, on the CPU."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tilepass.core.errors import OptionError, TilepassError, report
from tilepass.core.flags import (
    add_compile_only_flags,
    add_kernel_flags,
    add_traceback_flag,
    positive_number,
    split_command,
)
from tilepass.core.pass_base import Target
from tilepass.opt.light_triton import load_libtriton
from tilepass.opt.source import Part, read_source

if TYPE_CHECKING:
    from tilepass.dump.program_run import Recorded
    from tilepass.ir.engine import Module

# The ptxas of these Tritons keeps registers that unfinished dots read (see `fix-dot-wait`).
REGISTERS_SAFE_SINCE = (3, 9)
UNSUPPORTED = 2
"""The exit status for IR that the simulator cannot execute."""


def main(arguments: Sequence[str]) -> int:
    """Print what was run; returns 2 for unknown operations. Raises TilepassError for a finding."""
    own, command = split_command(arguments)
    parser = _parser()
    options = parser.parse_args(own)
    if (options.file is None) == (not command):
        parser.error("give either a file, or a program after --")
    compiled = bool(command) or options.signature is not None
    if compiled and options.against is not None:
        parser.error("--against is for IR files: what -p makes is compared with its source")
    if not compiled and (options.pipeline or options.load):
        parser.error("-p and --load are for programs and kernels: an IR file is checked as it is")
    if options.grid:
        _grid(options.grid)
    if compiled:
        return _check_compiled(command, options)
    load_libtriton()
    source = read_source(options.file)
    against = read_source(options.against) if options.against else None
    return _check(source, against, options)


def _check_compiled(command: Sequence[str], options: argparse.Namespace) -> int:
    """Check what a program or a signature makes Triton compile, one kernel after the other."""
    from tilepass.dump.program_run import recorded_kernel, recorded_program
    from tilepass.subjects.kernel import kernel_spec
    from tilepass.subjects.program import DEFAULT_TARGET, compile_only_without_gpu

    if command:
        compile_only = compile_only_without_gpu(
            options.target, asked=options.compile_only, all_configurations=options.all_configs
        )
        recording = recorded_program(
            command, options.pipeline, options.load, compile_only=compile_only
        )
    else:
        target = Target.parse(options.target, "--target") if options.target else DEFAULT_TARGET
        recording = recorded_kernel(
            kernel_spec(options.file, options), target, options.pipeline, options.load
        )
    with recording as recorded:
        statuses = [_check_kernel(kernel, options) for kernel in recorded.kernels]
    return 1 if 1 in statuses or recorded.status else max(statuses)


def _check_kernel(kernel: Recorded, options: argparse.Namespace) -> int:
    """The status of one kernel: of its source and of what becomes of it, against that with -p."""
    source, result = (_part(kernel, stage) for stage in ("source", "ttgir"))
    if source is None or result is None:
        print(f"{kernel.folder.name}: not checked: only Triton's kernels are")
        return UNSUPPORTED
    statuses: list[int] = []
    for checked, against in (
        [(source, None), (result, None), (result, source)]
        if options.pipeline
        else [(source, None), (result, None)]
    ):
        try:
            statuses.append(_check(checked, against, options))
        except TilepassError as error:
            print(report(error), file=sys.stderr)
            return 1
    return max(statuses)


def _part(kernel: Recorded, stage: str) -> Part | None:
    """The IR at the start or end of a kernel's compilation, under the kernel's name."""
    file = kernel.result(stage)
    if file is None or kernel.record.language != "triton":
        return None
    return replace(read_source(str(file)), file=f"{kernel.folder.name}.{stage}")


def _check(source: Part, against: Part | None, options: argparse.Namespace) -> int:
    grid = _grid(options.grid) if options.grid else None
    from tilepass.core.versions import triton_version
    from tilepass.frontends.triton import bridge
    from tilepass.sim import equivalence
    from tilepass.sim.compiler import Program
    from tilepass.sim.coverage import Goal
    from tilepass.sim.faults import UnsupportedOperationsError
    from tilepass.sim.protocol.recorder import CannotFollow
    from tilepass.sim.protocol_check import check_protocol

    def program(part: Part) -> Program:
        return Program(bridge.read_named(part.text, part.file), options.kernel)

    def protocol(module: Module) -> str | None:
        shapes, seeds = options.shapes or (), options.seeds
        try:
            return check_protocol(
                module, options.kernel, shapes, seeds, grid,
                text=source.text, file=source.file,
                registers=triton_version().version < REGISTERS_SAFE_SINCE,
            )  # fmt: skip
        except CannotFollow as error:
            print(f"warning: the protocol is not checked: {error}", file=sys.stderr)
            return "not checked"

    said, with_protocol = None, False
    try:
        checked = program(source)
        other = program(against) if against else None
        with_protocol = other is None and not options.no_protocol
        said = protocol(checked.module) if with_protocol else None
    except UnsupportedOperationsError as error:
        print(error, file=sys.stderr)
        if with_protocol:
            print("note: --no-protocol executes the kernel all the same", file=sys.stderr)
        return UNSUPPORTED
    forms = [checked] if other is None else [checked, other]
    cases = equivalence.cases(forms, options.shapes or (), options.seeds, grid, options.programs)
    limit, reached = options.step_limit, set[Goal]()
    runs = [
        equivalence.execute(checked, case, limit, reached=reached)
        if other is None
        else equivalence.compare(checked, other, case, options.tolerance, limit, reached)
        for case in cases
    ]
    found = "nothing undefined" if against is None else f"the same as {against.file}"
    sizes = "; ".join(dict.fromkeys(case.said for case in cases))
    print(f"{source.file}: {checked.name}: {found} ({options.seeds} seeds, shapes {sizes})")
    if said:
        print(f"{source.file}: {checked.name}: protocol: {said}")
    for line in equivalence.missed(forms, cases, reached):
        print(f"{source.file}: {checked.name}: missed: {line}")
    if other is not None:
        for line in equivalence.reservations(runs, checked, other):
            print(f"{source.file}: {checked.name}: {line}")
        return 0
    if races := [race for each in runs for race in each.outcome.races]:
        _report_race(races[0], options.grid)
    return 0


def _report_race(race: str, grid: str | None) -> None:
    """A grid that was not given may hold more programs than the sizes have work for."""
    if grid is not None:
        raise TilepassError(f"a race between programs of grid {grid}: {race}")
    print(f"warning: on the default grid, which --grid replaces, {race}", file=sys.stderr)


def _grid(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise OptionError(f"--grid '{text}': expected X[,Y[,Z]]") from error
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise OptionError(f"--grid '{text}': expected X[,Y[,Z]], each at least 1")
    return sizes


def _programs(text: str) -> list[tuple[int, int, int]]:
    try:
        return [(int(part), 0, 0) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}': expected N[,N...]") from error


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 on")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilepass check",
        description="Execute a kernel of source TTIR, TTIR or TTGIR on the CPU for random "
        "arguments. Alone: report undefined behaviour, accesses out of bounds, reads of memory "
        "that nobody wrote, and what can go wrong with barriers and asynchronous copies in any "
        "order, and races of programs in global memory. Against another file: compare every array, "
        "bit by bit. A program (check [-p PIPELINE] -- python app.py), or file.py:kernel with "
        "--signature, has each of its kernels checked, before the first pass and at the end of "
        "ttgir; a program needs no GPU.",
        epilog="Exit status: 0 nothing found, 1 something found, 2 operations that cannot be "
        "simulated. SHAPES: 64 gives every integer parameter the value 64 and every array 64 x 64 "
        "elements and a margin; 64,K=100,a_ptr=128x100 sets some by name.",
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="IR file, - for standard input; or "
                        "file.py:kernel with --signature")  # fmt: skip
    parser.add_argument("--against", metavar="FILE", help="IR that has to compute the same")
    parser.add_argument("--shapes", action="append", metavar="SHAPES", help="sizes (default: some "
                        "that follow from the kernel: each loop makes no trip, one, and three, "
                        "rings turn twice, arrays end within a tile; and 64 and 100); may be given "
                        "several times")  # fmt: skip
    parser.add_argument("--seeds", type=positive_number, default=3, metavar="N", help="inputs for "
                        "each shape (default 3); two files are compared on moderate, special and "
                        "wide values in turn")  # fmt: skip
    parser.add_argument("--grid", metavar="X[,Y[,Z]]", help="programs (default: as many as the "
                        "kernel takes for granted, by a constant from tile to tile; else 3 in "
                        "each dimension that it asks about)")  # fmt: skip
    parser.add_argument("--programs", type=_programs, metavar="N[,N...]", help="run these of the "
                        "grid's first dimension only (default: all of a small grid, else a few "
                        "that differ)")  # fmt: skip
    parser.add_argument(
        "--kernel", metavar="NAME", help="function to run, where several are public"
    )
    parser.add_argument("-p", "--pipeline", default="", metavar="PIPELINE", help="passes for a "
                        "program or kernel, compared with its source too")  # fmt: skip
    parser.add_argument("--load", metavar="FILE", action="append", default=[], help="file that "
                        "registers passes")  # fmt: skip
    parser.add_argument("--no-protocol", action="store_true", help="do not check barriers and "
                        "asynchronous copies")  # fmt: skip
    parser.add_argument(
        "--tolerance",
        type=_tolerance,
        default=0.0,
        metavar="T",
        help="difference allowed, relative to the largest magnitude (default 0, equal bits)",
    )
    parser.add_argument(
        "--step-limit",
        type=positive_number,
        default=20_000_000,
        metavar="N",
        help="operations that a launch may execute",
    )
    add_kernel_flags(parser)
    add_compile_only_flags(parser)
    add_traceback_flag(parser)
    return parser
