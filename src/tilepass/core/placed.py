"""A pass and the place where it runs, whatever the compiler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilepass.core.anchor import Anchor
from tilepass.core.pass_base import Pass

OnFailure = Literal["stop", "skip"]
ON_FAILURE: tuple[OnFailure, ...] = ("stop", "skip")


@dataclass(frozen=True)
class Placed:
    """A pass and where it runs.

    `on_failure`: where it raises, leaves invalid IR or changes what a kernel computes, the
    compilation stops, or goes on with the kernel as it was before the pass.
    """

    instance: Pass
    anchor: Anchor
    on_failure: OnFailure = "stop"

    def __str__(self) -> str:
        """The pass in pipeline syntax, its options and anchor spelled out."""
        return f"{self.instance}@{self.anchor}"
