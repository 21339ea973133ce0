"""What the analysis finds out, and how far it may go."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tilepass.core.diagnostics import SourceLocation

TileArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Limits:
    """Where the analysis gives up, so that it neither hangs nor fills the memory."""

    unroll: int = 256
    """Trips up to which a loop of constant bounds is run trip by trip, not joined."""
    joins: int = 24
    """Runs of the body of a loop until its state must be stable."""
    rounds: int = 12
    """Runs of the kernel until shared memory must be stable."""
    steps: int = 3_000_000
    """Operations interpreted, over all runs."""
    table_bytes: int = 1 << 30
    """Memory held by distinct values."""
    shared_bytes: int = 233_472
    """Bytes of shared memory of a multiprocessor: 228 KiB from compute capability 9.0 on, the most
    there is (CUDA C++ programming guide, table of technical specifications)."""


class Assumption(Enum):
    """What a proof takes for granted."""

    NO_RACE = "no data race: a read of shared memory follows the writes that it is meant to see"
    NO_UNINITIALISED_READ = (
        "no read of shared memory before a store to it (each byte is stored to by some operation)"
    )
    ZERO_TIMES_X = "0 * x is 0 in the values that flow into the tile: no Inf or NaN there"
    FINITE_OPERAND = (
        "the other operand's values are finite and no accumulator is -0.0, so that adding the "
        "product changes nothing"
    )


@dataclass(frozen=True)
class Step:
    """One link of the chain from what makes the zeros to the fragment."""

    kind: Literal["mask", "store", "load", "fragment"]
    operation: str
    location: SourceLocation | None
    source: str | None
    """The line of source text, where the kernel was traced with line information."""

    def __str__(self) -> str:
        place = str(self.location) if self.location else "no source line"
        text = f" `{self.source}`" if self.source else ""
        return f"{self.kind}: {self.operation} at {place}{text}"


@dataclass(frozen=True)
class Failure:
    """The first fact that failed."""

    reason: str
    location: SourceLocation | None = None

    def __str__(self) -> str:
        return f"{self.location}: {self.reason}" if self.location else self.reason


@dataclass(frozen=True)
class SiteZeros:
    """The zeros of one gemm; tiles are the instruction's, counted as in the gemm's layouts."""

    index: int
    instruction: tuple[int, int, int]
    """m, n, k of the mma instruction; (0, 0, 0) where none was seen."""
    tiles: tuple[int, int, int]
    """M, N, K: tiles per warp; (0, 0, 0) where not known."""
    b_zero: TileArray
    """[N, K]: true where the fragment of B is zero in every thread that runs the gemm."""
    a_zero: TileArray
    """[M, K]: the same for A."""
    unread: TileArray
    """[M, N]: true where nothing reads the accumulator tile after the gemm."""
    needs_zero_times_x: bool
    """Whether a zero above holds only if 0 * x is 0 in the values that flow into it."""
    evidence: tuple[Step, ...]
    assumptions: tuple[Assumption, ...]
    failure: Failure | None
    """Why nothing was proven, None if something was; of B where `of_a` is the reason for A."""
    of_a: Failure | None = None

    def why_nothing(self) -> str | None:
        """Why nothing was proven, for each operand that has its own reason."""
        if self.of_a is None:
            return str(self.failure) if self.failure else None
        if self.of_a == self.failure:
            return f"A and B: {self.failure}"
        return f"A: {self.of_a}; B: {self.failure}"

    @property
    def anything(self) -> bool:
        """Whether a fragment is zero or an accumulator tile unread."""
        return bool(self.b_zero.any() or self.a_zero.any() or self.unread.any())


@dataclass(frozen=True)
class ZeroStructure:
    """The zeros of a kernel, by site index."""

    sites: dict[int, SiteZeros]
    threads: int
    """Threads in a block, 0 where the launch does not say."""
    rounds: int
    failure: Failure | None
    """Why the analysis of the whole kernel gave up, None if it did not."""
