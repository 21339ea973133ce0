"""What is going on, on a terminal; one line per shape where the output is not a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tilepass.ab.events import Done, Event, Failed, Found, Loaded, Remarked, Sampled, Started
from tilepass.ab.report import Report
from tilepass.ab.table import format_estimate

Show = Callable[[Report, Event], None]
SECONDS_BETWEEN_INTERVALS = 1.0


@contextmanager
def showing_progress(points: int) -> Generator[Show]:
    """Yields a listener that shows events on standard error."""
    console = Console(stderr=True)
    columns = (BarColumn(20), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("starting", total=points)

        shown = 0.0

        def show(report: Report, event: Event) -> None:
            nonlocal shown
            if isinstance(event, Remarked):
                return
            if isinstance(event, Sampled):
                # An interval costs more to compute than its batch to measure.
                if time.monotonic() - shown < SECONDS_BETWEEN_INTERVALS:
                    return
                shown = time.monotonic()
            progress.update(bar, description=_describe(report, event))
            if not isinstance(event, Done | Failed) or event.point is None:
                return
            if isinstance(event, Failed) or event.outcome != "primed":
                progress.advance(bar)
                if not console.is_terminal:
                    print(_describe(report, event), file=console.file, flush=True)

        yield show


def _describe(report: Report, event: Event) -> str:
    if isinstance(event, Failed):
        where = "" if event.point is None else f"{report.job.points[event.point].describe()}: "
        return f"{where}failed: {event.message}"
    if isinstance(event, Found):
        return event.facts.get("GPU", "")
    if isinstance(event, Loaded):
        return f"launching {event.kernel}"
    where = report.job.points[event.point].describe()
    if isinstance(event, Started):
        return f"{where}: {event.step}"
    if isinstance(event, Sampled) or (isinstance(event, Done) and event.outcome == "timed"):
        return f"{where}: {_estimates(report, event.point)}"
    return f"{where}: {event.outcome}" if isinstance(event, Done) else where


def _estimates(report: Report, index: int) -> str:
    texts: list[str] = []
    for arm in range(1, len(report.job.arms)):
        if (found := report.compare(index, arm)) is not None:
            texts.append(f"{report.job.arms[arm].label} {format_estimate(found[0])} {found[1]}")
    return ", ".join(texts)
