"""Random kernels, analysed and executed: what is called zero must be zero."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tests.fuzz_zero_structure.concrete import Interpreter
from tests.fuzz_zero_structure.kernel_data import tensors
from tests.fuzz_zero_structure.recipe import Recipe, random_recipe, zero_tiles
from tilepass.analysis.zero_structure.entry import analyse, fold, grid_of
from tilepass.analysis.zero_structure.facts import SiteZeros, TileArray
from tilepass.analysis.zero_structure.program import decode, kernels_of, sites_of
from tilepass.ir.engine import Module

# The second gemm is the one that P goes into.
_SITE = 1
_SCALE = 0.5


@dataclass
class Outcome:
    """What a campaign found."""

    kernels: int = 0
    claimed: int = 0
    """Tiles called zero, with 0 * x = 0."""
    claimed_strictly: int = 0
    constructed: int = 0
    """Tiles that are zero by construction."""
    found: int = 0
    """Of those, how many the analysis calls zero."""
    false_claims: list[str] = field(default_factory=list[str])
    missed: dict[str, int] = field(default_factory=dict[str, int])
    """Tiles not found, by mask and trouble."""

    @property
    def share(self) -> float:
        """The part that was found of the tiles that are zero by construction; 1 if none are."""
        return self.found / self.constructed if self.constructed else 1.0


def run(count: int, seed: int, lower: Callable[[Recipe], Module]) -> Outcome:
    """Analyse and execute `count` random kernels; `lower` gives a recipe's lowered module."""
    source = random.Random(seed)
    outcome = Outcome()
    for _ in range(count):
        recipe = random_recipe(source)
        check(recipe, lower(recipe), outcome, source.randrange(1 << 30))
    return outcome


def check(recipe: Recipe, module: Module, outcome: Outcome, seed: int) -> None:
    """Compare the claims about one kernel with executions, and count."""
    outcome.kernels += 1
    free = analyse(module).sites
    strict = analyse(module, strict=True).sites
    for name, claims, special in (("free", free, False), ("strict", strict, True)):
        for trips in (1, 3):
            executed = execute(recipe, module, seed + trips, special, trips)
            outcome.false_claims += _refuted(recipe, name, claims, executed)
    _count(recipe, free[_SITE], strict[_SITE], outcome)


def execute(
    recipe: Recipe, module: Module, seed: int, special: bool, bound: int
) -> dict[int, tuple[TileArray, TileArray]]:
    """Which tiles of B and of A were zero in one execution, by site."""
    (kernel,) = kernels_of(module)
    program = decode(module, kernel)
    source = np.random.default_rng(seed)
    arguments = [*tensors(recipe, source, special), bound, _SCALE]
    machine = Interpreter(program, recipe.threads, arguments, source)
    machine.run()
    found: dict[int, tuple[TileArray, TileArray]] = {}
    for site in sites_of(module):
        grid, runs = grid_of(site), machine.runs.get(site.index, [])
        assert not isinstance(grid, str), grid
        m, n, k = grid.extents
        b = fold(runs, grid, lambda one: one.b_offset, lambda one: one.b_zero != 0, grid.b, (n, k))
        a = fold(runs, grid, lambda one: one.a_offset, lambda one: one.a_zero != 0, grid.a, (m, k))
        assert not isinstance(a, str), a
        assert not isinstance(b, str), b
        found[site.index] = (b, a)
    return found


def _refuted(
    recipe: Recipe,
    mode: str,
    claims: dict[int, SiteZeros],
    executed: dict[int, tuple[TileArray, TileArray]],
) -> list[str]:
    found = list[str]()
    for index, (b, a) in executed.items():
        pairs = (("B", claims[index].b_zero, b), ("A", claims[index].a_zero, a))
        for operand, claimed, seen in pairs:
            if claimed.size and (claimed & ~seen).any():
                tiles = np.argwhere(claimed & ~seen).tolist()
                found.append(f"{mode}, gemm {index}, operand {operand}, tiles {tiles}: {recipe}")
    return found


def _count(recipe: Recipe, free: SiteZeros, strict: SiteZeros, outcome: Outcome) -> None:
    claimed = free.b_zero if recipe.operand == "b" else free.a_zero
    strictly = strict.b_zero if recipe.operand == "b" else strict.a_zero
    constructed = zero_tiles(recipe)
    if claimed.shape != constructed.shape:
        claimed = np.zeros(constructed.shape, bool)
    outcome.claimed += int(claimed.sum())
    outcome.claimed_strictly += int(strictly.sum())
    outcome.constructed += int(constructed.sum())
    outcome.found += int((claimed & constructed).sum())
    lost = int((constructed & ~claimed).sum())
    if lost:
        key = f"{recipe.mask}, {recipe.trouble}, operand {recipe.operand}"
        outcome.missed[key] = outcome.missed.get(key, 0) + lost
