"""The tile loop as each partition runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilepass.analysis.trip_count import counts_unsigned
from tilepass.ir.build import Predicate
from tilepass.ir.build_async import AsyncBuilder
from tilepass.ir.engine import ir, plain
from tilepass.ir.loops import Loop
from tilepass.passes.triton.epilogue_warp_specialize.clones import Clones
from tilepass.passes.triton.epilogue_warp_specialize.description import PersistentNest

_UNSIGNED = "unsignedCmp"


@dataclass(frozen=True)
class Tile:
    """One trip of a partition's tile loop: where it is built, its values, what it carries."""

    builder: AsyncBuilder
    clones: Clones
    state: tuple[ir.Value, ...]


@dataclass(frozen=True)
class TileRange:
    """Which tiles a partition computes, where it is not all of the program's."""

    lower_bound: ir.Value
    step: ir.Value


def build_tile_loop(
    nest: PersistentNest,
    builder: AsyncBuilder,
    state: Sequence[ir.Value],
    build: Callable[[Tile], Sequence[ir.Value]],
    tiles: TileRange | None = None,
) -> list[ir.Value]:
    """A tile loop that carries `state` beside what the source's carries; returns it at the end.

    `build` fills a trip, copies of all that the source's loop yields included, and returns the
    state of the next.
    """
    outer = nest.outer
    lower = tiles.lower_bound if tiles else outer.lower_bound
    step = tiles.step if tiles else outer.step
    carried = [each.initial for each in outer.carried]
    loop = builder.loop(lower, outer.upper_bound, step, [*state, *carried], comparison_of(outer))
    arguments = [plain(argument) for argument in loop.body.arguments]
    clones = Clones()
    clones[outer.induction_variable] = arguments[0]
    for source, argument in zip(outer.carried, arguments[1 + len(state) :], strict=True):
        clones[source.argument] = argument
    inside = builder.inside(loop.body)
    after = build(Tile(inside, clones, tuple(arguments[1 : 1 + len(state)])))
    inside.yield_([*after, *clones.of(each.yielded for each in outer.carried)])
    return [plain(result) for result in list(loop.operation.results)[: len(state)]]


def less_than(loop: Loop) -> Predicate:
    """The predicate of `arith.cmpi` that says whether a loop has another trip."""
    return "ult" if counts_unsigned(loop) else "slt"


def comparison_of(loop: Loop) -> dict[str, ir.Attribute | str]:
    """The attribute of a copy of a loop that says how its bounds compare; no others are kept.

    `tt.flatten` and `tt.warp_specialize` have been taken care of, and `tt.num_stages` is for loads
    that the copies do not have.
    """
    attribute = loop.attribute(_UNSIGNED)
    return {} if attribute is None else {_UNSIGNED: attribute}
