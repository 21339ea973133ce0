"""Two reports of `tilepass ab --json`: which points became faster or slower since the first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilepass.ab.report import SCHEMA
from tilepass.ab.statistics import Verdict
from tilepass.core.errors import TilepassError

Interval = tuple[float, float, float]
"""A ratio of times, arm over baseline, and the ends of its interval."""


@dataclass(frozen=True)
class Change:
    """An arm at a point: its time over the baseline's in both reports, None where one has none.

    FASTER and SLOWER: the intervals do not overlap. UNSURE where a report has no ratio.
    """

    point: str
    arm: str
    before: Interval | None
    after: Interval | None

    @property
    def verdict(self) -> Verdict:
        """Of the second report over the first."""
        if self.before is None or self.after is None:
            return Verdict.UNSURE
        if self.after[2] < self.before[1]:
            return Verdict.FASTER
        return Verdict.SLOWER if self.after[1] > self.before[2] else Verdict.SAME


def compare(before: Path, after: Path) -> Iterator[Change]:
    """Every arm but the baseline at every point of either report, in their order.

    Raises TilepassError for a file that is no such report.
    """
    first, second = _ratios(before), _ratios(after)
    for point, arm in dict.fromkeys([*first, *second]):
        yield Change(point, arm, first.get((point, arm)), second.get((point, arm)))


def _ratios(file: Path) -> dict[tuple[str, str], Interval | None]:
    try:
        report: Any = json.loads(file.read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TilepassError(f"{file}: cannot be read: {error}") from error
    if not isinstance(report, dict) or _get(report, "schema") != SCHEMA:
        raise TilepassError(f"{file}: no report of `tilepass ab --json` ({SCHEMA})")
    found: dict[tuple[str, str], Interval | None] = {}
    for point in _get(report, "points"):
        name = "x".join(map(str, point["shape"]))
        settings = "".join(f", {key}={value}" for key, value in point["overrides"].items())
        for arm in point["arms"][1:]:
            measured: Mapping[str, float] | None = arm["against_baseline"]
            ends = ("ratio", "low", "high")
            interval = tuple(measured[end] for end in ends) if measured else None
            found[name + settings, arm["arm"]] = interval  # pyright: ignore[reportArgumentType]
    return found


def _get(report: Any, name: str) -> Any:
    return report.get(name)
