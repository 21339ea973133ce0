"""Mistakes put into warp-specialized kernels: all are noticed, and the two ways to look agree."""

from __future__ import annotations

import pytest

from tests.protocol_explore import explore
from tests.protocol_mutants import mutants
from tests.protocol_support import SCHEMES, TRIPS, load, problem, rows
from tilepass.sim.faults import Fault
from tilepass.sim.protocol.check import run_random
from tilepass.sim.protocol.compiler import ProtocolProgram, record
from tilepass.sim.protocol.findings import MissingFence

_AT_LEAST = {"A": 120, "A0": 80, "B": 140}
_GROUPS = {"arrival", "barrier", "bytes", "fence", "phase", "place", "slot", "wait"}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_mutant_is_reported(scheme: str) -> None:
    """Two trips show nearly all; what they do not show, another size does."""
    module = load(scheme)
    found = list(rows(module, (2,), 3))
    assert len(found) >= _AT_LEAST[scheme]
    assert {row.mutant.group for row in found} == _GROUPS
    for row in found:
        if row.reported:
            continue
        program = ProtocolProgram(row.mutant.apply(module))
        others = [_first_fault(program, trips, 10) for trips in TRIPS]
        assert any(others), row.mutant.name


def test_prediction_and_exhaustive_search_agree() -> None:
    """What is predicted from one schedule happens in some schedule, and the other way round."""
    module = load("A0")
    compared = 0
    for mutant in mutants(module):
        program = ProtocolProgram(mutant.apply(module))
        try:
            recording = record(program, problem(1, 3))
        except Fault:
            continue
        predicted = next(
            (fault for seed in range(8) if (fault := run_random(recording, seed).fault)), None
        )
        # Fences order what the exhaustive search has in order anyway.
        if isinstance(predicted, MissingFence):
            continue
        compared += 1
        assert bool(explore(recording, 20_000).problem) == bool(predicted), mutant.name
    assert compared > 60


def _first_fault(program: ProtocolProgram, trips: int, seeds: int) -> Fault | None:
    try:
        recording = record(program, problem(trips))
    except Fault as fault:
        return fault
    executions = (run_random(recording, seed) for seed in range(seeds))
    return next((each.fault for each in executions if each.fault), None)
