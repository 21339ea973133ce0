"""Comparisons on default inputs: what they tell apart, and what they say that they do not."""

from __future__ import annotations

import pytest

from tests.value_pairs import Pair, equal_pairs, pairs
from tilepass.testing import assert_equivalent, program_of


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: pair.name)
def test_pairs_are_told_apart_or_named(pair: Pair) -> None:
    difference = pair.difference()
    if pair.found:
        assert difference is not None
    else:
        assert difference is None
        assert pair.not_compared()


@pytest.mark.parametrize("pair", equal_pairs(), ids=lambda pair: pair.name)
def test_equal_kernels_are_the_same(pair: Pair) -> None:
    assert pair.difference() is None


def test_a_kernel_is_the_same_as_itself() -> None:
    """No values make a kernel differ from itself, whatever it does with infinities and NaN."""
    for pair in pairs():
        kernel = program_of(pair.before)
        assert_equivalent(kernel, kernel, shapes=["16"])
