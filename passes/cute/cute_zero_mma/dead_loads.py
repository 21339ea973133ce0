"""Loads into fragments that no remaining atom reads are left out.

One `cute.copy` fills a fragment by many executions of its copy atom: an `ldmatrix` of four 8 x 8
matrices brings two tiles of B. Those whose every element nobody reads are not executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilepass.core.diagnostics import SourceLocation
from tilepass.ir.build import Builder
from tilepass.ir.cute import SEGMENTS, build, view_at
from tilepass.ir.engine import Operation, location_of
from tilepass.passes.cute.cute_zero_mma.fills import Fill, fill_of
from tilepass.passes.cute.cute_zero_mma.register_reads import allocation_of, uses_of
from tilepass.passes.cute.cute_zero_mma.sites import GemmSite
from tilepass.passes.cute.cute_zero_mma.zero_tiles import ZeroTiles, remaining

# Operands of `cute.gemm`.
_A, _B = 2, 3


def drop_dead_loads(
    rewritten: Sequence[tuple[GemmSite, ZeroTiles]],
) -> Iterator[tuple[SourceLocation | None, str]]:
    """Leave out the loads of what only skipped atoms read, and say where and for which gemm.

    To be called before the gemms, each with its zero tiles, are replaced.
    """
    read = {
        (site.index, number): frozenset(_offsets_read(site, zeros, number))
        for site, zeros in rewritten
        for number, fragment in ((_A, site.a), (_B, site.b))
        if fragment.is_dense
    }
    sites = [site for site, _ in rewritten]

    def known(operation: Operation, number: int) -> frozenset[int] | None:
        index = next((site.index for site in sites if site.operation == operation), None)
        return None if index is None else read.get((index, number))

    for site, name, allocation in _allocations(sites):
        uses = uses_of(allocation, known)
        if uses.opaque:
            continue
        for operation, begin in uses.fills:
            fill = fill_of(operation)
            if fill is None:
                continue
            needed = fill.needed({offset - begin for offset in uses.read})
            count = len(fill.source.starts)
            if len(needed) < count:
                place, dead = location_of(operation), count - len(needed)
                _split(fill, needed)
                yield (
                    place,
                    f"{site}: {dead} of {count} loads of {name} left out: no atom reads them",
                )


def _allocations(sites: Sequence[GemmSite]) -> Iterator[tuple[GemmSite, str, Operation]]:
    """What allocates the operands of gemms, each once, with a gemm and the operand's name."""
    seen: list[Operation] = []
    for site in sites:
        for name, fragment in (("A", site.a), ("B", site.b)):
            allocation = allocation_of(fragment.value)
            if allocation is not None and allocation not in seen:
                seen.append(allocation)
                yield site, name, allocation


def _offsets_read(site: GemmSite, zeros: ZeroTiles, number: int) -> Iterator[int]:
    """What the remaining atoms read of operand A or B."""
    for m, n, k in remaining(zeros, site.grid):
        yield from site.a.offsets(m, k) if number == _A else site.b.offsets(n, k)


def _split(fill: Fill, needed: Sequence[int]) -> None:
    """Replace a copy by one copy for each execution that is needed."""
    builder = Builder.before(fill.operation)
    atom, *tensors = fill.operation.operands
    segments = fill.operation.attributes[SEGMENTS]
    sides = list(zip(tensors, (fill.source, fill.destination), strict=True))
    begins = [
        build(builder, "cute.get_iter", [value], side.tensor.pointer) for value, side in sides
    ]
    for index in needed:
        parts = [
            view_at(builder, begin, side.tensor, side.starts[index], side.one)
            for begin, (_, side) in zip(begins, sides, strict=True)
        ]
        builder.create("cute.copy", [atom, *parts], (), {SEGMENTS: segments})
    fill.operation.erase()
