"""`tt`: operations that move elements or say where the program is."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilepass.sim.poison import (
    Function,
    Poison,
    first_poison,
    mask_of,
    movement,
    values_of,
    where,
    with_poison,
)
from tilepass.sim.site import Site, operation
from tilepass.sim.state import Frame, Step


def _shape(site: Site) -> tuple[int, ...]:
    return site.result_type.shape


@operation("tt.get_program_id")
def program_id(site: Site) -> Step:
    axis, result = site.integer("axis"), site.result

    def step(frame: Frame) -> None:
        frame[result] = frame[0].program[axis]

    return step


@operation("tt.get_num_programs")
def num_programs(site: Site) -> Step:
    axis, result = site.integer("axis"), site.result

    def step(frame: Frame) -> None:
        frame[result] = frame[0].grid[axis]

    return step


@operation("tt.make_range")
def make_range(site: Site) -> Step:
    values = np.arange(site.integer("start"), site.integer("end"), dtype=np.int32)
    result = site.result

    def step(frame: Frame) -> None:
        frame[result] = values

    return step


@operation("tt.splat")
def splat(site: Site) -> Step:
    shape, dtype = _shape(site), site.element.dtype

    def fill(value: Any) -> Any:
        return value if type(value) is Poison else np.full(shape, value, dtype)

    return site.compute(fill)


@operation("tt.unsplat")
def unsplat(site: Site) -> Step:
    element = site.element
    return site.compute(movement(lambda tensor: element.scalar(tensor.flat[0].item())))


def _moving(site: Site, function: Function) -> Step:
    return site.compute(movement(function))


@operation("tt.broadcast")
def broadcast(site: Site) -> Step:
    shape = _shape(site)
    return _moving(site, lambda tensor: np.broadcast_to(tensor, shape))


@operation("tt.expand_dims")
def expand_dims(site: Site) -> Step:
    axis = site.integer("axis")
    return _moving(site, lambda tensor: np.expand_dims(tensor, axis))


@operation("tt.reshape")
def reshape(site: Site) -> Step:
    """In row-major order, also with `allow_reorder`, which leaves the order open."""
    shape = _shape(site)
    return _moving(site, lambda tensor: tensor.reshape(shape))


@operation("tt.trans")
def transpose(site: Site) -> Step:
    order = site.integers("order")
    return _moving(site, lambda tensor: np.transpose(tensor, order))


@operation("tt.cat")
def concatenate(site: Site) -> Step:
    """One after the other; the order of the result is open in Triton."""
    return _moving(site, lambda a, b: np.concatenate((a, b)))


@operation("tt.join")
def join(site: Site) -> Step:
    return _moving(site, lambda a, b: np.stack((a, b), axis=-1))


@operation("tt.split")
def split(site: Site) -> Step:
    (source,), (left, right) = site.operands, site.results
    halves = movement(lambda tensor: (tensor[..., 0], tensor[..., 1]))

    def step(frame: Frame) -> None:
        found = halves(frame[source])
        frame[left], frame[right] = (found, found) if type(found) is Poison else found

    return step


@operation("tt.gather")
def gather(site: Site) -> Step:
    """An index outside the source gives poison."""
    axis = site.integer("axis")
    extent = site.operand_types[0].shape[axis]

    def take(source: Any, indices: Any) -> Any:
        if type(source) is Poison or type(indices) is Poison:
            return first_poison([source, indices])
        places = values_of(indices)
        wrong = mask_of(indices) | (places < 0) | (places >= extent)
        safe = where(wrong, 0, places).astype(np.int64)
        wrong = wrong | np.take_along_axis(mask_of(source), safe, axis)
        found = np.take_along_axis(values_of(source), safe, axis)
        special = first_poison([source, indices])
        return with_poison(found, wrong, special.cause if special else "an index outside")

    return site.compute(take)


@operation("ttg.convert_layout", "amdg.in_thread_transpose")
def convert_layout(site: Site) -> Step:
    """Layouts do not change values; the shape and the elements must stay."""
    before, after = site.operand_types[0], site.result_type
    if before.shape != after.shape or before.element != after.element:
        raise site.refuse(f"a conversion from {before} to {after}")
    return site.compute(lambda value: value)
