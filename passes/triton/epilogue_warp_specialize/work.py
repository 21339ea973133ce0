"""How much an epilogue computes: what decides whether it can hide under a main loop."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tilepass.ir.engine import Operation, operations
from tilepass.ir.layouts import TensorType, parse_type
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest, once

# SASS instructions for an element of 32 bits, as counted in what ptxas 12.8 makes for sm_90 of an
# epilogue with the operation less one without it (benchmarks/epilogue_work.py).
_INSTRUCTIONS: Mapping[str, int] = {
    "math.exp": 5,
    "math.exp2": 4,
    "math.log": 6,
    "math.log2": 5,
    "math.erf": 28,
    "math.tanh": 20,
    "math.sin": 30,
    "math.cos": 30,
    "math.sqrt": 7,
    "math.rsqrt": 4,
    "arith.divf": 5,
    "tt.precise_sqrt": 20,
    "tt.precise_divf": 12,
    # A function of libdevice: unknown, and not short.
    "tt.extern_elementwise": 28,
}
# Layouts, shapes and constants cost moves at most; what is loaded or stored is no arithmetic.
_FREE = ("ttg.", "tt.", "ttng.", "scf.", "arith.constant", "arith.truncf", "arith.extf")


@once
def epilogue_work(nest: PersistentNest) -> float:
    """Instructions that the epilogue computes with for each element of the tile, estimated."""
    m, n, _ = nest.tile
    inside = [each for top in nest.epilogue for each in operations(top)]
    return round(sum(_instructions(each) for each in inside) / (m * n), 1)


def _instructions(operation: Operation) -> int:
    """Of all threads together; an operation on scalars counts nothing."""
    if not len(operation.results):
        return 0
    result = parse_type(operation.results[0].type)
    if not isinstance(result, TensorType):
        return 0
    each = _INSTRUCTIONS.get(operation.name)
    if each is None:
        is_assembly = operation.name == "tt.elementwise_inline_asm"
        each = 0 if operation.name.startswith(_FREE) and not is_assembly else 1
    return each * math.prod(result.shape)
