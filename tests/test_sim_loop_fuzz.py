"""The fuzzer of loop nests: nothing found with flatten-loops, known issues found without it."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz_loops.campaign import (
    FAR_BELOW,
    LATE,
    Checker,
    Failure,
    cases,
    fuzz,
    lit_test,
    minimize,
)
from tests.fuzz_loops.generator import random_nest
from tests.fuzz_loops.shrinker import smaller
from tilepass.core.versions import triton_version

WITHOUT_GUARD = 100


def test_flattened_nests_store_what_they_stored() -> None:
    report = fuzz(range(300), guard=True)
    assert report.failures == []
    assert report.count == 300
    assert report.flattened >= 150


@pytest.fixture(scope="module")
def failures() -> list[Failure]:
    return fuzz(range(WITHOUT_GUARD), guard=False).failures


def test_without_the_guard_known_issues_are_found(failures: list[Failure]) -> None:
    found = Counter(failure.verdict.issue for failure in failures)
    assert found["#11601"] >= 1
    assert found[FAR_BELOW] >= 5
    # Triton's passes in ttgir fold away what the proof at the end of ttir stands on.
    assert found[LATE] >= 1
    repaired = triton_version().version >= (3, 9)
    assert (found["#11656"] == 0) if repaired else (found["#11656"] >= 10)


def test_a_failure_is_reduced_to_a_lit_test(failures: list[Failure]) -> None:
    failure = next(each for each in failures if each.verdict.issue == "#11601")
    reduced = minimize(failure, guard=False)
    assert reduced.verdict.issue == "#11601"
    text = lit_test(reduced, guard=False)
    passes = "triton-loop-aware-cse,tritongpu-fuse-nested-loops"
    assert f"{passes}' -o %t" in text
    assert "tilepass check %s --against %t" in text
    assert text.count("scf.for") == 2
    assert len(text.splitlines()) < len(lit_test(failure, guard=False).splitlines())
    assert text.count("tt.load") == 1


def test_nests_depend_on_the_seed_alone() -> None:
    assert random_nest(5).text() == random_nest(5).text()
    assert random_nest(5).text() != random_nest(6).text()
    assert cases(5) == cases(5)


def test_every_smaller_nest_is_smaller() -> None:
    nest = random_nest(3)
    lines = len(nest.text().splitlines())
    candidates = list(smaller(nest))
    assert candidates
    # Without a carried value a nest has as many lines, with shorter ones.
    assert all(len(each.text().splitlines()) <= lines for each in candidates)
    assert all(each.text() != nest.text() for each in candidates)


def test_guard_refuses_a_carried_value_that_is_the_same_in_all_tiles() -> None:
    """Found by the fuzzer: Triton's pass hoists the next value out of the epilogue."""
    seed = 1173
    nest = random_nest(seed)
    assert Checker(guard=False).check(nest, seed).kind == "differs"
    assert Checker(guard=True).check(nest, seed).kind == "refused"
