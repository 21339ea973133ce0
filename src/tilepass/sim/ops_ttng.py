"""`ttng`: mbarriers, TMA, and the asynchronous matrix units of Hopper and Blackwell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilepass.sim import matrix
from tilepass.sim.descriptors import Descriptor, reduction
from tilepass.sim.ops_descriptors import coordinates
from tilepass.sim.ops_ttg import any_view, waiting
from tilepass.sim.poison import require_defined
from tilepass.sim.site import Site, operation
from tilepass.sim.state import POINT, Blocked, Frame, Step, Suspending, Task

Act = Callable[[Frame], None]


def acting(act: Act, predicate: int | None = None) -> Suspending:
    """A step with one effect, left out where the predicate is false."""

    def task(frame: Frame) -> Task:
        yield POINT
        if predicate is None or frame[predicate]:
            act(frame)

    return Suspending(task)


@operation("ttng.init_barrier")
def init_barrier(site: Site) -> Suspending:
    (barrier,), count = site.operands, site.integer("count")
    return acting(lambda frame: frame[0].effects.init_barrier(frame[barrier], count))


@operation("ttng.inval_barrier")
def inval_barrier(site: Site) -> Suspending:
    (barrier,) = site.operands
    return acting(lambda frame: frame[0].effects.drop_barrier(frame[barrier]))


@operation("ttng.barrier_expect")
def barrier_expect(site: Site) -> Suspending:
    (barrier, predicate), size = site.operands, site.integer("size")
    return acting(lambda frame: frame[0].effects.expect(frame[barrier], size), predicate)


@operation("ttng.arrive_barrier")
def arrive_barrier(site: Site) -> Suspending:
    barrier, *predicate = site.operands
    count = site.integer("count")
    return acting(lambda frame: frame[0].effects.arrive(frame[barrier], count), *predicate)


@operation("ttng.wait_barrier")
def wait_barrier(site: Site) -> Suspending:
    (barrier,), (phase,) = site.groups[:2]
    predicate = site.optional(2)

    def task(frame: Frame) -> Task:
        yield POINT
        if predicate is not None and not frame[predicate]:
            return
        effects, view = frame[0].effects, frame[barrier]
        parity = frame[phase].__index__() & 1
        effects.barrier(view)
        yield Blocked(lambda: effects.passed(view, parity), f"parity {parity} of barrier {view}")

    return Suspending(task)


@operation("ttng.fence_async_shared", "ttng.fence_mbarrier_init_release_cluster",
           "ttng.cluster_barrier", "ttng.cluster_arrive", "ttng.cluster_wait",
           "ttng.tensormap_fenceproxy_acquire", "ttng.fence", "ttng.tmem_wait")  # fmt: skip
def fence(site: Site) -> Suspending:
    name = site.name
    return acting(lambda frame: frame[0].effects.fence(name))


@operation("ttng.async_tma_store_wait")
def store_wait(site: Site) -> Suspending:
    return Suspending(waiting("tma_store", site.integer("pendings")))


@operation("ttng.async_tma_copy_global_to_local")
def tma_load(site: Site) -> Suspending:
    descriptor, *rest = site.operands
    if site.attribute("operandSegmentSizes") is not None and site.groups[2]:
        raise site.refuse("im2col offsets")
    count = [type_.form for type_ in site.operand_types].index("memdesc") - 1
    slots, (barrier, buffer, predicate) = tuple(rest[:count]), rest[count : count + 3]
    type_ = site.operand_types[0]
    size, block = _bytes(type_.shape, type_.of.size), type_.shape

    def act(frame: Frame) -> None:
        state, source, where = frame[0], frame[descriptor], coordinates(frame, slots)
        view = frame[buffer]

        def fetch() -> Any:
            loaded = source.load(state.memory, state.effects, where, block)
            return loaded.reshape(view.shape)

        state.effects.copy_in(fetch, view, frame[barrier], size)

    return acting(act, predicate)


def _bytes(shape: tuple[int, ...], element_size: int) -> int:
    return int(np.prod(shape)) * element_size


@operation("ttng.async_tma_copy_local_to_global", "ttng.async_tma_reduce")
def tma_store(site: Site) -> Suspending:
    descriptor, *rest = site.operands
    rank, block = len(site.operand_types[0].shape), site.operand_types[0].shape
    slots, buffer = tuple(rest[:rank]), rest[rank]
    combine = reduction(site.integer("kind")) if site.name == "ttng.async_tma_reduce" else None

    def act(frame: Frame) -> None:
        state, target, where = frame[0], frame[descriptor], coordinates(frame, slots)

        def deliver(values: Any) -> None:
            if values.shape != block:
                values = require_defined(values, "a stored value").reshape(block)
            if combine is None:
                target.store(state.memory, state.effects, where, values)
            else:
                target.update(state.memory, state.effects, where, values, combine)

        state.effects.copy_out(frame[buffer], deliver)
        state.effects.group("tma_store")

    return acting(act)


@operation("ttng.async_tma_gather")
def tma_gather(site: Site) -> Suspending:
    descriptor, rows, column, barrier, buffer, predicate = site.operands
    type_ = site.operand_types[4]
    size, width = _bytes(type_.shape, type_.of.size), type_.shape[-1]

    def act(frame: Frame) -> None:
        state, source = frame[0], frame[descriptor]
        indices = np.asarray(require_defined(frame[rows], "row indices"))
        (at,) = coordinates(frame, (column,))
        state.effects.copy_in(
            lambda: source.load_rows(state.memory, state.effects, indices, at, width),
            frame[buffer], frame[barrier], size,
        )  # fmt: skip

    return acting(act, predicate)


@operation("ttng.async_tma_scatter")
def tma_scatter(site: Site) -> Suspending:
    descriptor, rows, column, buffer = site.operands

    def act(frame: Frame) -> None:
        state, target = frame[0], frame[descriptor]
        indices = np.asarray(require_defined(frame[rows], "row indices"))
        (at,) = coordinates(frame, (column,))

        def deliver(values: Any) -> None:
            target.store_rows(state.memory, state.effects, indices, at, values)

        state.effects.copy_out(frame[buffer], deliver)
        state.effects.group("tma_store")

    return acting(act)


@operation("ttng.tensormap_create")
def tensormap_create(site: Site) -> Step:
    """Sizes and strides (bytes, all but the innermost) come from the innermost dimension on."""
    (address,), (base,), _, sizes, strides = site.groups[:5]  # fmt: skip
    return _create(address, base, tuple(sizes), tuple(strides))


def _create(address: int, base: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Step:
    def step(frame: Frame) -> None:
        shape = coordinates(frame, sizes)[::-1]
        steps = coordinates(frame, strides)[::-1]
        where = require_defined(frame[address], "the address of a tensor map")
        start = require_defined(frame[base], "the address of a descriptor")
        frame[0].descriptors[where] = (start, shape, steps)

    return step


@operation("ttng.reinterpret_tensor_descriptor")
def reinterpret(site: Site) -> Step:
    element = site.element
    operand, result = site.operands[0], site.result

    def step(frame: Frame) -> None:
        where = require_defined(frame[operand], "the address of a tensor map")
        base, shape, steps = frame[0].descriptors[where]
        strides = (*(step // element.size for step in steps), 1)
        frame[result] = Descriptor(base, shape, strides, element)

    return step


@operation("ttng.warp_group_dot")
def warp_group_dot(site: Site) -> Suspending:
    """Reads its operands when it begins; the accumulator counts as zero if `useC` is false."""
    a, b, accumulator, *rest = site.operands
    precision, element = site.integer("inputPrecision", 2), site.element
    result, shape = site.result, site.result_type.shape
    use = rest[0] if rest else None

    def act(frame: Frame) -> None:
        left, right = _operand(frame, a), _operand(frame, b)
        zero = use is not None and not frame[use]
        start = np.zeros(shape, element.dtype) if zero else frame[accumulator]
        frame[result] = matrix.dot(left, right, start, precision, element)
        frame[0].effects.group("dot")

    return acting(act)


def _operand(frame: Frame, slot: int) -> Any:
    value = frame[slot]
    return frame[0].effects.read(value, "async") if any_view(value) else value


@operation("ttng.warp_group_dot_wait")
def warp_group_dot_wait(site: Site) -> Suspending:
    wait, operands, results = waiting("dot", site.integer("pendings")), site.operands, site.results

    def task(frame: Frame) -> Task:
        yield from wait(frame)
        for slot, source in zip(results, operands, strict=True):
            frame[slot] = frame[source]

    return Suspending(task)
