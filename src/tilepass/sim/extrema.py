"""Maximum and minimum of floats as PTX has them: of two zeros the positive one is greater.

numpy returns either, by the order of the operands and the width of its vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilepass.sim.poison import where

Extremum = Callable[[Any, Any], Any]


def _ordering_zeros(function: Extremum, of_zeros: Extremum) -> Extremum:
    def compute(a: Any, b: Any) -> Any:
        found = function(a, b)
        if not np.any(found == 0):
            return found
        both = np.asarray((a == 0) & (b == 0))
        chosen: Any = where(both, of_zeros(a, b), found).astype(found.dtype, copy=False)
        return chosen if isinstance(found, np.ndarray) else chosen[()]

    return compute


def _greater_zero(a: Any, b: Any) -> Any:
    return a + b


def _lesser_zero(a: Any, b: Any) -> Any:
    return -(-a - b)


maximum = _ordering_zeros(np.maximum, _greater_zero)
"""NaN if either operand is."""
minimum = _ordering_zeros(np.minimum, _lesser_zero)
maxnum = _ordering_zeros(np.fmax, _greater_zero)
"""The other operand where one is NaN."""
minnum = _ordering_zeros(np.fmin, _lesser_zero)
