"""How arms do against a library, over many shapes: a table, goals, and what limits a shape.

Numbers are the library's time over the arm's, medians of paired ratios: above 1 the arm is faster.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchmarks.warp_specialize.limits import Tiling, limits
from benchmarks.warp_specialize.study import LIBRARY, PLAIN, SHALLOW, Goal
from tilepass.ab.job import Shape
from tilepass.ab.report import Report
from tilepass.ab.table import markdown_table

Ratios = Mapping[Shape, float]
BLOCK_M, BLOCK_N = 128, 256
"""The tile of an arm that does not say."""


def speedup(report: Report, index: int, arm: str, over: str = LIBRARY) -> float | None:
    """Time of the arm labelled `over` by that of `arm` at a point; None where not both ran."""
    labels = [each.label for each in report.job.arms]
    if arm not in labels or over not in labels:
        return None
    found = report.compare(index, labels.index(arm), labels.index(over))
    return None if found is None else 1 / found[0].ratio


def speedups(report: Report, arm: str | None) -> Ratios:
    """By shape; for None the best arm's at each shape."""
    own = [each.label for each in report.job.arms[1:]]
    result: dict[Shape, float] = {}
    for index, point in enumerate(report.job.points):
        found = [speedup(report, index, each) for each in (own if arm is None else [arm])]
        if known := [ratio for ratio in found if ratio is not None]:
            result[point.shape] = max(known)
    return result


def geomean(values: Sequence[float]) -> float:
    """Geometric mean of at least one positive value."""
    return math.exp(sum(map(math.log, values)) / len(values))


def library_table(report: Report) -> str:
    """Markdown: one line for each arm, one column for each shape, geometric mean and minimum."""
    shapes = ["x".join(map(str, point.shape)) for point in report.job.points]
    lines = [_library_line(report), _library_line(report, tflops=True)]
    lines += [_line(report, arm.label) for arm in report.job.arms[1:]]
    lines += [_line(report, None), _duplicate_line(report)]
    return markdown_table(["library time / arm time", *shapes, "geomean", "least"], lines)


def _library_line(report: Report, tflops: bool = False) -> list[str]:
    cells: list[str] = []
    for index, point in enumerate(report.points):
        time = report.median_us(index, 0)
        if time is None:
            cells.append(point.status)
        elif tflops:
            cells.append(f"{point.setup.flops / time / 1e6:.0f}" if point.setup else "-")
        else:
            cells.append(f"{time:.1f}")
    name = report.job.arms[0].describe().rpartition(":")[2]
    return [f"torch {name}, {'TFLOP/s' if tflops else 'us'}", *cells, "", ""]


def _line(report: Report, arm: str | None) -> list[str]:
    ratios = speedups(report, arm)
    labels = [each.label for each in report.job.arms]
    cells: list[str] = []
    for index, point in enumerate(report.job.points):
        failed = arm is not None and labels.index(arm) in report.points[index].failures
        ratio = ratios.get(point.shape)
        cells.append("failed" if failed else "-" if ratio is None else f"{ratio:.3f}")
    values = list(ratios.values())
    mean = f"{geomean(values):.3f}" if values else "-"
    if values and len(values) < len(report.job.points):
        mean += f" of {len(values)}"
    return [arm or "best at each", *cells, mean, f"{min(values):.3f}" if values else "-"]


def _duplicate_line(report: Report) -> list[str]:
    found = [report.duplicate(index) for index in range(len(report.points))]
    cells = ["-" if each is None else f"{1 / each[0].ratio:.4f}" for each in found]
    return ["the library again", *cells, "", ""]


def goal_lines(report: Report, goal: Goal) -> tuple[list[str], bool]:
    """What was asked of an arm and what it reached; whether all of it is met.

    A goal is not met while a shape is missing.
    """
    ratios = speedups(report, goal.arm)
    name = goal.arm or "best at each shape"
    if len(ratios) < len(report.job.points):
        return [f"{name}: {len(ratios)} of {len(report.job.points)} shapes measured: MISS"], False
    found = {
        "geometric mean": (geomean(list(ratios.values())), goal.geomean),
        "least": (min(ratios.values()), goal.least),
    }
    shallow = "x".join(map(str, SHALLOW))
    if SHALLOW in ratios and goal.shallow:
        found[f"at {shallow}"] = (ratios[SHALLOW], goal.shallow)
    if SHALLOW in ratios and goal.shallow_over_plain and goal.arm is not None:
        index = next(i for i, p in enumerate(report.job.points) if p.shape == SHALLOW)
        over_plain = speedup(report, index, goal.arm, PLAIN)
        found[f"over plain at {shallow}"] = (over_plain or 0.0, goal.shallow_over_plain)
    lines = [
        f"{name}: {what} {value:.3f}, at least {wanted:g}: {'PASS' if value >= wanted else 'MISS'}"
        for what, (value, wanted) in found.items()
    ]
    return lines, all(value >= wanted for value, wanted in found.values())


def limit_lines(report: Report) -> list[str]:
    """For each shape the fastest arm, and what keeps it from more (see `matmul_limits`)."""
    lines: list[str] = []
    for index, point in enumerate(report.points):
        where = report.job.points[index].shape
        known = {
            arm: time
            for arm in range(1, len(report.job.arms))
            if (time := report.median_us(index, arm)) is not None
        }
        clocks = None if point.samples is None else point.samples.clocks()
        if not known or clocks is None or point.setup is None or "SMs" not in report.facts:
            continue
        best = min(known, key=known.__getitem__)
        arm = report.job.arms[best]
        block_n = int(arm.overrides.get("block_n", BLOCK_N))
        tiling = Tiling(BLOCK_M, block_n, int(report.facts["SMs"]))
        found = limits(where, tiling, known[best], clocks.median, point.setup.bytes_moved)
        text = f"{known[best]:.1f} us at {clocks.median:.0f} MHz, {found.describe()}"
        lines.append(f"{'x'.join(map(str, where))}: {arm.label}, {text}")
    return lines
