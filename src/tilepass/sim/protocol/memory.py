"""Which accesses to shared memory are ordered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilepass.sim.protocol.events import Clock, Event, Kind, Region
from tilepass.sim.protocol.findings import MissingFence, Race, Unwritten

_ASYNCHRONOUS_READS = frozenset((Kind.STORE, Kind.DOT))

_LATE_FENCES = (
    "Triton puts such fences before dots near the end of ttgir: in IR from before "
    "triton-nvidia-gpu-fence-insertion this is not a mistake"
)


class Access:
    """A read or write. It is over for those whose clocks know `time` of the component `owner`;
    while `time` is None, for nobody."""

    __slots__ = ("event", "fences", "name", "owner", "time")

    def __init__(self, event: Event, name: str, owner: int, time: int | None) -> None:
        self.event = event
        self.name = name
        self.owner = owner
        self.time = time
        self.fences: list[tuple[int, int]] = []

    def over_for(self, clock: Clock) -> bool:
        """Whether it certainly happened before what comes next."""
        return self.time is not None and clock[self.owner] >= self.time

    def __str__(self) -> str:
        return f"{self.event.place} ({self.name})"


class SharedMemory:
    """The last write of every cell and the reads since.

    `fences_to_come`: no fence is asked for between what a partition writes and its own dots. Nor is
    one between what a partition reads or writes and its own TMA loads: Triton's lowering to LLVM
    puts it there.
    """

    def __init__(self, regions: Sequence[Region], fences_to_come: bool = False) -> None:
        self._regions = regions
        self._fences_to_come = fences_to_come
        self._written: list[Access | None] = [None] * len(regions)
        self._reads: list[dict[tuple[int, Kind], Access]] = [{} for _ in regions]
        self._unfenced: list[Access] = []

    def read(self, access: Access, clock: Clock, thread: int) -> None:
        """Raises Race, Unwritten, MissingFence."""
        event = access.event
        for cell in event.cells:
            write = self._written[cell]
            if write is None or write.event.kind in (Kind.ALLOCATE, Kind.FREE):
                raise self._unwritten(cell, write, event)
            if not write.over_for(clock):
                raise self._race(cell, access, "reads", write, "written")
            if write.event.kind is Kind.WRITE and event.kind in _ASYNCHRONOUS_READS:
                self._require_fence(cell, write, access, clock, thread)
            self._reads[cell][thread, event.kind] = access
        if event.kind is Kind.READ:
            self._unfenced.append(access)

    def write(self, access: Access, clock: Clock, thread: int) -> None:
        """Raises Race, MissingFence."""
        event = access.event
        for cell in event.cells:
            for read in self._reads[cell].values():
                if not read.over_for(clock):
                    raise self._race(cell, access, _verb(event), read, "read")
            write = self._written[cell]
            if write is not None and not write.over_for(clock):
                raise self._race(cell, access, _verb(event), write, "written")
            if event.kind is Kind.LOAD:
                self._require_fences(cell, access, clock, thread)
            if (
                write is not None
                and write.event.kind is Kind.FREE
                and event.kind is not Kind.ALLOCATE
            ):
                raise Race(f"writes {self._regions[cell]}, which was freed at "
                           f"{write.event.place.location}", event)  # fmt: skip
            self._reads[cell].clear()
            self._written[cell] = access
        if event.kind is Kind.WRITE:
            self._unfenced.append(access)

    def fence(self, thread: int, clock: Clock) -> None:
        """Order what threads wrote and read so far before asynchronous accesses that follow."""
        for access in self._unfenced:
            if access.over_for(clock):
                access.fences.append((thread, clock[thread]))
        self._unfenced = [access for access in self._unfenced if access.owner != thread]

    def _require_fences(self, cell: int, load: Access, clock: Clock, loader: int) -> None:
        """Of what other partitions did with a cell that a TMA load is about to write."""
        written = self._written[cell]
        for other in (*self._reads[cell].values(), *([written] if written else [])):
            by_threads = other.event.kind in (Kind.READ, Kind.WRITE)
            if not by_threads or other.owner == loader or _is_fenced(other, clock):
                continue
            did = "read" if other.event.kind is Kind.READ else "write"
            raise MissingFence(
                f"no fence_async_shared between this write of {self._regions[cell]} and the {did} "
                f"by {other}",
                load.event,
            )

    def _require_fence(
        self, cell: int, write: Access, read: Access, clock: Clock, reader: int
    ) -> None:
        if _is_fenced(write, clock):
            return
        # The fences that Triton inserts are between accesses of one partition.
        inserted = read.event.kind is Kind.DOT and write.owner == reader
        if inserted and self._fences_to_come:
            return
        fault = MissingFence(
            f"no fence_async_shared between this read of {self._regions[cell]} and the write by "
            f"{write}",
            read.event,
        )
        if inserted:
            fault.note(_LATE_FENCES)
        raise fault

    def _race(self, cell: int, access: Access, verb: str, other: Access, done: str) -> Race:
        """`done` is what the other access does, as a participle."""
        region = self._regions[cell]
        if other.time is None:
            return Race(f"{verb} {region}, which may still be {done} by {other}", access.event)
        return Race(f"{verb} {region}, and nothing orders that with {other}, by which it is "
                    f"{done}", access.event)  # fmt: skip

    def _unwritten(self, cell: int, write: Access | None, event: Event) -> Unwritten:
        if write is not None and write.event.kind is Kind.FREE:
            return Unwritten(
                f"{self._regions[cell]} was freed at {write.event.place.location}", event
            )
        return Unwritten(f"{self._regions[cell]}, which nobody wrote", event)


def _is_fenced(access: Access, clock: Clock) -> bool:
    return any(clock[thread] >= time for thread, time in access.fences)


def finish(accesses: Iterable[Access], owner: int, time: int) -> None:
    """Asynchronous accesses are over for who knows this."""
    for access in accesses:
        access.owner, access.time = owner, time


def _verb(event: Event) -> str:
    return {Kind.ALLOCATE: "allocates", Kind.FREE: "frees"}.get(event.kind, "writes")
