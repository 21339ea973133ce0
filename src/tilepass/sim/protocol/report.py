"""An execution as text."""

from __future__ import annotations

from tilepass.sim.protocol.events import Event, Recording
from tilepass.sim.protocol.machine import COPIES, Machine

_LINES = 24


def trace_lines(machine: Machine) -> list[str]:
    """The last steps up to the fault, one a line: number, who, what, where."""
    trace = machine.trace
    first = max(0, len(trace) - _LINES)
    lines = [f"  ... {first} steps before"] if first else []
    width = max(len(thread.name) for thread in machine.threads)
    for number, (thread, event) in enumerate(trace[first:], first + 1):
        who = "(copy)" if thread == COPIES else machine.threads[thread].name
        lines.append(f"  {number:4} {who:{width}}  {_said(thread, event)}")
    return lines


def _said(thread: int, event: Event) -> str:
    where = f"  [{event.place.location}]" if event.place.location else ""
    if thread == COPIES:
        regions = ", ".join(map(str, event.regions))
        return f"{event.amount} bytes land in {regions}, complete at {event.barrier}{where}"
    return f"{event}{where}"


def legend(recording: Recording) -> list[str]:
    """The names of allocations that a trace uses."""
    return [f"  {memory}" for memory in recording.memories]
