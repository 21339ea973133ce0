"""The mutants of scripts/mutate_rules.py: what is changed, and that a mutant is told from none."""

from __future__ import annotations

import ast

from tests.rule_mutants import mutants_of, sample
from tests.rule_mutants_run import accepted
from tests.rule_subjects import SUBJECTS

_SOURCE = '''
"""A module."""
LIMIT = -1
def least(one: int, other: int, sure: bool = False) -> int | None:
    """The less of two."""
    if one < other and not sure:
        return min(one, other)
    if sure:
        raise ValueError(f"{one + 1}")
    return None
'''


def test_mutants_are_small_changes_of_what_decides() -> None:
    mutants = mutants_of(_SOURCE)
    names = {each.name for each in mutants}
    assert len(names) == len(mutants)
    assert names >= {
        "module: -1 -> (0)",
        "module: -1 -> (-2)",
        "least: False -> True",
        "least: one < other -> (one <= (other))",
        "least: one < other -> (one >= (other))",
        "least: not sure -> (sure)",
        "least: one < other and (not sure) -> ((one < other) or (not sure))",
        "least: one < other and (not sure) -> ((not sure))",
        "least: one < other and (not sure) -> True",
        "least: min(one, other) -> max(one, other)",
        "least: min(one, other) -> (other)",
        "least: return min(one, other) -> return None",
        "least: sure -> not (sure)",
        "least: raise ValueError(f'{one + 1}') -> pass",
    }
    for each in mutants:
        assert ast.dump(ast.parse(each.source)) != ast.dump(ast.parse(_SOURCE))
        assert "The less of two" in each.source
        assert "{one + 1}" in each.source or "pass" in each.name


def test_sample_is_of_the_whole_text() -> None:
    mutants = mutants_of(_SOURCE)
    picked = sample(mutants, 5, 3)
    assert picked == sample(mutants, 5, 3)
    places = [mutants.index(each) for each in picked]
    assert places == sorted(set(places))
    assert sample(mutants, 10_000, 0) == mutants


def test_mutants_of_the_rules_can_be_compiled_and_those_accepted_are_there() -> None:
    for subject in SUBJECTS:
        mutants = mutants_of(subject.path.read_text())
        accepted(subject.module, mutants)
        for mutant in sample(mutants, 5, 0):
            ast.parse(mutant.source)
