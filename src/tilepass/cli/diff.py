"""`tilepass diff A B`: two dumps of `dump-ir`, or two reports of `ab --json`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilepass.core.flags import add_traceback_flag, positive_number

if TYPE_CHECKING:
    from tilepass.ab.compare import Change
    from tilepass.dump.compare import Comparison
    from tilepass.dump.steps import Step

_LINES = 40


def main(arguments: Sequence[str]) -> int:
    """Print what differs; returns 1 if dumps do, or if a point became slower.

    Raises TilepassError.
    """
    options = _parser().parse_args(arguments)
    if options.a.is_dir() or options.b.is_dir():
        from tilepass.dump import compare as dumps

        differs = False
        for comparison in dumps.compare(options.a, options.b):
            print("\n".join(_told(comparison, options.lines)))
            differs |= comparison.differs
        return int(differs)
    from tilepass.ab import compare as reports

    changes = list(reports.compare(options.a, options.b))
    print("\n".join(_table(changes)))
    return int(any(change.verdict == "SLOWER" for change in changes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilepass diff",
        description="Compares two dumps of `tilepass dump-ir -o`: after which pass the IR of a "
        "kernel first differs, how, and which figures of the binaries do. Or two reports of "
        "`tilepass ab --json`: FASTER, SLOWER or SAME for each arm at each point. The status is 1 "
        "if dumps differ, or if something became slower.",
    )
    parser.add_argument("a", type=Path, metavar="A", help="a dump's folder, or a report")
    parser.add_argument("b", type=Path, metavar="B")
    parser.add_argument(
        "--lines",
        type=positive_number,
        default=_LINES,
        metavar="N",
        help="lines of the IR's diff to print at most (default: %(default)s)",
    )
    add_traceback_flag(parser)
    return parser


def _told(comparison: Comparison, most: int) -> Iterator[str]:
    name = f"{comparison.kernel} ({comparison.target})"
    if not comparison.differs:
        yield f"{name}: the same after every step"
        return
    first = comparison.first
    if first is None:
        yield f"{name}: the same IR after every step that both have"
    else:
        yield (
            f"{name}: first differs after {first.left.name} in {first.left.stage} "
            f"(steps {first.left.number} and {first.right.number})"
        )
    for side, steps in (("A", comparison.only_left), ("B", comparison.only_right)):
        if steps:
            yield f"  only in {side}: {', '.join(map(_named, steps))}"
    if first:
        if first.left.pass_text != first.right.pass_text:
            yield f"  A: {first.left.pass_text}"
            yield f"  B: {first.right.pass_text}"
        lines = first.ir.splitlines()
        yield from (f"  {line}" for line in lines[:most])
        if len(lines) > most:
            yield f"  ({len(lines) - most} more lines: --lines)"
    for figure, (left, right) in comparison.figures.items():
        yield f"  {figure}: {left} in A, {right} in B"
    if comparison.same_binary and comparison.figures == {}:
        yield "  the binaries are the same"


def _named(step: Step) -> str:
    return f"{step.name} in {step.stage}"


def _table(changes: Sequence[Change]) -> Iterator[str]:
    width = max((len(change.point) for change in changes), default=0)
    for change in changes:
        sides = (_interval(each) for each in (change.before, change.after))
        yield f"{change.point:{width}}  {change.arm}  {'  '.join(sides)}  {change.verdict}"
    counts = [change.verdict for change in changes]
    yield ", ".join(f"{counts.count(each)} {each}" for each in dict.fromkeys(counts)) or "no point"


def _interval(interval: tuple[float, float, float] | None) -> str:
    if interval is None:
        return f"{'-':>21}"
    ratio, low, high = interval
    return f"{ratio:.3f} ({low:.3f}..{high:.3f})"
