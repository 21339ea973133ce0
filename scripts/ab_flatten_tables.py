"""Time flatten-loops off, on and auto on the README's shapes; write the reports, print the tables.

usage: python scripts/ab_flatten_tables.py [--only bf16,mxfp4-1,mxfp4-2] [--budget SECONDS]
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
from pathlib import Path

from tilepass.ab.events import Event
from tilepass.ab.files import write_json
from tilepass.ab.flatten_study import STUDIES, Study, auto_summary, study_table
from tilepass.ab.report import Report
from tilepass.ab.session import Means, add_figures, finished, need_gpu, run_on_gpu, run_static
from tilepass.ab.subjects import find_subject
from tilepass.core.errors import TilepassError

DEFAULT_OUT = Path(__file__).resolve().parents[1] / "results"


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
