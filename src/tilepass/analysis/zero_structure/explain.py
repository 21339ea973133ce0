"""Why a fragment is zero, as a chain of operations; where it is not, the first fact that fails."""

from __future__ import annotations

import re

import numpy as np

from tilepass.analysis.zero_structure.facts import Failure, Step
from tilepass.analysis.zero_structure.intervals import Interval
from tilepass.analysis.zero_structure.machine import Machine
from tilepass.analysis.zero_structure.origins import (
    Origins,
    condition_of,
    data_operands,
    is_zero,
    origins_of,
    read_by,
)
from tilepass.analysis.zero_structure.program import Instruction
from tilepass.analysis.zero_structure.shared import UNCOVERED
from tilepass.analysis.zero_structure.sites import GemmSite
from tilepass.analysis.zero_structure.values import Pointer, Value
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
        return 5, Failure("the mask is no comparison", place)
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
