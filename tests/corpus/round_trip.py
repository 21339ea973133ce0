"""Whether the trip through the IR engine leaves a module as it was."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from tilepass.frontends.triton import bridge
from tilepass.passes.triton.test_round_trip import TestRoundTrip

from .compiling import run_stages
from .entries import Entry
from .pass_context import make_context


@dataclass(frozen=True)
class Outcome:
    """The trip of one module: `difference` is empty for an exact one."""

    entry: Entry
    stage: str
    difference: str

    def __str__(self) -> str:
        return f"{self.entry.name} {self.stage}: {self.difference or 'identical'}"


def round_trips(entry: Entry) -> Iterator[Outcome]:
    """The trips of an entry's modules: as the front end made it and after each IR stage."""
    for stage, module in run_stages(entry, "ttgir"):
        yield Outcome(entry, stage, difference_after_trip(module))


def difference_after_trip(module: bridge.TritonModule) -> str:
    """The first differing lines between a module and itself after a trip, locations included."""
    before = module.str()
    after = bridge.run_passes(module, [TestRoundTrip()], make_context).str()
    if module.str() != before:
        return "the trip changed the original module"
    return "" if after == before else first_difference(before, after)


def first_difference(before: str, after: str) -> str:
    """The first few lines of a unified diff."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return "\n".join(list(lines)[:8])
