"""Settings of all tests: properties are tried on the same examples everywhere, however long."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Generator

import pytest
from hypothesis import Phase, settings

# With millions of objects alive most collections are for nothing.
gc.set_threshold(50_000, 20, 100)

_FIXED = settings(derandomize=True, deadline=None, database=None, max_examples=60)
settings.register_profile("fixed", _FIXED)
# For many failing runs (scripts/mutate_rules.py): the first failure will do.
settings.register_profile("first-failure", _FIXED, phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--seconds N`: start no test later (for `scripts/check.py --quick`)."""
    parser.addoption("--seconds", type=float, metavar="N", help="skip tests after N seconds")


_START = time.monotonic()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what the time does not suffice for."""
    seconds = item.config.getoption("seconds")
    if seconds is not None and time.monotonic() > _START + seconds:
        pytest.skip(f"not started within {seconds:.0f} s")


@pytest.fixture(autouse=True, scope="module")
def _values_as_in_passes(request: pytest.FixtureRequest) -> Generator[None]:
    """Values as passes see them, whatever another test of the process has loaded."""
    if request.node.get_closest_marker("traces"):
        yield
        return
    from tilepass.ir.values import plain_values

    with plain_values():
        yield
