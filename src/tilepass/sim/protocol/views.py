"""Views of shared memory without contents: what a `memdesc` value is while recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilepass.sim.faults import MemoryMisuse
from tilepass.sim.protocol.events import Memory, Region


@dataclass(frozen=True)
class View:
    """A box of an allocation. `axes` are the allocation's dimensions that the view's are; None
    where the shape was changed: further views are then taken to touch the whole box."""

    region: Region
    axes: tuple[int, ...] | None
    problem: str | None = None
    """Why the view must not be used: its position is outside of the allocation."""

    @staticmethod
    def whole(memory: Memory) -> View:
        """All of an allocation."""
        box = tuple((0, size) for size in memory.shape)
        return View(Region(memory, box), tuple(range(len(box))))

    def touch(self) -> Region:
        """The region. Raises MemoryMisuse where it is outside of the allocation."""
        if self.problem:
            raise MemoryMisuse(self.problem)
        return self.region

    def index(self, position: int) -> View:
        """One element of the first dimension."""
        if self.axes is None:
            return self
        cut = self._cut(self.axes[0], position, 1)
        return View(cut.region, self.axes[1:], cut.problem)

    def window(self, offsets: Sequence[int], shape: Sequence[int]) -> View:
        """The part of this shape that begins at these offsets."""
        view = self
        for axis, at, size in zip(self.axes or (), offsets, shape, strict=False):
            view = view._cut(axis, at, size)
        return view

    def transposed(self, order: Sequence[int]) -> View:
        """The dimensions in another order."""
        if self.axes is None:
            return self
        return replace(self, axes=tuple(self.axes[axis] for axis in order))

    def reshaped(self) -> View:
        """The same elements in another shape or of another type."""
        return replace(self, axes=None)

    def _cut(self, axis: int, at: int, size: int) -> View:
        box = list(self.region.box)
        first, end = box[axis]
        inside = at >= 0 and first + at + size <= end
        problem = None if inside else f"position {at} of {self.region}, which holds {end - first}"
        box[axis] = (first + at, first + at + size) if inside else box[axis]
        return View(Region(self.region.memory, tuple(box)), self.axes, self.problem or problem)
