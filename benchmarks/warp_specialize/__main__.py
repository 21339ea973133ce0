"""Time epilogue-warp-specialize against the plain kernel and cuBLAS; write reports, print tables.

usage: python -m benchmarks.warp_specialize [--only matmul,bias-gelu,residual]
       [--shapes 8192x8192x512,...] [--schemes split-consumer,auto,...] [--budget SECONDS]
       [--launch-timeout SECONDS] [--out FOLDER] [--compile | --counters]

Every arm's first launch at a shape is in a child process with a time limit, so that one that hangs
or faults is left out of the table. Writes one JSON report for each study into FOLDER (default:
results/) after every shape. Exits non-zero where a goal is missed, an arm failed or the budget
ended. With --compile nothing runs: every arm is compiled for sm_90 and its static figures printed.
With --counters nothing is timed: ncu reads the hardware's counters of one launch of each arm, into
FOLDER/NAME_counters.json.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.counters import SCHEMA as COUNTERS
from benchmarks.counters import count
from benchmarks.warp_specialize.study import STUDIES, Study, restricted
from benchmarks.warp_specialize.table import goal_lines, library_table, limit_lines
from tilepass.ab.arms import check_pipelines
from tilepass.ab.events import Event
from tilepass.ab.gpu import gpu_facts, open_clock
from tilepass.ab.job import parse_shape
from tilepass.ab.report import Report
from tilepass.ab.session import Means, add_figures, finished, need_gpu, run_on_gpu, run_static
from tilepass.ab.subjects import find_subject
from tilepass.ab.supervisor import Limits
from tilepass.ab.table import figure_lines
from tilepass.core.errors import TilepassError
from tilepass.core.files import write_json

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "results"


def run_study(study: Study, seconds: float, launch_limit: float, path: Path) -> bool:
    """Measure a study and print its table; whether everything is well and every goal met."""

    def listen(report: Report, event: Event) -> None:
        if finished(event):
            write_json(path, report.to_dict())

    means = Means(os.cpu_count() or 1, seconds, Limits(launch=launch_limit))
    report = run_on_gpu(study.job, find_subject(study.job.kernel), means, listen)
    add_figures(report)
    write_json(path, report.to_dict())
    facts = report.facts
    about = [f"{key} {facts[key]}" for key in ("GPU", "driver", "triton", "torch") if key in facts]
    print(f"\n{study.name}: {', '.join(about)} {report.failure or ''}")
    print(library_table(report))
    judged = [goal_lines(report, goal) for goal in study.goals]
    for line in [
        *limit_lines(report),
        *failures(report),
        *(x for lines, _ in judged for x in lines),
    ]:
        print(line, flush=True)
    met = all(passed for _, passed in judged)
    return met and not (report.failed or report.partial or failures(report))


def compile_study(study: Study) -> bool:
    """Compile the arms of a study for sm_90 and print the static figures of each."""
    report = run_static(study.job, find_subject(study.job.kernel), 90)
    add_figures(report)
    print(f"\n{study.name}: compiled for sm_90")
    for line in [*figure_lines(report), *failures(report), *report.notes]:
        print(line, flush=True)
    return not report.failed and not failures(report)


def count_study(study: Study, deadline: float, path: Path) -> bool:
    """Read, print and write the counters of every arm at every shape; whether all could be read."""
    print(f"\n{study.name}: one launch of each arm, by ncu")
    points: list[dict[str, Any]] = []
    _, clock_facts = open_clock()
    content = {"schema": COUNTERS, "environment": gpu_facts(clock_facts), "points": points}
    well = True
    for index, point in enumerate(study.job.points):
        arms: list[dict[str, Any]] = []
        points.append({"shape": point.shape, "arms": arms})
        for number, arm in enumerate(study.job.arms):
            if time.monotonic() > deadline:
                print("the budget ended")
                return False
            try:
                found = count(study.job, index, number)
            except TilepassError as error:
                print(f"{point.describe()} {arm.label}: failed: {error}", flush=True)
                well = False
                continue
            kernels = [{"kernel": each.kernel, **each.figures()} for each in found]
            arms.append({"arm": arm.label, "kernels": kernels})
            for each in found:
                print(f"{point.describe()} {arm.label}: {each.describe()}", flush=True)
        write_json(path, content)
    return well


def failures(report: Report) -> list[str]:
    """Points and arms that could not be done; an arm that fails alike everywhere once."""
    lines: dict[str, None] = {}
    for index, point in enumerate(report.points):
        if point.message:
            lines[f"{report.job.points[index].describe()}: {point.message}"] = None
        for arm, why in sorted(point.failures.items()):
            lines[f"{report.job.arms[arm].label} failed: {why}"] = None
    return list(lines)


def main() -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Time epilogue-warp-specialize against cuBLAS.")
    parser.add_argument("--only", default=",".join(STUDIES), help=",".join(STUDIES))
    parser.add_argument("--shapes", default="", help="MxNxK,... (those of the README)")
    parser.add_argument("--schemes", default="", help="arms, by their names in the table (all)")
    parser.add_argument("--budget", type=float, default=540.0, metavar="SECONDS")
    parser.add_argument("--launch-timeout", type=float, default=20.0, metavar="SECONDS")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, metavar="FOLDER")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--compile", action="store_true", help="no GPU: static figures")
    what.add_argument("--counters", action="store_true", help="the hardware's counters, by ncu")
    arguments = parser.parse_args()
    names: list[str] = arguments.only.split(",")
    if unknown := [name for name in names if name not in STUDIES]:
        parser.error(f"--only: no study '{unknown[0]}' (studies: {', '.join(STUDIES)})")
    try:
        shapes = [parse_shape(text) for text in filter(None, arguments.shapes.split(","))]
        schemes: list[str] = [name for name in arguments.schemes.split(",") if name]
        studies = [restricted(STUDIES[name](), schemes, shapes) for name in names]
        check_pipelines(studies[0].job.arms, ())
        if arguments.compile:
            compiled = [compile_study(study) for study in studies]
            return 0 if all(compiled) else 1
        need_gpu(required=True)
        deadline = time.monotonic() + arguments.budget
        if arguments.counters:
            counted = [
                count_study(study, deadline, arguments.out / f"{study.name}_counters.json")
                for study in studies
            ]
            return 0 if all(counted) else 1
        well: list[bool] = []
        for index, study in enumerate(studies):
            share = (deadline - time.monotonic()) / (len(studies) - index)
            path = arguments.out / f"{study.name}.json"
            well.append(run_study(study, share, arguments.launch_timeout, path))
    except TilepassError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main())
