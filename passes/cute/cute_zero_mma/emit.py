"""Replacing a gemm by its remaining atoms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilepass.ir.build import Builder
from tilepass.ir.cute import SEGMENTS
from tilepass.ir.engine import ir
from tilepass.passes.cute.cute_zero_mma.fragments import Fragment
from tilepass.passes.cute.cute_zero_mma.orders import Atom
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite


def emit_atoms(site: GemmSite, atoms: Sequence[Atom]) -> None:
    """Replace a gemm by one gemm per atom (m, n, k), in the order given.

    The accumulator is read and written in place: tiles without an atom keep what they hold.
    """
    builder = Builder.before(site.operation)
    mma = site.operation.operands[0]
    attributes = {SEGMENTS: site.operation.attributes[SEGMENTS]}
    left, right, sums = (_views(builder, f) for f in (site.a, site.b, site.accumulator))
    for m, n, k in atoms:
        total = sums(m, n)
        builder.create("cute.gemm", [mma, total, left(m, k), right(n, k), total], (), attributes)
    site.operation.erase()


def _views(builder: Builder, fragment: Fragment) -> Callable[[int, int], ir.Value]:
    """Views of a fragment's tiles, each made when it is first asked for."""
    made: dict[tuple[int, int], ir.Value] = {}

    def tile(outer: int, inner: int) -> ir.Value:
        if (outer, inner) not in made:
            made[outer, inner] = fragment.tile(builder, outer, inner)
        return made[outer, inner]

    return tile
