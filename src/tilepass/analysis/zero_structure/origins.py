"""The way of a value's data, backwards through registers to shared memory and to masks.

For explanations only: nothing here takes part in a proof.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilepass.analysis.zero_structure.attributes import MatrixMove
from tilepass.analysis.zero_structure.intervals import Interval
from tilepass.analysis.zero_structure.machine import Machine
from tilepass.analysis.zero_structure.ops_matrix import lane_pieces
from tilepass.analysis.zero_structure.program import Instruction
from tilepass.analysis.zero_structure.shared import SharedMemory
from tilepass.analysis.zero_structure.types import Scalar, Vector, size_of
from tilepass.analysis.zero_structure.values import WARP, Pointer

_LOADS = ("llvm.load", "nvvm.ldmatrix")
# How many addresses of one load are looked at.
_MOST_ADDRESSES = 32
# Operations in which a walk ends: their result is new data.
_SOURCES = ("nvvm.mma.sync", "llvm.inline_asm")


@dataclass
class Origins:
    """Where data comes from, the nearest first."""

    loads: list[Instruction] = field(default_factory=list[Instruction])
    """Loads of shared memory."""
    masks: list[Instruction] = field(default_factory=list[Instruction])
    """Stores of 0 under a condition, and conditions that select 0."""
    zeros: list[Instruction] = field(default_factory=list[Instruction])
    """Stores of 0 to registers that depend on no condition."""
    sources: list[Instruction] = field(default_factory=list[Instruction])
    """Loads of other memory, and products."""
    results: list[Instruction] = field(default_factory=list[Instruction])
    """All operations on the way."""


def origins_of(machine: Machine, numbers: Iterable[int]) -> Origins:
    """The origins of values."""
    found = Origins()
    waiting, seen, objects = deque(numbers), set[int](), set[int]()
    definitions = machine.program.definitions
    while waiting:
        number = waiting.popleft()
        item = definitions.get(number)
        if number in seen or item is None:
            continue
        seen.add(number)
        found.results.append(item)
        if item.name in _LOADS:
            waiting += _loaded(machine, item, found, objects)
        elif item.name in _SOURCES:
            found.sources.append(item)
        elif item.regions:
            yielded = _yielded(item, item.results.index(number))
            waiting += yielded
            if item.name == "scf.if" and any(is_zero(machine, value) for value in yielded):
                found.masks.append(item)
        else:
            if item.name == "arith.select" and any(is_zero(machine, x) for x in item.operands[1:]):
                found.masks.append(item)
            waiting += [
                operand
                for operand, kind in zip(item.operands, item.operand_types, strict=True)
                if isinstance(kind, Vector) or not _is_flag(kind)
            ]
    _rank(machine, found.masks)
    return found


def _rank(machine: Machine, masks: list[Instruction]) -> None:
    """The mask that matters first: one that tells lanes apart, then the one that most stores of 0
    depend on (an element each)."""
    conditions = {mask.number: condition_of(machine, mask) for mask in masks}
    places = {
        number: str((condition or machine.program.instructions[number]).operation.location)
        for number, condition in conditions.items()
    }
    often = Counter(places.values())
    masks.sort(
        key=lambda mask: (
            not varies_by_lane(machine, conditions[mask.number]),
            -often[places[mask.number]],
        )
    )


def condition_of(machine: Machine, mask: Instruction) -> Instruction | None:
    """The comparison behind a mask."""
    owner = mask if mask.name in ("arith.select", "scf.if") else mask.parent
    waiting = [owner.operands[0]] if owner is not None and owner.operands else []
    while waiting:
        item = machine.program.definitions.get(waiting.pop(0))
        if item is None:
            continue
        # `not p` is a comparison of p with 0.
        if item.name in ("arith.cmpi", "arith.cmpf") and not _is_flag(item.operand_types[0]):
            return item
        waiting += [
            operand
            for operand, kind in zip(item.operands, item.operand_types, strict=True)
            if _is_flag(kind)
        ]
    return None


@dataclass(frozen=True)
class Read:
    """What the threads that ran a load of shared memory have read."""

    memory: SharedMemory
    place: NDArray[np.int64]
    """The bytes, where the address is known."""
    reach: tuple[int, int]
    """The first byte that may be read, and the one after the last."""


def read_by(machine: Machine, load: Instruction) -> Read | None:
    """The bytes of a load; None where it never ran on an object that is followed."""
    places, starts, stops = list[NDArray[np.int64]](), list[int](), list[int]()
    name = ""
    for pointer, mask in list(machine.readers.get(load.number, {}).items())[:_MOST_ADDRESSES]:
        if not mask.any:
            continue
        name = str(pointer.region.name)
        for offset, size in _pieces(machine, load, pointer):
            low = machine.domain.spread(offset.low)[mask.active]
            high = machine.domain.spread(offset.high)[mask.active]
            places.append((low[low == high][:, None] + np.arange(size)).ravel())
            starts.append(int(low.min()))
            stops.append(int(high.max()) + size)
    if not places:
        return None
    memory = machine.shared[name]
    place = np.unique(np.concatenate(places))
    place = place[(place >= 0) & (place < memory.size)]
    return Read(memory, place, (max(0, min(starts)), min(memory.size, max(stops))))


def _pieces(machine: Machine, load: Instruction, pointer: Pointer) -> list[tuple[Interval, int]]:
    """Offsets and sizes of what each thread reads."""
    if not isinstance(load.detail, MatrixMove):
        return [(pointer.offset, size_of(load.types[0]) or 1)]
    return [
        (piece, 4 // len(group))
        for group in lane_pieces(machine, load, pointer.offset)
        for piece in group
    ]


def varies_by_lane(machine: Machine, condition: Instruction | None) -> bool:
    """Whether lanes of one warp answer a comparison differently."""
    value = machine.env[condition.results[0]] if condition is not None else None
    if not isinstance(value, Interval):
        return False
    bounds = [bound.reshape(-1, WARP) for bound in (value.low, value.high) if bound.shape[0] > 1]
    return any(bool((lanes != lanes[:, :1]).any()) for lanes in bounds)


def data_operands(store: Instruction) -> tuple[int, ...]:
    """The values that a store to shared memory stores."""
    return store.operands[1:] if store.name == "nvvm.stmatrix" else store.operands[:1]


def _loaded(machine: Machine, load: Instruction, found: Origins, objects: set[int]) -> list[int]:
    """What a load gives: the values stored to a private object, each object once."""
    pointer = machine.env[load.operands[0]]
    if not isinstance(pointer, Pointer):
        found.sources.append(load)
        return []
    if pointer.region.kind == "shared":
        found.loads.append(load)
        return []
    if pointer.region.kind != "private":
        found.sources.append(load)
        return []
    if int(pointer.region.name) in objects:
        return []
    objects.add(int(pointer.region.name))
    values = list[int]()
    for number in machine.writers.get(int(pointer.region.name), {}):
        store = machine.program.instructions[number]
        if store.name != "llvm.store":
            found.sources.append(store)
        elif not is_zero(machine, store.operands[0]):
            values.append(store.operands[0])
        elif store.parent is not None and store.parent.name == "scf.if":
            found.masks.append(store)
        else:
            found.zeros.append(store)
    return values


def _yielded(item: Instruction, index: int) -> list[int]:
    """What the regions of an operation give for one of its results."""
    found = list[int]()
    for region in item.regions:
        # The condition of an scf.while comes before what it hands on.
        ends = region.body[-1].operands if region.body else ()
        skipped = 1 if region.body and region.body[-1].name == "scf.condition" else 0
        found += ends[skipped + index : skipped + index + 1]
    return found


def is_zero(machine: Machine, number: int) -> bool:
    """Whether a value is the constant 0."""
    item = machine.program.definitions.get(number)
    return (
        item is not None
        and item.name in ("arith.constant", "llvm.mlir.constant")
        and str(item.detail).startswith(("0.0", "dense<0.0", "0 ", "dense<0>"))
    )


def _is_flag(kind: object) -> bool:
    return isinstance(kind, Scalar) and kind.width == 1
