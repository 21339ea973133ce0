"""Cutting shared memory into cells: pieces that every access covers in whole or not at all."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from tilepass.sim.protocol.events import Event, Memory, Region, Thread


def number_cells(threads: Iterable[Thread]) -> tuple[list[Region], list[Region]]:
    """Set `cells` and `number` of all events; returns (a region for each cell, the barriers)."""
    events = [event for thread in threads for event in thread.events]
    numbering = _Numbering(events)
    barriers: dict[Region, int] = {}
    for event in events:
        event.cells = tuple(cell for region in event.regions for cell in numbering.of(region))
        if event.barrier is not None:
            event.number = barriers.setdefault(event.barrier, len(barriers))
    return numbering.regions, list(barriers)


class _Numbering:
    def __init__(self, events: Iterable[Event]) -> None:
        self.regions: list[Region] = []
        self._cuts: dict[Memory, list[list[int]]] = {}
        self._numbers: dict[Region, int] = {}
        self._known: dict[Region, tuple[int, ...]] = {}
        used = {region for event in events for region in event.regions}
        for region in used:
            axes = self._cuts.setdefault(region.memory, [[] for _ in region.box])
            for cuts, span in zip(axes, region.box, strict=True):
                cuts.extend(span)
        for axes in self._cuts.values():
            axes[:] = [sorted(set(cuts)) for cuts in axes]

    def of(self, region: Region) -> tuple[int, ...]:
        """The numbers of the cells that a region consists of."""
        if region not in self._known:
            spans = [
                [pair for pair in itertools.pairwise(cuts) if first <= pair[0] and pair[1] <= end]
                for cuts, (first, end) in zip(self._cuts[region.memory], region.box, strict=True)
            ]
            parts = [Region(region.memory, tuple(box)) for box in itertools.product(*spans)]
            self._known[region] = tuple(self._number(part) for part in parts)
        return self._known[region]

    def _number(self, part: Region) -> int:
        if part not in self._numbers:
            self._numbers[part] = len(self.regions)
            self.regions.append(part)
        return self._numbers[part]
