"""Which scheme for which nest, from measurements on an H200."""

from __future__ import annotations

from collections.abc import Mapping

from tilepass.core.decisions import Choice, Fact

# Slots below which the latency of TMA showed.
_ENOUGH_STAGES = 3


def scheme_choice(facts: Mapping[str, Fact]) -> Choice | None:
    """The scheme to take, None where nothing measured covers the facts.

    Facts as `nest_facts` gives them, and `stages_SCHEME` for each scheme that can be built: how
    many slots for the dot's operands fit. Measured for bf16, K from 512 to 16384 (ten shapes,
    paired with cuBLAS, geometric mean): split consumers 1.020, cooperative with 128x256 tiles
    0.990, as much as flattened, against 0.950 for the plain persistent kernel; ping-pong lost to
    all of them. K is not known to the compiler: split consumers were ahead of the plain kernel at
    each K.
    """
    if facts.get("arch") != 90 or facts.get("dot") != "shared":
        return None
    for scheme, reason in (
        ("split-consumer", "one group's epilogue overlaps the other's main loop"),
        ("store-warp", "loads run ahead over tile borders, stores overlap the next tile"),
        ("cooperative", "loads run ahead over tile borders"),
    ):
        stages = facts.get(f"stages_{scheme.replace('-', '_')}")
        if isinstance(stages, int) and stages >= _ENOUGH_STAGES:
            return Choice(scheme, reason)
    return None
