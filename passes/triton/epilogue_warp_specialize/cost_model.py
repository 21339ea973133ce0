"""Which scheme for which nest, from measurements on an H200; how much an epilogue computes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tilepass.core.decisions import Choice, Fact
from tilepass.ir.engine import Operation, operations
from tilepass.ir.layouts import TensorType, parse_type

from .description import PersistentNest, once

# Slots below which the latency of TMA showed.
_ENOUGH_STAGES = 3

# The tile that ping-pong was measured with, and the widest whose accumulator 4 warps can hold.
_PING_PONG_TILE = (128, 128)

# Instructions for an element of the tile (`epilogue_work`). A group of four warps that is alone in
# its epilogue issues half of what eight can, and takes twice as long for it; past this the main
# loop of the other group does not hide it.
_MOST_WORK = {"ping-pong": 22.0, "split-consumer": 11.0}


def scheme_choice(facts: Mapping[str, Fact]) -> Choice | None:
    """The scheme to take, None where nothing measured covers the facts.

    Facts as `nest_facts` gives them, and `stages_SCHEME` for each scheme that can be built: how
    many slots for the dot's operands fit. Measured for bf16, K from 512 to 16384, against cuBLAS's
    plain and fused calls, geometric means (results/warp_specialize_*.json): ping-pong with 128x128
    tiles 1.072 plain, 1.108 with bias and GELU, 1.243 with a residual; split consumers with 128x256
    tiles 1.045, 1.019, 1.152; the plain kernel 0.949, 0.947, 0.991. The tile is the kernel's:
    ping-pong's groups hold all of it in 4 warps. Both were ahead of the plain kernel at each K but
    16384, where they were within 1.3 % of it; K is not known to the compiler.

    Epilogues that compute much are for all warps together. Time of the plain kernel over that of a
    scheme, K = 512 to 8192, without a residual (results/epilogue_work.json):
    128x256: 0.84 to 1.11 for split consumers and 1.00 to 1.25 for the cooperative scheme with silu
    or GELU by exp; 0.63 to 0.83 and 1.00 to 1.21 with erf. 128x128: 1.12 to 1.82 for ping-pong with
    silu, 0.79 to 1.07 with erf, where the cooperative scheme has 1.13 to 1.42.
    """
    if facts.get("arch") != 90 or facts.get("dot") != "shared":
        return None
    tile = (facts.get("tile_m"), facts.get("tile_n"))
    known = facts.get("epilogue_work")
    work = known if isinstance(known, float) else 0.0
    for scheme, suits, reason in (
        ("ping-pong", tile == _PING_PONG_TILE, "one tile's epilogue under another's main loop"),
        ("split-consumer", True, "one half's epilogue under the other's main loop"),
        ("cooperative", True, "loads run ahead over tile borders"),
    ):
        stages = facts.get(f"stages_{scheme.replace('-', '_')}")
        suits = suits and work <= _MOST_WORK.get(scheme, math.inf)
        if suits and isinstance(stages, int) and stages >= _ENOUGH_STAGES:
            return Choice(scheme, reason)
    return None


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

# Layouts, shapes and constants cost moves at most; what is loaded or stored is not arithmetic.
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
