"""What can be wrong with a protocol."""

from __future__ import annotations

from tilepass.sim.faults import Fault
from tilepass.sim.protocol.events import Event


class ProtocolFault(Fault):
    """A fault of a protocol, located at the event that shows it. `title` names the kind."""

    title = "protocol fault"

    def __init__(self, message: str, event: Event | None = None) -> None:
        super().__init__(f"{self.title}: {message}")
        if event is not None:
            self.operation = event.place.operation
            self.location = event.place.location


class Race(ProtocolFault):
    """Two accesses, one of them a write, of which nothing says which comes first."""

    title = "race"


class Unwritten(ProtocolFault):
    """A read of shared memory that nobody wrote."""

    title = "read of unwritten memory"


class MissingFence(ProtocolFault):
    """No `fence_async_shared` between what threads write and a TMA store or wgmma reads, or between
    what they read or write and a TMA load writes."""

    title = "missing fence"


class Misaligned(ProtocolFault):
    """A place that TMA reads or writes and that does not begin where TMA can: hardware faults, or
    swizzles it otherwise than who reads it."""

    title = "misaligned TMA place"


class WrongArrivals(ProtocolFault):
    """More arrivals than a phase takes, or an arrival that may count for another phase."""

    title = "too many arrivals"


class WrongBytes(ProtocolFault):
    """Bytes that a barrier expects and that never arrive, or the other way round."""

    title = "wrong byte count"


class ParityAliasing(ProtocolFault):
    """A wait that the barrier may be two phases away from: the parity cannot tell them apart."""

    title = "parity aliasing"


class BarrierMisuse(ProtocolFault):
    """A barrier used before it is initialized, or initialized or invalidated while in use."""

    title = "barrier misuse"


class Stuck(ProtocolFault):
    """All partitions wait."""

    title = "deadlock"


class WorkPending(ProtocolFault):
    """At the end: asynchronous work that nobody waits for, or a barrier within a phase."""

    title = "work left pending"
