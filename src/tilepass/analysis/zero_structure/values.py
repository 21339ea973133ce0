"""Abstract values: what is known of one SSA value in every thread of the block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tilepass.analysis.zero_structure.intervals import BoolArray, IntArray, Interval, Intervals
from tilepass.analysis.zero_structure.program import SharedObject
from tilepass.analysis.zero_structure.types import Address, Fields, Scalar, Type, Vector
from tilepass.analysis.zero_structure.zero_bytes import ZeroBytes, ZeroMaps

WARP = 32
SHARED_SPACE = 3
# Address spaces in which no shared and no private object lies: global, constant, tensor memory.
_OUTSIDE_SPACES = (1, 4, 6)


@dataclass(frozen=True)
class Region:
    """What a pointer points into.

    `shared` and `private` are one object, `name` says which (a private one bears the number of its
    alloca); `outside` is memory that is neither; `any-shared` an unknown place in shared memory;
    `anywhere` may be all of these.
    """

    kind: Literal["shared", "private", "outside", "any-shared", "anywhere"]
    name: str | int = ""


OUTSIDE = Region("outside")
ANY_SHARED = Region("any-shared")
ANYWHERE = Region("anywhere")


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address: byte offset into a region."""

    region: Region
    offset: Interval


@dataclass(frozen=True, slots=True)
class Struct:
    """An LLVM struct or array."""

    members: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value of a type that is not looked into."""


Number = Interval | ZeroBytes
Value = Interval | ZeroBytes | Pointer | Struct | Unknown | tuple[Number, ...]

UNKNOWN = Unknown()


class Mask:
    """The threads that may execute an operation."""

    __slots__ = ("active", "any", "full", "warps")

    def __init__(self, active: BoolArray) -> None:
        self.active = active
        self.any = bool(active.any())
        self.full = bool(active.all())
        self.warps = np.repeat(active.reshape(-1, WARP).any(1), WARP)


class Domain:
    """The tables that make equal values one object, for a block of `threads` threads.

    `threads` is a multiple of 32: the last warp may hold threads that do not exist.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.intervals = Intervals()
        self.maps = ZeroMaps(threads)
        self.thread = np.arange(threads, dtype=np.int64)
        self.lane = self.thread % WARP
        self.warp_start = self.thread - self.lane
        self._masks: dict[bytes, Mask] = {}
        self._splits: dict[tuple[Interval, Mask], tuple[Mask, Mask]] = {}

    @property
    def held_bytes(self) -> int:
        """Memory that the tables hold, roughly."""
        return self.intervals.held_bytes + self.maps.held_bytes

    def mask(self, active: BoolArray) -> Mask:
        """The mask of these threads."""
        key = active.tobytes()
        found = self._masks.get(key)
        if found is None:
            found = self._masks[key] = Mask(active)
        return found

    def split(self, condition: Interval, mask: Mask) -> tuple[Mask, Mask]:
        """The threads that may take either side of a condition."""
        key = (condition, mask)
        found = self._splits.get(key)
        if found is None:
            true = self.mask(mask.active & (condition.high >= 1))
            false = self.mask(mask.active & (condition.low <= 0))
            found = self._splits[key] = (true, false)
        return found

    def spread(self, values: IntArray) -> IntArray:
        """An array for all threads from one of shape (1,) or (threads,)."""
        return np.broadcast_to(values, (self.threads,))

    # ---- unknown values ----

    def top(self, kind: Type) -> Value:
        """Any value of a type."""
        if isinstance(kind, Scalar):
            return self.top_number(kind)
        if isinstance(kind, Vector):
            return (self.top_number(kind.element),) * kind.count
        if isinstance(kind, Address):
            return Pointer(_region_of_unknown(kind), self.intervals.top(64))
        if isinstance(kind, Fields):
            return Struct(tuple(self.top(member) for member in kind.members))
        return UNKNOWN

    def top_number(self, kind: Scalar) -> Number:
        """Any number of a type."""
        if kind.floating:
            return self.maps.nothing(kind.size)
        return self.intervals.top(kind.width)

    def argument(self, kind: Type) -> Value:
        """A kernel argument: no shared or private object exists yet when the host makes it."""
        if isinstance(kind, Address) and kind.space in (None, *_OUTSIDE_SPACES):
            return Pointer(OUTSIDE, self.intervals.top(64))
        if isinstance(kind, Fields):
            return Struct(tuple(self.argument(member) for member in kind.members))
        return self.top(kind)

    # ---- conversions ----

    def as_map(self, value: Value | None, size: int) -> ZeroBytes:
        """The bytes of a number of `size` bytes."""
        if isinstance(value, ZeroBytes):
            return value if value.size == size else self.maps.nothing(size)
        if isinstance(value, Interval):
            return self.maps.from_interval(value, size)
        return self.maps.nothing(size)

    def as_interval(self, value: Value | None, width: int) -> Interval:
        """The integer that a number is."""
        if isinstance(value, Interval):
            return value
        if isinstance(value, ZeroBytes) and value.any:
            zero = self.maps.exactly_zero(value)
            top = self.intervals.top(width)
            return self.intervals.of(np.where(zero, 0, top.low), np.where(zero, 0, top.high))
        return self.intervals.top(width)

    # ---- lattice ----

    def join(self, one: Value, other: Value) -> Value:
        """What holds for either."""
        if one is other:
            return one
        if isinstance(one, Interval) and isinstance(other, Interval):
            return self.intervals.join(one, other)
        if isinstance(one, Interval | ZeroBytes) and isinstance(other, Interval | ZeroBytes):
            return self.join_numbers(one, other)
        if isinstance(one, Pointer) and isinstance(other, Pointer):
            if one.region == other.region:
                offset = self.intervals.join(one.offset, other.offset)
                return Pointer(one.region, offset)
            return Pointer(_either(one.region, other.region), self.intervals.top(64))
        if isinstance(one, Struct) and isinstance(other, Struct):
            pairs = zip(one.members, other.members, strict=True)
            return Struct(tuple(self.join(first, second) for first, second in pairs))
        if isinstance(one, tuple) and isinstance(other, tuple):
            return tuple(map(self.join_numbers, one, other))
        return UNKNOWN

    def join_numbers(self, one: Number, other: Number) -> Number:
        """What holds for either of two numbers of one size."""
        if one is other:
            return one
        if isinstance(one, Interval) and isinstance(other, Interval):
            return self.intervals.join(one, other)
        size = one.size if isinstance(one, ZeroBytes) else _size(other)
        return self.maps.join(self.as_map(one, size), self.as_map(other, size))

    def pick(self, condition: Interval, one: Value, other: Value) -> Value:
        """`one` where the condition holds, `other` where it does not, what holds for both else."""
        if one is other or condition.least == 1:
            return one
        if condition.most == 0:
            return other
        if isinstance(one, Interval | ZeroBytes) and isinstance(other, Interval | ZeroBytes):
            return self.pick_numbers(condition, one, other)
        if isinstance(one, tuple) and isinstance(other, tuple):
            return tuple(
                self.pick_numbers(condition, first, second)
                for first, second in zip(one, other, strict=True)
            )
        if isinstance(one, Pointer) and isinstance(other, Pointer) and one.region == other.region:
            offset = self.intervals.pick(condition, one.offset, other.offset, 64)
            return Pointer(one.region, offset)
        return self.join(one, other)

    def pick_numbers(self, condition: Interval, one: Number, other: Number) -> Number:
        """As `pick`, for two numbers of one size."""
        if one is other:
            return one
        if isinstance(one, Interval) and isinstance(other, Interval):
            return self.intervals.pick(condition, one, other, 64)
        size = one.size if isinstance(one, ZeroBytes) else _size(other)
        return self.maps.pick(condition, self.as_map(one, size), self.as_map(other, size))


def shared_base(shared: SharedObject) -> str:
    """The name under which intervals carry the address of a shared object; its alignment last."""
    return f"{shared.name}@{shared.alignment}"


def _size(value: Number) -> int:
    if isinstance(value, ZeroBytes):
        return value.size
    raise AssertionError("one of two numbers that differ in kind is a map")


def _region_of_unknown(kind: Address) -> Region:
    if kind.space in _OUTSIDE_SPACES:
        return OUTSIDE
    # Address space 7 is the shared memory of the cluster, this block's included.
    return ANY_SHARED if kind.space in (SHARED_SPACE, 7) else ANYWHERE


def _either(one: Region, other: Region) -> Region:
    shared = ("shared", "any-shared")
    return ANY_SHARED if one.kind in shared and other.kind in shared else ANYWHERE
