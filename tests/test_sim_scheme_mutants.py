"""Mistakes in a scheme of epilogue-warp-specialize are noticed on the problems of a plan; scripts/
scheme_mutants.py looks at all schemes."""

from __future__ import annotations

from tests.scheme_mutants import built, scheme_mutants
from tilepass.sim.protocol.check import find
from tilepass.sim.protocol.compiler import ProtocolProgram
from tilepass.sim.protocol_check import default_problems


def test_nearly_all_mistakes_are_noticed() -> None:
    """One in six, of all kinds."""
    module = built("cooperative")
    problems = default_problems(ProtocolProgram(module))
    assert not any(find(ProtocolProgram(module), problem, (0,)) for problem in problems)
    chosen = scheme_mutants(module)[::6]
    assert len({mutant.kind for mutant in chosen}) > 4
    found = [
        any(find(ProtocolProgram(each.apply(module)), problem, (0,)) for problem in problems)
        for each in chosen
    ]
    assert sum(found) >= len(chosen) - 1
