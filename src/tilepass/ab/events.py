"""What a child process tells its parent: one JSON object a line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np

from tilepass.ab.protocol import Batch
from tilepass.core.errors import TilepassError


@dataclass(frozen=True)
class Found:
    """The machine: GPU, driver and versions, by name."""

    facts: dict[str, str]


@dataclass(frozen=True)
class Started:
    """Work on a point begins, or enters a new step (`compile`, `check`, `estimate`, `time`)."""

    point: int
    step: str


@dataclass(frozen=True)
class KernelFact:
    """A kernel that an arm launched. `code_hash` covers the executable sections only; `path` is
    the binary in Triton's cache, empty where it is not on disk."""

    name: str
    code_hash: str
    path: str


@dataclass(frozen=True)
class Loaded:
    """A kernel is compiled and on the GPU: what follows is its launch."""

    kernel: str


@dataclass(frozen=True)
class Remarked:
    """What the passes of an arm said when its kernels were compiled at this point."""

    point: int
    arm: int
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class ArmReady:
    """An arm of a point is compiled, and its outputs agree with the reference.

    `settings` is the kernel's configuration in this arm, all of it.
    `equal_bits` says whether the outputs equal the baseline's bit by bit; None where nothing ran.
    """

    point: int
    arm: int
    kernels: tuple[KernelFact, ...]
    settings: str
    equal_bits: bool | None


@dataclass(frozen=True)
class ArmFailed:
    """An arm of a point cannot be compiled, hangs, or is wrong; the others go on without it."""

    point: int
    arm: int
    message: str


@dataclass(frozen=True)
class Setup:
    """How a point is timed: launches per sample, copies of the inputs they rotate over, and what
    one launch computes and must move (0 where the kernel does not say)."""

    point: int
    launches: int
    copies: int
    flops: float
    bytes_moved: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sampled:
    """Rounds of a point: microseconds and MHz, [rounds][slots]."""

    point: int
    times: list[list[float]]
    clocks: list[list[float]] | None

    def batch(self) -> Batch:
        """The rounds as arrays."""
        clocks = None if self.clocks is None else np.asarray(self.clocks, dtype=np.float64)
        return Batch(np.asarray(self.times, dtype=np.float64), clocks)


@dataclass(frozen=True)
class Done:
    """A point is finished; `outcome` is `timed`, `identical` (equal binaries), `compiled` (and
    not run) or `primed` (compiled into the cache)."""

    point: int
    outcome: str


@dataclass(frozen=True)
class Failed:
    """A point, or with `point` None the whole job, cannot be done.

    `lost` says that the process hung or died over it.
    """

    point: int | None
    message: str
    lost: bool = False


Event = Found | Started | Loaded | Remarked | ArmReady | ArmFailed | Setup | Sampled | Done | Failed
_KINDS: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}


def encode(event: Event) -> str:
    """One line without the line break."""
    return json.dumps({"event": type(event).__name__, **asdict(event)})


def decode(line: str) -> Event:
    """The inverse of `encode`. Raises TilepassError on a line that is none."""
    try:
        data: dict[str, Any] = json.loads(line)
        kind = _KINDS[data.pop("event")]
        if kind is ArmReady:
            data["kernels"] = tuple(KernelFact(**kernel) for kernel in data["kernels"])
        if kind is Remarked:
            data["remarks"] = tuple(data["remarks"])
        if kind is Setup:
            data["notes"] = tuple(data["notes"])
        return kind(**data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TilepassError(f"A/B worker: not an event: {line[:200]!r}") from error


def sampled(point: int, batch: Batch) -> Sampled:
    """A batch as an event; times to 0.1 ns, clocks to 1 MHz."""
    clocks = None if batch.clocks is None else np.round(batch.clocks, 0).tolist()
    return Sampled(point, np.round(batch.times, 4).tolist(), clocks)
