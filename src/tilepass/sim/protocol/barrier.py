"""An mbarrier with what is known about the order of the operations on it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilepass.sim.protocol.events import Clock, Event, Kind, Region, join
from tilepass.sim.protocol.findings import BarrierMisuse, ParityAliasing, WrongArrivals


@dataclass
class Barrier:
    """The state of PTX's mbarrier, and vector clocks.

    `number` is the barrier's own component in them: `base + phase` once `phase` phases have ended.
    Who knows a value of this component knows that that phase has ended.
    """

    region: Region
    number: int
    gathered: Clock
    """What those know that arrived in this phase."""
    released: Clock
    """What a wait for the last phase that ended teaches."""
    valid: bool = False
    count: int = 0
    pending: int = 0
    bytes: int = 0
    phase: int = 0
    base: int = 0
    landing: int = 0
    """The component's value when the last copy so far counts as complete."""
    users: dict[int, int] = field(default_factory=dict[int, int])
    """The time of each thread's last operation on it."""
    waits: list[tuple[int, int, Event]] = field(default_factory=list[tuple[int, int, Event]])
    """(thread, time, event) of the waits that the last phase that ended satisfied."""

    def passes(self, parity: int) -> bool:
        """Whether a wait with this parity goes on."""
        return self.phase & 1 != parity

    def initialize(self, event: Event, clock: Clock, thread: int) -> None:
        """Raises BarrierMisuse where it is in use."""
        if self.valid:
            raise BarrierMisuse(
                f"{self.region} is initialized again while it is in use (not invalidated)", event
            )
        self._require_quiet(event, clock, "initialized")
        self.valid, self.count, self.pending = True, event.amount, event.amount
        self.base, self.bytes, self.phase = self.base + self.phase + 2, 0, 0
        self.landing = 0
        self.waits.clear()
        self.users[~thread] = clock[thread]

    def invalidate(self, event: Event, clock: Clock, thread: int) -> None:
        """Raises BarrierMisuse where it is in use, or not initialized."""
        self._require_valid(event)
        self._require_quiet(event, clock, "invalidated")
        if self.bytes or clock[self.number] < self.landing:
            raise BarrierMisuse(f"{self.region} is invalidated while copies complete at it", event)
        self.valid = False
        self.users[thread] = clock[thread]

    def use(self, event: Event, clock: Clock, thread: int) -> None:
        """Before any other operation. Raises BarrierMisuse where it is not initialized."""
        self._require_valid(event)
        for user, time in self.users.items():
            if user < 0 and clock[~user] < time:
                raise BarrierMisuse(
                    f"nothing orders the use of {self.region} behind its initialization", event
                )
        self.users[thread] = clock[thread]

    def arrive(self, event: Event, clock: Clock) -> None:
        """Arrivals, or one with bytes to come. Raises WrongArrivals, ParityAliasing."""
        expects = event.kind is Kind.EXPECT
        count = 1 if expects else event.amount
        self._require_phase(event, clock, "an arrival")
        if count > self.pending:
            raise WrongArrivals(
                f"{count} at {self.region}, which waits for {self.pending} more in this phase",
                event,
            )
        alone = count == self.count and not self.bytes and not expects
        self.bytes += event.amount if expects else 0
        self.pending -= count
        join(self.gathered, clock)
        self._end_phase(event)
        if alone:  # no order of events can keep this phase from having ended now
            clock[self.number] = self.base + self.phase

    def complete(self, event: Event, clock: Clock) -> None:
        """The bytes of a copy have come; `clock` is what its issuer knew then."""
        self._require_phase(event, clock, "the copy")
        self.bytes -= event.amount
        self.landing = self.base + self.phase + 1
        join(self.gathered, clock)
        self._end_phase(event)

    def wait(self, event: Event, clock: Clock, thread: int) -> None:
        """Learn what the phase that ended says. Raises ParityAliasing."""
        if self.phase >= 2 and clock[self.number] < self.base + self.phase - 1:
            raise ParityAliasing(
                f"parity {event.amount} of {self.region} may also be that of two phases before: "
                f"nothing says that phase {self.phase - 2} has ended before this wait",
                event,
            )
        self.waits.append((thread, clock[thread], event))
        join(clock, self.released)

    def _require_valid(self, event: Event) -> None:
        if not self.valid:
            raise BarrierMisuse(f"{self.region} is not initialized", event)

    def _require_phase(self, event: Event, clock: Clock, what: str) -> None:
        if self.phase and clock[self.number] < self.base + self.phase:
            raise WrongArrivals(
                f"{what} at {self.region} may come before phase {self.phase - 1} has ended, and "
                "count for that one",
                event,
            )

    def _require_quiet(self, event: Event, clock: Clock, what: str) -> None:
        for user, time in self.users.items():
            if clock[user if user >= 0 else ~user] < time:
                raise BarrierMisuse(
                    f"{self.region} is {what} while another partition may be using it", event
                )
        self.users.clear()

    def _end_phase(self, event: Event) -> None:
        if self.pending or self.bytes:
            return
        self.gathered[self.number] = self.base + self.phase + 1
        for thread, time, wait in self.waits:
            if self.gathered[thread] < time:
                raise ParityAliasing(
                    f"a second phase of {self.region} may end before the wait at "
                    f"{wait.place.location} has seen the first, and then has the parity of none",
                    event,
                )
        self.waits.clear()
        join(self.released, self.gathered)
        self.phase += 1
        self.pending = self.count
