"""What an execution reached: trips of loops, branches, turns of rings, and edges of arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilepass.core.diagnostics import SourceLocation
from tilepass.ir import engine

TRIPS = 3
"""Of a loop in one execution: a first trip, a last one, and one that is neither."""
TURNS = 2
"""How often a ring has to wrap: then both parities of its barriers have come twice."""
_LOOPS = ("scf.for", "scf.while")


@dataclass(frozen=True, eq=False)
class Spot:
    """An operation whose executions are counted; `size` is the number of a ring's slots."""

    name: str
    location: SourceLocation | None
    in_loop: bool
    size: int = 0

    @staticmethod
    def of(operation: engine.Operation, size: int = 0) -> Spot:
        """The spot of an operation."""
        outer, in_loop = operation.parent, False
        while outer is not None and not in_loop:
            in_loop, outer = outer.name in _LOOPS, outer.operation.parent
        return Spot(operation.name, engine.location_of(operation), in_loop, size)

    def __str__(self) -> str:
        return f"{self.name} at {self.location}" if self.location else self.name


Goal = tuple[Spot, str]
"""Something that executions should reach, in words."""

THREE_TRIPS = f"{TRIPS} trips"
NO_TRIP = "no trip at all"
WRAPS = f"{TURNS} turns of the ring"


@dataclass
class _Trips:
    executions: int = 0
    total: int = 0
    without: int = 0
    single: int = 0
    most: int = 0

    def add(self, trips: int) -> None:
        self.executions += 1
        self.total += trips
        self.without += trips == 0
        self.single += trips == 1
        self.most = max(self.most, trips)


@dataclass
class Coverage:
    """What one program of a grid did."""

    loops: dict[Spot, _Trips] = field(default_factory=dict[Spot, _Trips])
    branches: Counter[tuple[Spot, bool]] = field(default_factory=Counter[tuple[Spot, bool]])
    turns: Counter[Spot] = field(default_factory=Counter[Spot])
    edges: set[Goal] = field(default_factory=set[Goal])
    _slots: dict[Spot, int] = field(default_factory=dict[Spot, int])

    def loop(self, spot: Spot, trips: int) -> None:
        """A loop was executed, from its start to its end."""
        known = self.loops.get(spot)
        if known is None:
            known = self.loops[spot] = _Trips()
        known.add(trips)

    def slot(self, spot: Spot, position: int) -> None:
        """A slot of a ring was taken: it turns where it begins again."""
        self.turns[spot] += position < self._slots.get(spot, 0)
        self._slots[spot] = position

    def reached(self) -> set[Goal]:
        """The goals that this program reached. What is in a loop counts in three of its trips."""
        found = set(self.edges)
        for spot, trips in self.loops.items():
            rule = {
                THREE_TRIPS: trips.most >= TRIPS,
                NO_TRIP: trips.without > 0,
                "no trip, again and again": spot.in_loop and trips.without >= TRIPS,
                "one trip": trips.single > 0,
                "trips again and again": spot.in_loop and trips.total - trips.most >= TRIPS,
            }
            found |= {(spot, what) for what, holds in rule.items() if holds}
        for (spot, taken), count in self.branches.items():
            word = "taken" if taken else "not taken"
            found.add((spot, word))
            if spot.in_loop and count >= TRIPS:
                found.add((spot, f"{word} {TRIPS} times"))
        found |= {(spot, WRAPS) for spot, turns in self.turns.items() if turns >= TURNS}
        return found

    @property
    def lengths(self) -> tuple[int, ...]:
        """How often each loop ran: what distinguishes programs with other numbers of tiles."""
        return tuple(trips.total for trips in self.loops.values())


def wanted(spots: Sequence[Spot]) -> list[Goal]:
    """What should be reached at loops and rings."""
    return [
        (spot, what)
        for spot in spots
        for what in ((WRAPS,) if spot.size else (THREE_TRIPS, NO_TRIP))
    ]
