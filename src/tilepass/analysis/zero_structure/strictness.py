"""Where the zeros of a fragment rest on 0 * x being 0, which `strict` does not assume."""

from __future__ import annotations

from tilepass.analysis.zero_structure.explain import Explainer, fragment_operands, zero_stores
from tilepass.analysis.zero_structure.facts import Failure
from tilepass.analysis.zero_structure.machine import Machine
from tilepass.analysis.zero_structure.origins import data_operands
from tilepass.analysis.zero_structure.program import Instruction
from tilepass.analysis.zero_structure.values import Struct, Value
from tilepass.analysis.zero_structure.zero_bytes import FREE, STRICT, ZeroBytes
from tilepass.ir.engine import location_of

# Through how many stores to shared memory the product is looked for.
_DEPTH = 6
# What makes such zeros.
_PRODUCTS = frozenset(("arith.mulf", "math.fma", "llvm.intr.fma", "vector.fma", "nvvm.mma.sync"))


def why_not_strict(explainer: Explainer, product: Instruction, operand: str) -> Failure:
    """The multiplication nearest to a fragment of A or B that its zeros rest on."""
    machine = explainer.machine
    numbers, seen = fragment_operands(product, operand), set[int]()
    for _ in range(_DEPTH):
        origins = explainer.origins(numbers)
        for item in origins.results:
            if _is_such_a_product(machine, item):
                return _failure(item)
        stores = {
            store.number: store for load in origins.loads for store in zero_stores(machine, load)
        }
        fresh = [store for number, store in stores.items() if number not in seen]
        if not fresh:
            break
        seen |= stores.keys()
        numbers = tuple(number for store in fresh for number in data_operands(store))
    return _failure(product)


def _failure(item: Instruction) -> Failure:
    reason = f"the operand is zero only if 0 * x is, which strict does not assume ({item.name})"
    return Failure(reason, location_of(item.operation))


def _is_such_a_product(machine: Machine, item: Instruction) -> bool:
    return item.name in _PRODUCTS and any(_rests(machine.env[number]) for number in item.results)


def _rests(value: Value | None) -> bool:
    """Whether bytes of a value are zero in some thread, but not strictly."""
    if isinstance(value, ZeroBytes):
        # FREE is the lower half of the bits.
        free, strict = value.facts & FREE, (value.facts & STRICT) >> 2
        return bool((free & ~strict).any())
    if isinstance(value, Struct):
        return any(_rests(member) for member in value.members)
    return isinstance(value, tuple) and any(_rests(part) for part in value)
