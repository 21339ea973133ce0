"""Timing for programs that know no passes: launches in turn, by Triton's own benchmark.

`tilepass ab` pairs single launches and gives intervals; this gives medians alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any


def medians_in_turn(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Median us of each call on the GPU, with a cold L2: one after the other in every round."""
    import triton

    bench: Any = triton.testing.do_bench
    times = [
        [1000 * bench(each, warmup=5, rep=40, return_mode="median") for each in calls]
        for _ in range(rounds)
    ]
    return [statistics.median(each) for each in zip(*times, strict=True)]
