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
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tilepass.ab.clocks import ClockMonitor
from tilepass.ab.protocol import Batch, Device, Orders, by_slot
from tilepass.core.errors import TilepassError

if TYPE_CHECKING:
    import torch

    Tensors = tuple[torch.Tensor, ...]
    Launcher = Callable[[], Tensors]

SPAN_US = 400.0
"""A timed span is at least about this long: 0.1 % of it is near an event's resolution."""
MOST_LAUNCHES = 64
FLUSHES_OF_L2 = 2
"""The flush writes, and the copies of the inputs hold, this many times the L2."""


class Event(Protocol):
    """A timing event of the stream that launches go to."""

    def record(self) -> None: ...
    def synchronize(self) -> None: ...
    def elapsed_time(self, end_event: Any, /) -> float: ...


@dataclass(frozen=True)
class Graph:
    """Captured launches, and the outputs they write: one tuple per launch.

    `launchers` keeps alive the memory that the launches use: a captured graph does not.
    """

    replay: Callable[[], object]
    outputs: tuple[Tensors, ...]
    launchers: tuple[Launcher, ...]

    @property
    def launches(self) -> int:
        """Launches in one replay."""
        return len(self.outputs)


class CudaGpu:
    """The GPU that torch has made current."""

    kind = "cuda"

    def __init__(self, monitor: ClockMonitor | None) -> None:
        self._monitor = monitor

    def synchronize(self) -> None:
        """Wait for everything that was launched. Raises RuntimeError where it went wrong."""
        import torch

        torch.cuda.synchronize()

    def capture(self, launchers: Sequence[Launcher]) -> Graph:
        """Capture one call of each launcher, in order, into a CUDA graph.

        Every launcher must have run before. Raises TilepassError where it cannot be captured.
        """
        import torch

        graph: Any = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                outputs = tuple(launcher() for launcher in launchers)
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[0]
            raise TilepassError(
                f"the launch cannot be captured into a CUDA graph: {reason}"
            ) from error
        return Graph(graph.replay, outputs, tuple(launchers))

    def l2_bytes(self) -> int:
        """Size of the L2."""
        import torch

        cuda: Any = torch.cuda
        return int(cuda.get_device_properties(cuda.current_device()).L2_cache_size)

    def launch_us(self, graph: Graph, replays: int = 5) -> float:
        """Median time of one launch, roughly: for choosing how many launches to capture."""
        times: list[float] = []
        for _ in range(replays):
            begin, end = _timing_event(), _timing_event()
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1e3 / graph.launches)
        return float(np.median(times))

    def timer(self, graphs: Sequence[Graph]) -> Device:
        """A device for the protocol whose slots are these graphs."""
        import torch

        size = FLUSHES_OF_L2 * self.l2_bytes()
        flush = torch.empty(size, dtype=torch.int8, device="cuda")
        return GraphTimer(graphs, self._monitor, flush.zero_, _timing_event)


def _timing_event() -> Event:
    import torch

    return torch.cuda.Event(enable_timing=True)


def launches_for(microseconds: float) -> int:
    """Launches in one timed span of a kernel that takes this long."""
    return max(1, min(MOST_LAUNCHES, math.ceil(SPAN_US / max(microseconds, 1e-3))))


def copies_for(launches: int, touched_bytes: float, l2: int) -> int:
    """Copies of the inputs to rotate over, so that no launch of a span finds its data in the L2.

    `touched_bytes` is what one launch reads and writes; 0, where it is not known, counts as next
    to nothing: then each launch has its own copy.
    """
    enough = math.ceil(FLUSHES_OF_L2 * l2 / max(touched_bytes, 1.0)) + 1
    return min(launches, enough)


class GraphTimer:
    """Implements `protocol.Device` for graphs of equal numbers of launches, one per slot."""

    def __init__(
        self,
        graphs: Sequence[Graph],
        monitor: ClockMonitor | None,
        flush: Callable[[], object],
        new_event: Callable[[], Event],
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        launches = {graph.launches for graph in graphs}
        if len(launches) != 1:
            raise ValueError(f"slots launch different numbers of times: {sorted(launches)}")
        self._graphs = graphs
        self._launches = launches.pop()
        self._monitor = monitor
        self._flush = flush
        self._new_event = new_event
        self._now = now
        self._events: list[tuple[Event, Event]] = []

    def time_rounds(self, orders: Orders) -> Batch:
        """Implements `protocol.Device`."""
        slots = [int(slot) for slot in orders.reshape(-1)]
        spans = self._event_pairs(len(slots))
        for slot, (begin, end) in zip(slots, spans, strict=True):
            self._flush()
            begin.record()
            self._graphs[slot].replay()
            end.record()
        last = spans[-1][1]
        last.synchronize()
        finished = self._now()
        spans_ms = np.array([begin.elapsed_time(end) for begin, end in spans])
        ages_ms = np.array([begin.elapsed_time(last) for begin, _ in spans])
        # When each span had its middle, in host time: the last event has only just passed.
        middles = finished - (ages_ms - spans_ms / 2) * 1e-3
        clocks = None if self._monitor is None else self._monitor.at(middles)
        return Batch(
            times=by_slot(orders, spans_ms * 1e3 / self._launches),
            clocks=None if clocks is None else by_slot(orders, clocks),
        )

    def _event_pairs(self, count: int) -> list[tuple[Event, Event]]:
        while len(self._events) < count:
            self._events.append((self._new_event(), self._new_event()))
        return self._events[:count]
