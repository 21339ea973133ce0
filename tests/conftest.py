"""Settings of all tests: properties are tried on the same examples everywhere, however long."""

from __future__ import annotations

import os

from hypothesis import Phase, settings

_FIXED = settings(derandomize=True, deadline=None, database=None, max_examples=60)
settings.register_profile("fixed", _FIXED)
# For many failing runs (scripts/mutate_rules.py): the first failure will do.
settings.register_profile("first-failure", _FIXED, phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
