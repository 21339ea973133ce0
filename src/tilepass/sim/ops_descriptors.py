"""`tt`: tensor descriptors, made in the kernel or given by the host."""

from __future__ import annotations

import numpy as np

from tilepass.sim.descriptors import Descriptor, reduction
from tilepass.sim.poison import Poison, require_defined
from tilepass.sim.site import Site, operation
from tilepass.sim.state import Frame, Step

PAD_WITH_NAN = 2


def coordinates(frame: Frame, slots: tuple[int, ...]) -> tuple[int, ...]:
    """The coordinates in these slots; poison is reported."""
    return tuple(require_defined(frame[slot], "a coordinate") for slot in slots)


@operation("tt.make_tensor_descriptor")
def make(site: Site) -> Step:
    rank = len(site.result_type.shape)
    base, *rest = site.operands
    sizes, steps = tuple(rest[:rank]), tuple(rest[rank : 2 * rank])
    element, result = site.element, site.result
    fill = float("nan") if site.integer("padding", 1) == PAD_WITH_NAN else 0.0

    def step(frame: Frame) -> None:
        shape, strides = coordinates(frame, sizes), coordinates(frame, steps)
        address = require_defined(frame[base], "the address of a descriptor")
        frame[result] = Descriptor(address, shape, strides, element, fill)

    return step


@operation("tt.descriptor_load")
def load(site: Site) -> Step:
    descriptor, *slots = site.operands
    at, block = tuple(slots), site.operand_types[0].shape
    shape, result = site.result_type.shape, site.result

    def step(frame: Frame) -> None:
        state = frame[0]
        where = coordinates(frame, at)
        values = frame[descriptor].load(state.memory, state.effects, where, block)
        frame[result] = values.reshape(shape)

    return step


@operation("tt.descriptor_store")
def store(site: Site) -> Step:
    descriptor, source, *slots = site.operands
    at, block = tuple(slots), site.operand_types[0].shape

    def step(frame: Frame) -> None:
        state, values = frame[0], frame[source]
        if type(values) is Poison or values.shape != block:
            values = require_defined(values, "a stored value").reshape(block)
        frame[descriptor].store(state.memory, state.effects, coordinates(frame, at), values)

    return step


@operation("tt.descriptor_reduce")
def reduce(site: Site) -> Step:
    descriptor, source, *slots = site.operands
    at, block = tuple(slots), site.operand_types[0].shape
    combine = reduction(site.integer("kind"))

    def step(frame: Frame) -> None:
        state = frame[0]
        values = require_defined(frame[source], "a stored value").reshape(block)
        where = coordinates(frame, at)
        frame[descriptor].update(state.memory, state.effects, where, values, combine)

    return step


@operation("tt.descriptor_gather")
def gather(site: Site) -> Step:
    descriptor, rows, column = site.operands
    width, result = site.result_type.shape[1], site.result

    def step(frame: Frame) -> None:
        state = frame[0]
        indices = np.asarray(require_defined(frame[rows], "row indices"))
        (at,) = coordinates(frame, (column,))
        frame[result] = frame[descriptor].load_rows(state.memory, state.effects, indices, at, width)

    return step


@operation("tt.descriptor_scatter")
def scatter(site: Site) -> Step:
    descriptor, rows, column, source = site.operands

    def step(frame: Frame) -> None:
        state = frame[0]
        indices = np.asarray(require_defined(frame[rows], "row indices"))
        (at,) = coordinates(frame, (column,))
        frame[descriptor].store_rows(state.memory, state.effects, indices, at, frame[source])

    return step
