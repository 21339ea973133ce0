"""The ratios with their intervals, one group per shape."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from tilepass.ab.report import Report
from tilepass.core.errors import TilepassError


def plot_report(report: Report, path: Path) -> None:
    """Write a plot; the suffix names the format (.png, .svg, .pdf). Raises TilepassError."""
    figure_module: Any = importlib.import_module("matplotlib.figure")
    arms = report.job.arms
    count = len(report.points)
    figure = figure_module.Figure(figsize=(max(5.0, 1.1 * count + 2), 4.2), layout="constrained")
    axes = figure.subplots()
    threshold = report.job.plan.criteria.threshold
    axes.axhspan(1 - threshold, 1 + threshold, color="0.9", label=f"SAME: within {threshold:.1%}")
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    for arm in range(1, len(arms)):
        _plot_arm(axes, report, arm)
    _plot_duplicate(axes, report)
    axes.set_xticks(range(count), [point.describe() for point in report.job.points])
    axes.tick_params(axis="x", rotation=30)
    axes.set_ylabel(f"time / time of {arms[0].label} ({arms[0].describe()})")
    title = f"{report.job.kernel} on {report.facts.get('GPU', 'no GPU')}"
    axes.set_title(title + (" (partial)" if report.partial else ""))
    axes.legend(fontsize="small")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise TilepassError(f"--plot {path}: {error}") from error


def _plot_arm(axes: Any, report: Report, arm: int) -> None:
    width = 0.6 / len(report.job.arms)
    offset = (arm - len(report.job.arms) / 2) * width
    label = f"{report.job.arms[arm].label}: {report.job.arms[arm].describe()}"
    compared = [(index, report.compare(index, arm)) for index in range(len(report.points))]
    known = [(index + offset, found[0]) for index, found in compared if found is not None]
    _error_bars(axes, known, label, "o")


def _plot_duplicate(axes: Any, report: Report) -> None:
    compared = [(index, report.duplicate(index)) for index in range(len(report.points))]
    known = [(index + 0.35, found[0]) for index, found in compared if found is not None]
    _error_bars(axes, known, f"{report.job.arms[0].label}' (duplicate)", "x")


def _error_bars(axes: Any, points: list[Any], label: str, marker: str) -> None:
    if not points:
        return
    axes.errorbar(
        [x for x, _ in points],
        [item.ratio for _, item in points],
        yerr=[
            [item.ratio - item.low for _, item in points],
            [item.high - item.ratio for _, item in points],
        ],
        fmt=marker,
        capsize=3,
        label=label,
    )
