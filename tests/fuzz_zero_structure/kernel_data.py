"""Random bytes for the tensors of a recipe."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tests.fuzz_zero_structure.recipe import Recipe

# One element in this many is Inf or NaN where such are wanted.
_SPECIAL_EVERY = 5


def shapes(recipe: Recipe) -> tuple[tuple[int, int], ...]:
    """The extents of q, k, v and o."""
    out = (recipe.other, recipe.rows) if recipe.operand == "b" else (recipe.rows, recipe.other)
    return (
        (recipe.rows, recipe.inner),
        (recipe.columns, recipe.inner),
        (recipe.other, recipe.columns),
        out,
    )


def tensors(recipe: Recipe, source: np.random.Generator, special: bool) -> list[NDArray[np.uint8]]:
    """The bytes of q, k, v and o; `special` puts Inf and NaN into q, k and v."""
    kind = ml_dtypes.bfloat16 if recipe.half == "bf16" else np.float16
    found = list[NDArray[np.uint8]]()
    for shape in shapes(recipe)[:3]:
        values = source.uniform(0.1, 1.0, shape) * source.choice([-1.0, 1.0], shape)
        if special:
            unusual = source.integers(0, _SPECIAL_EVERY, shape) == 0
            values = np.where(unusual, source.choice([np.inf, -np.inf, np.nan], shape), values)
        found.append(values.astype(kind).view(np.uint8).ravel().copy())
    rows, columns = shapes(recipe)[3]
    return [*found, np.zeros(4 * rows * columns, np.uint8)]
