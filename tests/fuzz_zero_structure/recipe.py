"""What a random kernel does, and which tiles of its second product are zero whatever the data."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Mask = Literal[
    "lower",
    "upper",
    "shifted",
    "band",
    "blocks",
    "columns",
    "bounded",
    "by-data",
    "none",
]
Trouble = Literal[
    "none",
    "added-constant",
    "late-store",
    "stale",
    "optional-mask",
    "half-stored",
    "rescaled",
    "repeated",
    "repeated-late",
    "warp-mask",
]

_MASKS: tuple[Mask, ...] = (
    *("lower", "upper", "shifted", "band", "blocks", "columns", "bounded", "by-data", "none"),
)
_TROUBLES: tuple[Trouble, ...] = (
    *("none", "none", "none", "none", "added-constant", "late-store", "stale", "optional-mask"),
    *("half-stored", "rescaled", "rescaled", "repeated", "repeated-late", "warp-mask"),
)
M_TILE, N_TILE, K_TILE = 16, 8, 16


@dataclass(frozen=True)
class Recipe:
    """A kernel: P = mask(Q K^T) of (rows, columns) goes through shared memory into O = V P^T (P is
    operand B) or O = P V^T (P is operand A)."""

    rows: int
    columns: int
    inner: int
    other: int
    warps: int
    mask: Mask
    shift: int
    trouble: Trouble
    operand: Literal["a", "b"]
    half: Literal["bf16", "f16"]
    layout: Literal["row", "padded", "swizzled"]
    staged: Literal["matrix", "plain"]
    select: bool

    @property
    def threads(self) -> int:
        """Threads in the block."""
        return 32 * self.warps


def random_recipe(source: random.Random) -> Recipe:
    """A kernel that compiles: extents fit the warps and the instruction."""
    warps = source.choice((1, 2, 4))
    rows = 16 * warps * source.choice((1, 1, 2) if warps < 4 else (1,))
    operand = source.choice(("a", "b", "b"))
    columns = source.choice((16, 32, 64))
    return Recipe(
        rows,
        columns,
        16,
        16 * warps if operand == "b" else source.choice((16, 32)),
        warps,
        source.choice(_MASKS),
        source.choice((-17, -8, -1, 0, 1, 3, 8, 16, 24)),
        source.choice(_TROUBLES),
        operand,
        source.choice(("bf16", "f16")),
        source.choice(("row", "padded", "swizzled")),
        source.choice(("matrix", "plain")),
        source.random() < 0.3,
    )


def kept(recipe: Recipe) -> NDArray[np.bool_]:
    """[rows, columns]: where the mask may leave something other than 0."""
    row, column = np.indices((recipe.rows, recipe.columns))
    masks: dict[Mask, NDArray[np.bool_]] = {
        "lower": row >= column,
        "upper": column >= row,
        "shifted": row + recipe.shift >= column,
        "band": np.abs(row - column) <= abs(recipe.shift),
        "blocks": row // 16 == column // 16,
        "columns": column < 16,
        "bounded": row >= column,
        "by-data": row >= 0,
        "none": row >= 0,
    }
    return masks[recipe.mask]


def may_hold(recipe: Recipe) -> NDArray[np.bool_]:
    """[rows, columns]: where shared memory may hold something other than 0 when it is read."""
    held = kept(recipe).copy()
    row, _ = np.indices(held.shape)
    if recipe.trouble in ("added-constant", "optional-mask"):
        held[:] = True
    if recipe.trouble in ("late-store", "repeated-late"):
        held[0, recipe.columns - 1] = True
    if recipe.trouble == "half-stored":
        held[recipe.rows // 2 :] = True
    if recipe.trouble == "warp-mask":
        # Only the first warp masks: its rows of every stripe of 16 * warps rows.
        held[row % (16 * recipe.warps) >= 16] = True
    return held


def zero_tiles(recipe: Recipe) -> NDArray[np.bool_]:
    """[n or m, k]: the tiles of P as operand B, or of the part of a warp that is zero for every
    warp as operand A, that are zero by construction."""
    held = may_hold(recipe)
    if recipe.operand == "b":
        shape = (recipe.rows // N_TILE, N_TILE, recipe.columns // K_TILE, K_TILE)
        return np.asarray(~held.reshape(shape).any(axis=(1, 3)))
    stripes = recipe.rows // (M_TILE * recipe.warps)
    shape = (stripes, recipe.warps * M_TILE, recipe.columns // K_TILE, K_TILE)
    return np.asarray(~held.reshape(shape).any(axis=(1, 3)))
