"""Vector clocks: one component for each partition and each barrier."""

from __future__ import annotations

Clock = list[int]
"""What has certainly happened: the number of things, by component."""


def join(into: Clock, other: Clock) -> None:
    """Learn what `other` knows."""
    into[:] = map(max, into, other)
