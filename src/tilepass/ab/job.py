"""What is to be compared, in a form that travels to a child process as JSON."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tilepass.ab.protocol import Plan
from tilepass.ab.statistics import Criteria
from tilepass.core.errors import TilepassError
from tilepass.core.flags import settings_of
from tilepass.core.pipeline_spec import parse_pipeline

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Arm:
    """One variant of the kernel: a pipeline, and options of the kernel that differ.

    With `library`, a `module:function` that takes the kernel's inputs and returns the outputs, it
    is that function instead (torch's, say): what a kernel is compared with.
    """

    label: str
    pipeline: str = ""
    overrides: Mapping[str, str] = field(default_factory=dict[str, str])
    library: str = ""

    def __post_init__(self) -> None:
        if self.library and (self.pipeline or self.overrides):
            raise TilepassError(f"arm {self.label} is {self.library}, which no pass can change")

    def describe(self) -> str:
        """`flatten-loops{mode=on}`, `stock`, `stock, flatten=0`: what a legend shows."""
        if self.library:
            return self.library
        settings = [f"{key}={value}" for key, value in self.overrides.items()]
        return ", ".join([self.pipeline or "stock", *settings])


@dataclass(frozen=True)
class Point:
    """One problem that all arms run: its shape, and options of the kernel that all arms share."""

    shape: Shape
    overrides: Mapping[str, str] = field(default_factory=dict[str, str])

    def describe(self) -> str:
        """`8192x8192x512`, `1024x8192x8192 occupancy=2`."""
        settings = [f"{key}={value}" for key, value in self.overrides.items()]
        return " ".join(filter(None, ["x".join(map(str, self.shape)), *settings]))


@dataclass(frozen=True)
class Task:
    """Work of a child on one point: time arms against each other, or only launch them once."""

    point: int
    arms: tuple[int, ...]


@dataclass(frozen=True)
class Job:
    """A whole comparison. `kernel` is a workload's name, `module:function` or `file.py:function`.

    `force` times arms whose binaries are equal; `load` are pass files, as for `--load`. With
    `keep_going` an arm that fails is left out of its point; without, the point fails.
    """

    kernel: str
    arms: tuple[Arm, ...]
    points: tuple[Point, ...]
    plan: Plan = field(default_factory=Plan)
    load: tuple[str, ...] = ()
    force: bool = False
    need_equal_bits: bool = False
    keep_going: bool = False

    def seed(self, point: int) -> int:
        """The seed of a point's inputs and launch orders: no two points share one."""
        return self.plan.seed + point

    def __post_init__(self) -> None:
        if len(self.arms) < 2:
            raise TilepassError("a comparison needs two arms (--a and --b)")
        for arm in self.arms:
            parse_pipeline(arm.pipeline)


def arm_label(index: int) -> str:
    """A, B, C, ... Raises TilepassError past Z."""
    if index >= len(string.ascii_uppercase):
        raise TilepassError(f"at most {len(string.ascii_uppercase)} arms can be compared")
    return string.ascii_uppercase[index]


def parse_shape(text: str) -> Shape:
    """`8192x8192x512` as integers. Raises TilepassError."""
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError as error:
        raise TilepassError(f"--shape: '{text}' is not of the form 8192x8192x512") from error


def parse_settings(option: str, texts: Sequence[str]) -> dict[str, str]:
    """`["FLATTEN=0"]` as `{"flatten": "0"}`. Raises OptionError, naming the option."""
    found = settings_of(texts, f"{option}: '{{}}' is not of the form NAME=VALUE")
    return {name.lower().replace("-", "_"): value for name, value in found.items()}


def encode_job(job: Job, tasks: Sequence[Task]) -> str:
    """Job and tasks as one line of JSON."""
    return json.dumps({"job": asdict(job), "tasks": [asdict(task) for task in tasks]})


def decode_job(text: str) -> tuple[Job, tuple[Task, ...]]:
    """The inverse of `encode_job`."""
    data: dict[str, Any] = json.loads(text)
    job: dict[str, Any] = data["job"]
    criteria: dict[str, Any] = job["plan"].pop("criteria")
    return (
        Job(
            kernel=job["kernel"],
            arms=tuple(Arm(**arm) for arm in job["arms"]),
            points=tuple(Point(tuple(p["shape"]), p["overrides"]) for p in job["points"]),
            plan=Plan(criteria=Criteria(**criteria), **job["plan"]),
            load=tuple(job["load"]),
            force=job["force"],
            need_equal_bits=job["need_equal_bits"],
            keep_going=job["keep_going"],
        ),
        tuple(Task(task["point"], tuple(task["arms"])) for task in data["tasks"]),
    )
