"""Why a fragment is zero, as a chain of operations; where it is not, the first fact that fails."""

from __future__ import annotations

import re

import numpy as np

from tilepass.analysis.zero_structure.facts import Failure, Step
from tilepass.analysis.zero_structure.intervals import Interval
from tilepass.analysis.zero_structure.machine import Machine
from tilepass.analysis.zero_structure.origins import (
    condition_of,
    data_operands,
    origins_of,
    read_by,
)
from tilepass.analysis.zero_structure.program import Instruction
from tilepass.analysis.zero_structure.shared import UNCOVERED
from tilepass.analysis.zero_structure.sites import GemmSite
from tilepass.analysis.zero_structure.values import Pointer
from tilepass.ir.engine import location_of

# Through how many stores to shared memory a chain is followed.
_DEPTH = 6
_NAMED = re.compile(r'"((?:[^"\\]|\\.)*)"\(')
_OUT_OF_REACH = {
    "wgmma": "wgmma reads its operands from shared memory through descriptors",
    "tcgen05": "tcgen05.mma reads its operands from shared or tensor memory through descriptors",
}


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


# ---- what is zero ------------------------------------------------------------------------------


def fragment_operands(product: Instruction, operand: str) -> tuple[int, ...]:
    """The registers of A or B of an mma."""
    first, second, _ = product.detail.registers
    if operand == "a":
        return product.operands[:first]
    return product.operands[first : first + second]


def evidence(machine: Machine, product: Instruction, operand: str) -> tuple[Step, ...]:
    """From the mask to the fragment: how the zeros of a fragment come about."""
    chain = _chain(machine, fragment_operands(product, operand), set(), _DEPTH) or []
    return (*chain, step("fragment", product))


def _chain(
    machine: Machine, numbers: tuple[int, ...], seen: set[int], depth: int
) -> list[Step] | None:
    """Steps that lead to values, a mask first; None where no mask is found."""
    origins = origins_of(machine, numbers)
    if origins.masks:
        mask = origins.masks[0]
        condition = condition_of(machine, mask)
        return [step("mask", condition or mask)]
    if depth == 0:
        return None
    for load in origins.loads:
        for store in _zero_stores(machine, load):
            if store.number in seen:
                continue
            seen.add(store.number)
            chain = _chain(machine, data_operands(store), seen, depth - 1)
            if chain is not None:
                return [*chain, step("store", store), step("load", load)]
    return None


def _zero_stores(machine: Machine, load: Instruction) -> list[Instruction]:
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


def why_not_zero(machine: Machine, product: Instruction) -> Failure:
    """The first fact that fails on the way to a zero fragment: of B, which masks mostly concern."""
    return _why(machine, product, fragment_operands(product, "b"))


def _why(machine: Machine, product: Instruction, numbers: tuple[int, ...]) -> Failure:
    origins = origins_of(machine, numbers)
    for load in origins.loads:
        failure = _why_read(machine, load)
        if failure is not None:
            return failure
    if origins.masks:
        return _why_mask(machine, origins.masks[0])
    for source in origins.sources:
        what = f"the operand comes from {source.name}"
        if source.name == "llvm.load":
            what = "the operand is loaded from memory other than shared, past any mask"
        if source.name == "nvvm.ldmatrix":
            what = "the operand is loaded through a pointer that is not followed"
        return Failure(what, location_of(source.operation))
    return Failure("the operand is computed in registers", location_of(product.operation))


def _why_read(machine: Machine, load: Instruction) -> Failure | None:
    """What makes the bytes that a load reads non-zero."""
    read = read_by(machine, load)
    if read is None:
        return None
    memory, place = read.memory, read.place
    if place.size == 0:
        place = np.arange(*read.reach)
    spoilers = np.unique(memory.spoiled_by[place[memory.facts[place] == 0]])
    if UNCOVERED in spoilers:
        return Failure("no store covers all bytes that are read", location_of(load.operation))
    for number in spoilers:
        if number >= 0:
            return _why_store(machine, machine.program.instructions[number])
    if read.place.size == 0:
        return Failure("the address of the load is not known", location_of(load.operation))
    return None


def _why_store(machine: Machine, store: Instruction) -> Failure:
    place = location_of(store.operation)
    if store.number in machine.clobbers:
        return Failure(machine.clobbers[store.number], place)
    if store.name not in ("llvm.store", "nvvm.stmatrix"):
        return Failure(f"the operand's shared memory is filled by {store.name}", place)
    pointer = machine.env[store.operands[1 if store.name == "llvm.store" else 0]]
    if not isinstance(pointer, Pointer) or not pointer.offset.exact:
        return Failure("the address of the store is not known in every thread", place)
    origins = origins_of(machine, data_operands(store))
    if origins.masks:
        return _why_mask(machine, origins.masks[0])
    return Failure("the store has no mask before it: what it stores may be non-zero", place)


def _why_mask(machine: Machine, mask: Instruction) -> Failure:
    condition = condition_of(machine, mask)
    place = location_of((condition or mask).operation)
    if condition is None:
        return Failure("the mask is no comparison", place)
    value = machine.env[condition.results[0]]
    if isinstance(value, Interval) and value.exact:
        return Failure("the mask leaves a non-zero element in every tile", place)
    return Failure("the mask's condition is not decided by the thread index", place)
