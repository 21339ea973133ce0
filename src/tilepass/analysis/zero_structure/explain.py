"""Why a fragment is zero, as a chain of operations; where it is not, the first fact that fails."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilepass.analysis.zero_structure.facts import Failure, Step
from tilepass.analysis.zero_structure.intervals import Interval
from tilepass.analysis.zero_structure.machine import Machine
from tilepass.analysis.zero_structure.ops_gpu import lane_pieces
from tilepass.analysis.zero_structure.program import GemmSite, Instruction, MatrixMove
from tilepass.analysis.zero_structure.shared import UNCOVERED, SharedMemory
from tilepass.analysis.zero_structure.types import Scalar, Vector, size_of
from tilepass.analysis.zero_structure.values import WARP, Pointer, Value
from tilepass.analysis.zero_structure.zero_bytes import ZeroBytes
from tilepass.ir.engine import location_of

# Through how many stores to shared memory a chain is followed.
_DEPTH = 6
# Of how many stores to the same bytes the reason is looked for.
_MOST_STORES = 16
_NAMED = re.compile(r'"((?:[^"\\]|\\.)*)"\(')
_OUT_OF_REACH = {
    "wgmma": "wgmma reads its operands from shared memory through descriptors",
    "tcgen05": "tcgen05.mma reads its operands from shared or tensor memory through descriptors",
}


# Operations that only pass data on; a product starts anew.
_MOVES = ("llvm.load", "nvvm.ldmatrix", "nvvm.mma.sync", "arith.select")

_NO_WHOLE_TILE = "the mask and what follows it leave a non-zero element in every tile"

# A reason, the more telling the lower its number.
Ranked = tuple[int, Failure]


def step(kind: str, item: Instruction) -> Step:
    """A link of the chain at an operation."""
    assert kind in ("mask", "store", "load", "fragment")
    return Step(kind, item.name, location_of(item.operation), _source(item))


def _source(item: Instruction) -> str | None:
    """The source text that the DSL puts into a location."""
    names = [
        name for name in _NAMED.findall(str(item.operation.location)) if "tilepass." not in name
    ]
    return names[-1].replace('\\"', '"').replace("\\22", '"') if names else None


class Explainer:
    """Explanations of one kernel; what was found about a store is kept."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._origins: dict[tuple[int, ...], Origins] = {}
        self._stores: dict[int, Ranked] = {}

    def origins(self, numbers: tuple[int, ...]) -> Origins:
        """The origins of values."""
        found = self._origins.get(numbers)
        if found is None:
            found = self._origins[numbers] = origins_of(self.machine, numbers)
        return found

    def store(self, number: int) -> Ranked:
        """Why a store leaves something other than 0."""
        found = self._stores.get(number)
        if found is None:
            item = self.machine.program.instructions[number]
            found = self._stores[number] = _why_store(self, item)
        return found


# ---- what is zero ------------------------------------------------------------------------------


def fragment_operands(product: Instruction, operand: str) -> tuple[int, ...]:
    """The registers of A or B of an mma."""
    first, second, _ = product.detail.registers
    if operand == "a":
        return product.operands[:first]
    return product.operands[first : first + second]


def evidence(explainer: Explainer, product: Instruction, operand: str) -> tuple[Step, ...]:
    """From the mask to the fragment: how the zeros of a fragment come about."""
    numbers = fragment_operands(product, operand)
    chain = _chain(explainer, numbers, set(), _DEPTH) or _nearest(explainer, numbers)
    return (*chain, step("fragment", product))


def _nearest(explainer: Explainer, numbers: tuple[int, ...]) -> list[Step]:
    """Where no mask is found on the way: the store of zeros that the fragment's load reads, or the
    0 that the kernel writes into registers."""
    origins = explainer.origins(numbers)
    for load in origins.loads:
        for store in zero_stores(explainer.machine, load)[:1]:
            return [step("store", store), step("load", load)]
    return [step("store", store) for store in origins.zeros[:1]]


def _chain(
    explainer: Explainer, numbers: tuple[int, ...], seen: set[int], depth: int
) -> list[Step] | None:
    """Steps that lead to values, a mask first; None where no mask is found."""
    origins = explainer.origins(numbers)
    if origins.masks:
        mask = origins.masks[0]
        condition = condition_of(explainer.machine, mask)
        return [step("mask", condition or mask)]
    if depth == 0:
        return None
    for load in origins.loads:
        for store in zero_stores(explainer.machine, load):
            if store.number in seen:
                continue
            seen.add(store.number)
            if all(is_zero(explainer.machine, number) for number in data_operands(store)):
                return [step("store", store), step("load", load)]
            chain = _chain(explainer, data_operands(store), seen, depth - 1)
            if chain is not None:
                return [*chain, step("store", store), step("load", load)]
    return None


def zero_stores(machine: Machine, load: Instruction) -> list[Instruction]:
    read = read_by(machine, load)
    if read is None:
        return []
    memory, place = read.memory, read.place
    zeros = place[memory.facts[place] != 0]
    writers = np.unique(np.concatenate([memory.first_zero[zeros], memory.last_zero[zeros]]))
    return [machine.program.instructions[number] for number in writers if number >= 0]


# ---- what is not -------------------------------------------------------------------------------


def why_not_run(machine: Machine, site: GemmSite) -> Failure:
    """Why a gemm has no mma.sync."""
    for item in machine.program.instructions:
        if f'"tilepass.site.{site.index}"' not in str(item.operation.location):
            continue
        for word, reason in _OUT_OF_REACH.items():
            if word in item.name or word in str(item.detail):
                return Failure(f"{reason}: out of reach", location_of(item.operation))
        if item.name == "llvm.inline_asm":
            return Failure("the gemm is inline assembly", location_of(item.operation))
        if item.name == "nvvm.mma.sync":
            return Failure("no thread runs the gemm", location_of(item.operation))
    return Failure(f"nothing lowered comes from the gemm ({site.atom})")


def why_not_zero(explainer: Explainer, product: Instruction, operand: str) -> Failure:
    """The first fact that fails on the way to a zero fragment of A or B."""
    return _why(explainer, product, fragment_operands(product, operand))


def _why(explainer: Explainer, product: Instruction, numbers: tuple[int, ...]) -> Failure:
    origins = explainer.origins(numbers)
    spoilers, found = set[int](), list[Ranked]()
    for load in origins.loads:
        some, reasons = _why_read(explainer.machine, load)
        spoilers |= some
        found += reasons
    found += [explainer.store(number) for number in sorted(spoilers)[:_MOST_STORES]]
    if found:
        return min(found, key=lambda ranked: ranked[0])[1]
    if origins.masks:
        return _why_mask(explainer.machine, origins)[1]
    for source in origins.sources:
        what = f"the operand comes from {source.name}"
        if source.name == "llvm.load":
            what = "the operand is loaded from memory other than shared, past any mask"
        if source.name == "nvvm.ldmatrix":
            what = "the operand is loaded through a pointer that is not followed"
        return Failure(what, location_of(source.operation))
    return Failure("the operand is computed in registers", location_of(product.operation))


def _why_read(machine: Machine, load: Instruction) -> tuple[set[int], list[Ranked]]:
    """The stores that make the bytes of a load non-zero, and other reasons."""
    read = read_by(machine, load)
    if read is None:
        return set(), []
    memory, place = read.memory, read.place
    if place.size == 0:
        place = np.arange(*read.reach)
    spoilers = set(np.unique(memory.spoiled_by[place[memory.facts[place] == 0]]).tolist())
    at = location_of(load.operation)
    if UNCOVERED in spoilers:
        return set(), [(1, Failure("no store covers all bytes that are read", at))]
    stores = {number for number in spoilers if number >= 0}
    if read.place.size == 0 and not stores:
        return set(), [(3, Failure("the address of the load is not known", at))]
    return stores, []


def _why_store(explainer: Explainer, store: Instruction) -> Ranked:
    machine = explainer.machine
    place = location_of(store.operation)
    if store.number in machine.clobbers:
        return 0, Failure(machine.clobbers[store.number], place)
    if store.name not in ("llvm.store", "nvvm.stmatrix"):
        return 2, Failure(f"the operand's shared memory is filled by {store.name}", place)
    pointer = machine.env[store.operands[1 if store.name == "llvm.store" else 0]]
    if not isinstance(pointer, Pointer) or not pointer.offset.exact:
        return 3, Failure("the address of the store is not known in every thread", place)
    origins = explainer.origins(data_operands(store))
    if origins.masks:
        return _why_mask(machine, origins)
    return 4, Failure("the store has no mask before it: what it stores may be non-zero", place)


def _why_mask(machine: Machine, origins: Origins) -> Ranked:
    mask = origins.masks[0]
    condition = condition_of(machine, mask)
    place = location_of((condition or mask).operation)
    if condition is None:
        return 5, Failure("the mask is not a comparison", place)
    value = machine.env[condition.results[0]]
    if isinstance(value, Interval) and value.exact:
        for item in origins.results:
            if _takes_zeros_away(machine, item):
                reason = f"{item.name} makes something other than 0 of what is masked"
                return 7, Failure(reason, location_of(item.operation))
        return 7, Failure(_NO_WHOLE_TILE, place)
    return 6, Failure("the mask's condition is not decided by the thread index", place)


def _takes_zeros_away(machine: Machine, item: Instruction) -> bool:
    """Whether an operation is given zeros in some threads only, as a mask makes them, and nothing
    is known to be zero in what it gives."""
    if item.regions or item.name in _MOVES or not item.results:
        return False
    given = [part for number in item.operands for part in _parts(machine.env[number])]
    got = [part for number in item.results for part in _parts(machine.env[number])]
    masked = any(part.any and part.facts.shape[0] > 1 for part in given)
    return masked and bool(got) and not any(part.any for part in got)


def _parts(value: Value | None) -> list[ZeroBytes]:
    """The data in a value."""
    parts = value if isinstance(value, tuple) else (value,)
    return [part for part in parts if isinstance(part, ZeroBytes)]


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
