"""A comparison from beginning to end, in the parent process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilepass.ab.events import ArmFailed, Done, Event, Failed, Remarked, Started
from tilepass.ab.gpu import versions
from tilepass.ab.job import Job, Task
from tilepass.ab.protocol import Plan
from tilepass.ab.report import Report
from tilepass.ab.static_figures import collect_figures, compile_points
from tilepass.ab.subjects import Subject
from tilepass.ab.supervisor import Limits, prime, run_tasks, worker_command
from tilepass.core.errors import TilepassError
from tilepass.without_gpu.nvml import gpu_count

Listener = Callable[[Report, Event], None]
Variant = tuple[str, ...]


def ignore(report: Report, event: Event) -> None:
    """A listener that does nothing."""


@dataclass(frozen=True)
class Means:
    """What a comparison may use: child processes for compiling, seconds in all (None: no limit),
    time limits for hung kernels, and the command that starts a worker of a mode."""

    processes: int
    budget: float | None = None
    limits: Limits = field(default_factory=Limits)
    command: Callable[[str], Sequence[str]] = worker_command


def priming_tasks(job: Job, subject: Subject) -> dict[Variant, Task]:
    """One task for each distinct kernel configuration under each distinct pipeline.

    A job that keeps going without an arm that fails has one for each point: a kernel may hang at
    one shape alone, and is then left out there before the others are timed.
    """
    tasks: dict[Variant, Task] = {}
    for index in range(len(job.points)):
        for arm in range(len(job.arms)):
            if job.arms[arm].library:
                continue
            tasks.setdefault(variant(job, subject, index, arm), Task(index, (arm,)))
    return tasks


def variant(job: Job, subject: Subject, point: int, arm: int) -> Variant:
    """What an arm compiles at a point: configuration and pipeline, as text."""
    config = repr(subject.configure(job.points[point], job.arms[arm]))
    where = (str(point),) if job.keep_going else ()
    return config, job.arms[arm].pipeline, *where


def run_on_gpu(job: Job, subject: Subject, means: Means, listener: Listener = ignore) -> Report:
    """Compile in parallel, then check and time point after point.

    Ctrl-C and the end of the budget end it early: the report then holds what there is and is
    marked partial.
    """
    report = Report(job)
    deadline = None if means.budget is None else time.monotonic() + means.budget
    try:
        lost = _prime(report, subject, means, listener)
        for failed in _hopeless(job, subject, lost):
            _note(report, failed, listener)
        _time(report, means, deadline, listener)
    except KeyboardInterrupt:
        report.interrupt("Ctrl-C")
    return report


def _note(report: Report, event: Event, listener: Listener) -> None:
    report.add(event)
    listener(report, event)


def _prime(
    report: Report, subject: Subject, means: Means, listener: Listener
) -> dict[Variant, str]:
    """Compile everything in parallel; returns the variants that hung or killed their process.

    Other failures are left to the point's own turn, which tells them better.
    """
    tasks = priming_tasks(report.job, subject)
    variants = {task: key for key, task in tasks.items()}
    remarks: dict[Variant, tuple[str, ...]] = {}

    def seen(event: Event) -> None:
        # Not noted in the report: the point itself has not begun.
        if isinstance(event, Started):
            listener(report, event)
        if isinstance(event, Remarked):
            remarks[variants[Task(event.point, (event.arm,))]] = event.remarks

    command = means.command("prime")
    lost = prime(command, report.job, list(variants), means.limits, means.processes, seen)
    for index in range(len(report.points)):
        for arm in range(len(report.job.arms)):
            said = remarks.get(variant(report.job, subject, index, arm), ())
            _note(report, Remarked(index, arm, said), listener)
    return {variants[task]: why for task, why in lost.items()}


def _hopeless(
    job: Job, subject: Subject, lost: Mapping[Variant, str]
) -> Iterator[Failed | ArmFailed]:
    """The points, or their arms, that need a variant which hung or killed its process."""
    for index in range(len(job.points)):
        for arm in range(len(job.arms)):
            if job.arms[arm].library:
                continue
            if (why := lost.get(variant(job, subject, index, arm))) is not None:
                if job.keep_going and arm:
                    yield ArmFailed(index, arm, why)
                    continue
                yield Failed(index, f"arm {job.arms[arm].label}: {why}", lost=True)
                break


def _time(report: Report, means: Means, deadline: float | None, listener: Listener) -> None:
    arms = range(len(report.job.arms))
    left = [
        Task(i, tuple(arm for arm in arms if arm not in point.failures))
        for i, point in enumerate(report.points)
        if point.status != "failed"
    ]
    job = replace(report.job, plan=_fair_plan(report.job, deadline))
    for event in run_tasks(means.command("time"), job, left, means.limits):
        _note(report, event, listener)
        ended = all(p.status in ("timed", "identical", "failed") for p in report.points)
        if deadline is not None and time.monotonic() > deadline and not ended:
            report.interrupt("budget")
            return


def _fair_plan(job: Job, deadline: float | None) -> Plan:
    """The plan with its time for sampling cut to an equal share of what is left."""
    if deadline is None:
        return job.plan
    share = (deadline - time.monotonic()) / len(job.points)
    return replace(job.plan, seconds=min(job.plan.seconds, max(0.5, 0.8 * share)))


def run_static(job: Job, subject: Subject, arch: int, listener: Listener = ignore) -> Report:
    """Compile every arm for sm_`arch`; nothing is run. Ctrl-C gives a partial report."""
    report = Report(job)
    report.facts.update({"compiled for": f"sm_{arch}", **versions()})

    def note(event: Event) -> None:
        report.add(event)
        listener(report, event)

    try:
        compile_points(job, subject, arch, note)
    except KeyboardInterrupt:
        report.interrupt("Ctrl-C")
    return report


def add_figures(report: Report) -> None:
    """Examine the binaries of the report. A tool that fails leaves a note instead of figures."""
    kernels = [k for p in report.points for launched in p.kernels.values() for k in launched]
    try:
        report.figures = collect_figures(kernels)
    except TilepassError as error:
        report.notes.append(f"no static figures: {error}")


def need_gpu(required: bool) -> bool:
    """Whether there is a GPU. Raises TilepassError where one is required and there is none."""
    if gpu_count() > 0:
        return True
    if required:
        raise TilepassError("no GPU: NVML finds none on this machine, and one is required")
    return False


def finished(event: Event) -> bool:
    """Whether the event ends a point."""
    return isinstance(event, Done | Failed)
