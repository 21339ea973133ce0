"""`tilepass check FILE [--against FILE]`: execute a kernel's IR on the CPU."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilepass.core.errors import OptionError, TilepassError
from tilepass.core.flags import add_traceback_flag, positive_number

if TYPE_CHECKING:
    from tilepass.ir.engine import Module
    from tilepass.opt.source import Part

# The ptxas of these Tritons keeps registers that unfinished dots read (see `fix-dot-wait`).
REGISTERS_SAFE_SINCE = (3, 9)
UNSUPPORTED = 2
"""The exit status for IR that the simulator cannot execute."""


def main(arguments: Sequence[str]) -> int:
    """Print what was run; returns 2 for unknown operations. Raises TilepassError for a finding."""
    options = _parser().parse_args(arguments)
    grid = _grid(options.grid) if options.grid else None
    from tilepass.opt.light_triton import load_libtriton
    from tilepass.opt.source import read_source

    load_libtriton()
    from tilepass.core.versions import triton_version
    from tilepass.frontends.triton import bridge
    from tilepass.sim import equivalence
    from tilepass.sim.compiler import Program
    from tilepass.sim.coverage import Goal
    from tilepass.sim.faults import UnsupportedOperationsError
    from tilepass.sim.protocol.recorder import CannotFollow
    from tilepass.sim.protocol_check import check_protocol

    def program(source: Part) -> Program:
        return Program(bridge.read_named(source.text, source.file), options.kernel)

    def protocol(module: Module, source: Part) -> str | None:
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
        source = read_source(options.file)
        checked = program(source)
        against = program(read_source(options.against)) if options.against else None
        with_protocol = against is None and not options.no_protocol
        said = protocol(checked.module, source) if with_protocol else None
    except UnsupportedOperationsError as error:
        print(error, file=sys.stderr)
        if with_protocol:
            print("note: --no-protocol executes the kernel all the same", file=sys.stderr)
        return UNSUPPORTED
    forms = [checked] if against is None else [checked, against]
    cases = equivalence.cases(forms, options.shapes or (), options.seeds, grid, options.programs)
    limit, reached = options.step_limit, set[Goal]()
    runs = [
        equivalence.execute(checked, case, limit, reached=reached)
        if against is None
        else equivalence.compare(checked, against, case, options.tolerance, limit, reached)
        for case in cases
    ]
    found = "nothing undefined" if against is None else f"the same as {options.against}"
    sizes = "; ".join(dict.fromkeys(case.said for case in cases))
    print(f"{options.file}: {checked.name}: {found} ({options.seeds} seeds, shapes {sizes})")
    if said:
        print(f"{options.file}: {checked.name}: protocol: {said}")
    for line in equivalence.missed(forms, cases, reached):
        print(f"{options.file}: {checked.name}: missed: {line}")
    if against is not None:
        for line in equivalence.reservations(runs, checked, against):
            print(f"{options.file}: {checked.name}: {line}")
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
        "bit by bit.",
        epilog="Exit status: 0 nothing found, 1 something found, 2 operations that cannot be "
        "simulated. SHAPES: 64 gives every integer parameter the value 64 and every array 64 x 64 "
        "elements and a margin; 64,K=100,a_ptr=128x100 sets some by name.",
    )
    parser.add_argument("file", metavar="FILE", help="IR file, - for standard input")
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
    add_traceback_flag(parser)
    return parser
