"""Time flatten-loops off, on and auto on the README's shapes; write the reports, print the tables.

usage: python -m benchmarks.flatten [--only bf16,mxfp4-1,mxfp4-2] [--budget SECONDS]
       [--out FOLDER] [--compile-only]

Writes one JSON report for each study into FOLDER (default: results/) after every shape, so that
what was measured survives whatever ends the run. Exits non-zero where `auto` misses its goal or
something failed. With --compile-only nothing runs: the binaries are compared.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tilepass.ab.events import Event
from tilepass.ab.job import Arm, Job, Point
from tilepass.ab.protocol import Plan
from tilepass.ab.report import Report
from tilepass.ab.session import Means, add_figures, finished, need_gpu, run_on_gpu, run_static
from tilepass.ab.statistics import Estimate
from tilepass.ab.subjects import find_subject
from tilepass.ab.table import format_estimate, markdown_table
from tilepass.core.errors import TilepassError
from tilepass.core.files import write_json

DEFAULT_OUT = Path(__file__).resolve().parents[1] / "results"
OFF, ON, AUTO = range(3)
ARMS = (
    Arm("A", "flatten-loops{mode=off}"),
    Arm("B", "flatten-loops{mode=on}"),
    Arm("C", "flatten-loops{mode=auto}"),
)
BF16_SHAPES = (
    (8192, 8192, 8192),
    (4096, 4096, 4096),
    (8192, 8192, 1024),
    (8192, 8192, 512),
    (4096, 14336, 4096),
    (2048, 2048, 16384),
)
MXFP4_SHAPES = tuple(
    (m, n, k)
    for n, k in ((8192, 8192), (28672, 8192), (5760, 2880))
    for m in (16, 64, 128, 256, 1024)
)
# Flattening with the waits that ptxas needs: what the cost model could choose instead.
MXFP4_ARMS = (*ARMS, Arm("D", "flatten-loops{mode=on},fix-dot-wait"))
PLAN = Plan(seconds=5.0)


@dataclass(frozen=True)
class Study:
    """A job of three arms, and how close `auto` has to come to the faster of the other two.

    `allowed` is a fraction of the time, `needed` the number of points that have to be within it.
    """

    name: str
    job: Job
    allowed: float
    needed: int


def bf16_study() -> Study:
    """The plain persistent matmul over six shapes."""
    points = tuple(Point(shape) for shape in BF16_SHAPES)
    return Study("flatten_bf16", Job("persistent-matmul", ARMS, points, PLAN), 0.02, 5)


def mxfp4_study(occupancy: int) -> Study:
    """bf16 x mxfp4 over 15 shapes with one or two programs on an SM."""
    points = tuple(Point(shape, {"occupancy": str(occupancy)}) for shape in MXFP4_SHAPES)
    job = Job("mxfp4-matmul", MXFP4_ARMS, points, PLAN)
    return Study(f"flatten_mxfp4_occupancy{occupancy}", job, 0.01, len(points))


STUDIES: dict[str, Callable[[], Study]] = {
    "bf16": bf16_study,
    "mxfp4-1": lambda: mxfp4_study(1),
    "mxfp4-2": lambda: mxfp4_study(2),
}


def auto_against_faster(report: Report, index: int) -> Estimate | None:
    """Time of `auto` over the faster of off and on; exactly 1 where it is the same binary."""
    on = report.compare(index, ON, OFF)
    if on is None:
        return None
    faster = ON if on[0].ratio < 1 else OFF
    found = report.compare(index, AUTO, faster)
    return None if found is None else found[0]


def auto_summary(study: Study, report: Report) -> tuple[str, bool]:
    """One line with PASS or MISS, and whether `auto` is close enough on enough points."""
    found = [auto_against_faster(report, index) for index in range(len(report.points))]
    close = sum(item is not None and item.ratio <= 1 + study.allowed for item in found)
    passed = close >= study.needed
    line = (
        f"{study.name}: auto within {study.allowed:.0%} of the faster side on {close} of "
        f"{len(found)} points (at least {study.needed}): {'PASS' if passed else 'MISS'}"
    )
    return line, passed


def study_table(report: Report) -> str:
    """Markdown: times, flatten on over off with its interval, auto over the faster side."""
    header = ["shape", "off, us", "on, us", "TFLOP/s, faster", "on / off", "verdict"]
    header += ["auto", "auto / faster", "A' / A"]
    rows = [_row(report, index) for index in range(len(report.points))]
    return markdown_table(header, rows)


def _row(report: Report, index: int) -> list[str]:
    where = report.job.points[index].describe()
    on = report.compare(index, ON, OFF)
    times = [report.median_us(index, arm) if on else None for arm in (OFF, ON)]
    known = [time for time in times if time is not None]
    if on is None or not known:
        point = report.points[index]
        return [where, *["-"] * 4, point.status, "-", "-", "-"]
    setup, duplicate = report.points[index].setup, report.duplicate(index)
    auto = auto_against_faster(report, index)
    return [
        where,
        *("-" if time is None else f"{time:.1f}" for time in times),
        f"{setup.flops / min(known) / 1e6:.0f}" if setup is not None else "-",
        format_estimate(on[0]),
        str(on[1]),
        _chosen(report, index),
        "-" if auto is None else f"{auto.ratio:.4f}",
        "-" if duplicate is None else f"{duplicate[0].ratio:.4f} {duplicate[1]}",
    ]


def _chosen(report: Report, index: int) -> str:
    """Which of the two binaries `auto` gave."""
    first = report.points[index].first
    if not first:
        return "-"
    return {first[ON]: "on", first[OFF]: "off"}.get(first[AUTO], "other")


def run_study(study: Study, seconds: float, path: Path) -> tuple[Report, bool]:
    """Measure a study; prints its table. Returns the report and whether all of it is well."""

    def listen(report: Report, event: Event) -> None:
        if finished(event):
            write_json(path, report.to_dict())

    means = Means(os.cpu_count() or 1, seconds)
    report = run_on_gpu(study.job, find_subject(study.job.kernel), means, listen)
    add_figures(report)
    write_json(path, report.to_dict())
    line, passed = auto_summary(study, report)
    print(f"\n{study.name}: {report.facts.get('GPU')}, {report.failure or line}")
    print(study_table(report), flush=True)
    for index, point in enumerate(report.points):
        if point.message:
            print(f"{study.job.points[index].describe()}: {point.message}", flush=True)
    return report, passed and not report.failed and not report.partial


def compile_study(study: Study) -> bool:
    """Compile a study's arms for sm_90 and print which binaries differ."""
    report = run_static(study.job, find_subject(study.job.kernel), 90)
    add_figures(report)
    for index, point in enumerate(report.points):
        kernels = [point.kernels[arm][0].code_hash for arm in sorted(point.kernels)]
        figures = [report.figures[code] for code in kernels if code in report.figures]
        cells = [f"{f.registers} regs {f.spill_store_bytes} B spilled" for f in figures]
        where = study.job.points[index].describe()
        print(f"{where}: {point.status}, same as {point.first}: {cells} {point.message}")
    return not report.failed


def main() -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Time flatten-loops on the README's shapes.")
    parser.add_argument("--only", default=",".join(STUDIES), help=",".join(STUDIES))
    parser.add_argument("--budget", type=float, default=540.0, metavar="SECONDS")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, metavar="FOLDER")
    parser.add_argument("--compile-only", action="store_true", help="no GPU: compare the binaries")
    arguments = parser.parse_args()
    names: list[str] = arguments.only.split(",")
    if unknown := [name for name in names if name not in STUDIES]:
        parser.error(f"--only: no study '{unknown[0]}' (studies: {', '.join(STUDIES)})")
    studies = [STUDIES[name]() for name in names]
    try:
        if arguments.compile_only:
            results = [compile_study(study) for study in studies]
            return 0 if all(results) else 1
        need_gpu(required=True)
        deadline = time.monotonic() + arguments.budget
        well = True
        for index, study in enumerate(studies):
            share = (deadline - time.monotonic()) / (len(studies) - index)
            report, good = run_study(study, share, arguments.out / f"{study.name}.json")
            well = well and good
            if report.ended_by == "Ctrl-C":
                return 130
    except TilepassError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
