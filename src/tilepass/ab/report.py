"""The result of a comparison: built from events as they come, complete or partial at any time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np

from tilepass.ab.checks import same_kernels
from tilepass.ab.events import (
    ArmFailed,
    ArmReady,
    Done,
    Event,
    Failed,
    Found,
    KernelFact,
    Loaded,
    Remarked,
    Sampled,
    Setup,
    Started,
)
from tilepass.ab.job import Job
from tilepass.ab.protocol import Samples
from tilepass.ab.statistics import (
    Estimate,
    Floats,
    Verdict,
    estimate,
    guarded_verdict,
    paired_ratios,
)
from tilepass.binary.figures import KernelFigures

SCHEMA = "tilepass-ab/1"

Status = Literal["waiting", "running", "timed", "identical", "compiled", "failed", "partial"]


@dataclass
class PointResult:
    """What is known of one point. `kernels`, `remarks` and `failures` are by arm; `first` maps each
    arm that did not fail to the first one with the same binaries and settings, and only such first
    arms are timed."""

    status: Status = "waiting"
    message: str = ""
    kernels: dict[int, tuple[KernelFact, ...]] = field(
        default_factory=dict[int, tuple[KernelFact, ...]]
    )
    settings: dict[int, str] = field(default_factory=dict[int, str])
    remarks: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    equal_bits: dict[int, bool | None] = field(default_factory=dict[int, bool | None])
    failures: dict[int, str] = field(default_factory=dict[int, str])
    setup: Setup | None = None
    first: dict[int, int] = field(default_factory=dict[int, int])
    samples: Samples | None = None

    def slot(self, arm: int) -> int:
        """The column of an arm in the samples."""
        return sorted(set(self.first.values())).index(self.first[arm])


class Report:
    """Consumes events; gives summaries, and JSON."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.facts: dict[str, str] = {}
        self.points = [PointResult() for _ in job.points]
        self.failure: str | None = None
        self.ended_by: Literal["Ctrl-C", "budget"] | None = None
        self.notes: list[str] = []
        # Intervals by point, the two slots and the rounds they were computed from: every table,
        # plot and file asks for the same ones.
        self._estimates: dict[tuple[int, int, int, int], Estimate] = {}
        self.figures: Mapping[str, KernelFigures] = {}

    def add(self, event: Event) -> None:
        """Take note of an event of the timing worker."""
        match event:
            case Found():
                self.facts.update(event.facts)
            case Failed():
                self._failed(event)
            case Loaded():
                pass
            case Remarked():
                self.points[event.point].remarks[event.arm] = event.remarks
            case Started():
                self.points[event.point].status = "running"
            case ArmReady():
                self._arm_ready(event)
            case ArmFailed():
                self.points[event.point].failures[event.arm] = event.message
                self._note_first(event.point)
            case Setup():
                self.points[event.point].setup = event
                self.points[event.point].message = "; ".join(event.notes)
            case Sampled():
                self._sampled(event)
            case Done():
                self._done(event)

    def _failed(self, event: Failed) -> None:
        if event.point is None:
            self.failure = event.message
            return
        self.points[event.point].status = "failed"
        self.points[event.point].message = event.message

    def _arm_ready(self, event: ArmReady) -> None:
        point = self.points[event.point]
        point.kernels[event.arm] = event.kernels
        point.settings[event.arm] = event.settings
        point.equal_bits[event.arm] = event.equal_bits
        self._note_first(event.point)

    def _note_first(self, index: int) -> None:
        point = self.points[index]
        if len(point.kernels) + len(point.failures) == len(self.job.arms):
            point.first = same_kernels(point.kernels, point.settings, self.job.force)

    def _sampled(self, event: Sampled) -> None:
        point = self.points[event.point]
        if point.samples is None:
            point.samples = Samples(len(set(point.first.values())))
        point.samples.add(event.batch())

    def _done(self, event: Done) -> None:
        point = self.points[event.point]
        if event.outcome == "compiled":
            # Equal binaries are equal whether they ran or not.
            point.status = "identical" if set(point.first.values()) == {0} else "compiled"
        elif event.outcome == "identical":
            point.status = "identical"
        else:
            point.status = "timed"

    def interrupt(self, by: Literal["Ctrl-C", "budget"]) -> None:
        """Mark what was not finished: the run was ended early."""
        self.ended_by = by
        for point in self.points:
            if point.status in ("running", "waiting"):
                point.status = "partial"

    @property
    def partial(self) -> bool:
        """Whether something that was asked for is missing."""
        unfinished = ("partial", "waiting", "running")
        return self.ended_by is not None or any(p.status in unfinished for p in self.points)

    @property
    def failed(self) -> bool:
        """Whether something could not be done."""
        return self.failure is not None or any(p.status == "failed" for p in self.points)

    def duplicate(self, index: int) -> tuple[Estimate, Verdict] | None:
        """A' against A, or None where nothing was timed."""
        samples = self.points[index].samples
        if samples is None or self.points[index].status == "failed":
            return None
        measured = self._estimate(index, samples.arms, 0)
        if measured is None:
            return None
        return measured, guarded_verdict(measured, measured, self.job.plan.criteria)

    def _estimate(self, index: int, slot: int, baseline: int) -> Estimate | None:
        times, samples = self.times(index), self.points[index].samples
        if times is None or samples is None:
            return None
        key = (index, slot, baseline, samples.measured)
        if key not in self._estimates:
            ratios = paired_ratios(times, slot, baseline)
            seed = self.job.seed(index)
            self._estimates[key] = estimate(ratios, self.job.plan.criteria, seed)
        return self._estimates[key]

    def compare(self, index: int, arm: int, baseline: int = 0) -> tuple[Estimate, Verdict] | None:
        """Any two arms of a point, or None where one of them was not timed.

        Arms with the same binary need no measurement: SAME, with a ratio of exactly 1.
        """
        point = self.points[index]
        if point.status == "failed" or not {arm, baseline} <= point.first.keys():
            return None
        if point.first[arm] == point.first[baseline]:
            return Estimate(1.0, 1.0, 1.0, 0), Verdict.SAME
        measured = self._estimate(index, point.slot(arm), point.slot(baseline))
        duplicate = self.duplicate(index)
        if measured is None or duplicate is None:
            return None
        return measured, guarded_verdict(measured, duplicate[0], self.job.plan.criteria)

    def times(self, index: int) -> Floats | None:
        """Times of the rounds that count, [rounds, slots] in us; None where there are none."""
        samples = self.points[index].samples
        if samples is None or len(samples.times()) == 0:
            return None
        return samples.times()

    def median_us(self, index: int, arm: int) -> float | None:
        """Median time of a launch of an arm, or None where it was not timed."""
        times = self.times(index)
        if times is None or arm not in self.points[index].first:
            return None
        return float(np.median(times[:, self.points[index].slot(arm)]))

    def to_dict(self, raw: bool = False) -> dict[str, Any]:
        """The report as JSON has it; with `raw` the paired samples as well."""
        return {
            "schema": SCHEMA,
            "status": "partial" if self.partial else "failed" if self.failed else "complete",
            "ended_by": self.ended_by,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "failure": self.failure,
            "notes": self.notes,
            "environment": self.facts,
            "kernel": self.job.kernel,
            "arms": [asdict(arm) for arm in self.job.arms],
            "plan": asdict(self.job.plan),
            "figures": {name: item.to_dict() for name, item in self.figures.items()},
            "points": [self._point_dict(index, raw) for index in range(len(self.points))],
        }

    def _point_dict(self, index: int, raw: bool) -> dict[str, Any]:
        point, where = self.points[index], self.job.points[index]
        samples = point.samples
        clocks = samples.clocks() if samples is not None else None
        duplicate = self.duplicate(index)
        result: dict[str, Any] = {
            "shape": list(where.shape),
            "overrides": dict(where.overrides),
            "seed": self.job.seed(index),
            "status": point.status,
            "message": point.message,
            "launches_per_sample": point.setup.launches if point.setup else None,
            "input_copies": point.setup.copies if point.setup else None,
            "flops": point.setup.flops if point.setup else None,
            "bytes_moved": point.setup.bytes_moved if point.setup else None,
            "rounds_measured": samples.measured if samples else 0,
            "clocks_mhz": asdict(clocks) if clocks else None,
            "duplicate": _comparison_dict(duplicate),
            "arms": [self._arm_dict(index, arm) for arm in range(len(self.job.arms))],
        }
        if raw and samples is not None:
            result["times_us"] = np.round(samples.times(), 4).tolist()
        return result

    def _arm_dict(self, index: int, arm: int) -> dict[str, Any]:
        point = self.points[index]
        return {
            "arm": self.job.arms[arm].label,
            "kernels": [
                {"name": kernel.name, "code_hash": kernel.code_hash}
                for kernel in point.kernels.get(arm, ())
            ],
            "settings": point.settings.get(arm),
            "remarks": list(point.remarks.get(arm, ())),
            "equal_bits": point.equal_bits.get(arm),
            "failure": point.failures.get(arm),
            "same_binary_as": self.job.arms[point.first[arm]].label if arm in point.first else None,
            "median_us": self.median_us(index, arm),
            "against_baseline": _comparison_dict(self.compare(index, arm)) if arm else None,
        }


def empty_report(job: Job) -> dict[str, Any]:
    """The JSON of a job of which nothing is measured yet: partial."""
    return Report(job).to_dict()


def _comparison_dict(compared: tuple[Estimate, Verdict] | None) -> dict[str, Any] | None:
    if compared is None:
        return None
    measured, verdict = compared
    return {**asdict(measured), "verdict": str(verdict)}
