"""Launching and timing on the GPU: CUDA graphs between events, the L2 flushed before each.

Times are of graph replays, so that Python's launch cost stays out of them; a short kernel is
launched several times in one graph, over copies of its inputs that together exceed the L2. The
flush is queued before the first event: outside the timed span. Whole batches are queued without
a synchronization, so that the GPU never waits for the host inside a span.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tilepass.ab.clocks import ClockMonitor
from tilepass.ab.protocol import Batch, Orders, by_slot
from tilepass.core.errors import TilepassError

Tensors = tuple[torch.Tensor, ...]
Launcher = Callable[[], Tensors]

SPAN_US = 400.0
"""A timed span is at least about this long: 0.1 % of it is far above an event's resolution."""
MOST_LAUNCHES = 64
FLUSHES_OF_L2 = 2
"""The flush writes, and the copies of the inputs hold, this many times the L2."""


@dataclass(frozen=True)
class Graph:
    """Captured launches and the outputs they write (one tuple per launch).

    A replay uses the addresses that were captured. `launchers` owns the memory there, what a
    launcher allocated for itself (packed weights, partial sums) included.
    """

    graph: Any
    outputs: tuple[Tensors, ...]
    launchers: tuple[Launcher, ...]

    @property
    def launches(self) -> int:
        return len(self.outputs)

    def replay(self) -> None:
        """Queue the launches."""
        self.graph.replay()


def capture(launchers: Sequence[Launcher]) -> Graph:
    """Capture one call of each launcher, in order, into a CUDA graph.

    Every launcher must have run before. Raises TilepassError where a launch cannot be captured.
    """
    graph: Any = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            outputs = tuple(launcher() for launcher in launchers)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0]
        raise TilepassError(f"the launch cannot be captured into a CUDA graph: {reason}") from error
    return Graph(graph, outputs, tuple(launchers))


def l2_bytes() -> int:
    """Size of the L2 of the current GPU."""
    cuda: Any = torch.cuda
    return int(cuda.get_device_properties(cuda.current_device()).L2_cache_size)


def launches_for(microseconds: float) -> int:
    """Launches in one timed span of a kernel that takes this long."""
    return max(1, min(MOST_LAUNCHES, math.ceil(SPAN_US / max(microseconds, 1e-3))))


def copies_for(launches: int, touched_bytes: float, l2: int) -> int:
    """Copies of the inputs to rotate over, so that no launch of a span finds its data in the L2.

    `touched_bytes` is what one launch reads and writes; 0, where it is not known, counts as next
    to nothing: then each launch has a copy of its own.
    """
    enough = math.ceil(FLUSHES_OF_L2 * l2 / max(touched_bytes, 1.0)) + 1
    return min(launches, enough)


class CudaDevice:
    """Implements `protocol.Device` for graphs of equal numbers of launches, one per slot."""

    def __init__(self, graphs: Sequence[Graph], monitor: ClockMonitor | None) -> None:
        launches = {graph.launches for graph in graphs}
        if len(launches) != 1:
            raise ValueError(f"slots launch different numbers of times: {sorted(launches)}")
        self._graphs = graphs
        self._launches = launches.pop()
        self._monitor = monitor
        self._flush = torch.empty(FLUSHES_OF_L2 * l2_bytes(), dtype=torch.int8, device="cuda")
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    def time_rounds(self, orders: Orders) -> Batch:
        """Implements `protocol.Device`."""
        slots = [int(slot) for slot in orders.reshape(-1)]
        spans = self._event_pairs(len(slots))
        for slot, (begin, end) in zip(slots, spans, strict=True):
            self._flush.zero_()
            begin.record()
            self._graphs[slot].replay()
            end.record()
        last = spans[-1][1]
        last.synchronize()
        finished = time.perf_counter()
        spans_ms = np.array([begin.elapsed_time(end) for begin, end in spans])
        ages_ms = np.array([begin.elapsed_time(last) for begin, _ in spans])
        middles = finished - (ages_ms - spans_ms / 2) * 1e-3
        clocks = None if self._monitor is None else self._monitor.at(middles)
        return Batch(
            times=by_slot(orders, spans_ms * 1e3 / self._launches),
            clocks=None if clocks is None else by_slot(orders, clocks),
        )

    def _event_pairs(self, count: int) -> list[tuple[torch.cuda.Event, torch.cuda.Event]]:
        while len(self._events) < count:
            self._events.append(
                (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            )
        return self._events[:count]


def replay_time_us(graph: Graph, replays: int = 5) -> float:
    """Median time of one launch of `graph`, roughly: for choosing how many launches to capture."""
    times: list[float] = []
    for _ in range(replays):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / graph.launches)
    return float(np.median(times))
