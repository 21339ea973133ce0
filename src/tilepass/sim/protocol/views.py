"""Views of shared memory without contents: what a `memdesc` value is while recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilepass.sim.faults import MemoryMisuse
from tilepass.sim.protocol.events import Memory, Region
from tilepass.sim.protocol.findings import Misaligned


@dataclass(frozen=True)
class View:
    """A box of an allocation. `axes` are the allocation's dimensions that the view's are; None
    where the shape was changed: further views are then taken to touch the whole box."""

    region: Region
    axes: tuple[int, ...] | None
    problem: str | None = None
    """Why the view must not be used: its position is outside of the allocation."""
    offset: int | None = 0
    """Where it begins, in bytes from where the allocation does; None where that is not known."""

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

    def touch_by_tma(self, alignment: int) -> Region:
        """The region, as TMA reads or writes it: from a multiple of so many bytes on. Raises
        Misaligned, and as `touch` does."""
        region, promised = self.touch(), self.region.memory.alignment
        if self.offset is not None and self.offset % alignment:
            raise Misaligned(f"{region} begins {self.offset} bytes into its allocation, and TMA "
                             f"needs a multiple of {alignment}")  # fmt: skip
        if promised % alignment:
            raise Misaligned(f"{region} is in an allocation that begins at some multiple of "
                             f"{promised} bytes, and TMA needs one of {alignment}")  # fmt: skip
        return region

    def index(self, position: int, slot_bytes: int | None) -> View:
        """One element of the first dimension, each of so many bytes."""
        moved = self._moved(None if slot_bytes is None else position * slot_bytes)
        if moved.axes is None:
            return moved
        cut = moved._cut(moved.axes[0], position, 1)
        return View(cut.region, moved.axes[1:], cut.problem, cut.offset)

    def window(self, offsets: Sequence[int], shape: Sequence[int], begin: int | None) -> View:
        """The part of this shape that begins at these offsets, and at this byte."""
        view = self._moved(begin)
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
        region = Region(self.region.memory, tuple(box))
        return View(region, self.axes, self.problem or problem, self.offset)

    def _moved(self, by: int | None) -> View:
        offset = None if by is None or self.offset is None else self.offset + by
        return View(self.region, self.axes, self.problem, offset)
