"""`ttg`: shared memory, its views, asynchronous copies, and warp specialization."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilepass.ir import engine
from tilepass.sim.coverage import Spot
from tilepass.sim.faults import MemoryMisuse
from tilepass.sim.ops_tt_memory import pointee
from tilepass.sim.scattered import gather
from tilepass.sim.shared import Allocation, View
from tilepass.sim.site import Site, operation
from tilepass.sim.state import POINT, Blocked, Fork, Frame, Step, Suspending, Task

TOKEN = "token"
"""The value of every token: order is that of the program."""


@operation("ttg.local_alloc", "ttng.tmem_alloc")
def allocate(site: Site) -> Suspending:
    """Memory of the result's own shape; with an operand it begins with that value."""
    type_, element = site.result_types[0], site.result_types[0].of
    where = engine.location_of(site.operation)
    kind = "tensor memory" if site.name == "ttng.tmem_alloc" else "shared memory"
    name = f"{kind} allocated at {where.line}" if where else kind
    source = site.operands[0] if site.operands else None
    result, *tokens = site.results

    def task(frame: Frame) -> Task:
        frame[0].allocations += 1
        view = View.whole(Allocation(name, type_.shape, element))
        frame[result] = view
        for token in tokens:
            frame[token] = TOKEN
        if source is not None:
            yield POINT
            frame[0].effects.write(view, frame[source], "generic")

    return Suspending(task)


@operation("ttg.local_dealloc")
def free(site: Site) -> Suspending:
    (buffer,) = site.operands

    def task(frame: Frame) -> Task:
        yield POINT
        # Not required to be alive: Triton frees a buffer that two TMA stores share once for each.
        frame[buffer].allocation.alive = False

    return Suspending(task)


@operation("ttg.local_load")
def local_load(site: Site) -> Suspending:
    buffer, result = site.operands[0], site.result

    def task(frame: Frame) -> Task:
        yield POINT
        frame[result] = frame[0].effects.read(frame[buffer], "generic")

    return Suspending(task)


@operation("ttg.local_store")
def local_store(site: Site) -> Suspending:
    source, buffer = site.operands[:2]

    def task(frame: Frame) -> Task:
        yield POINT
        frame[0].effects.write(frame[buffer], frame[source], "generic")

    return Suspending(task)


def _viewing(site: Site, function: Callable[[View], View]) -> Step:
    shape = site.result_type.shape
    return site.compute(lambda view: _checked(function(view), shape))


def _checked(view: View, shape: tuple[int, ...]) -> View:
    if view.shape != shape:
        raise MemoryMisuse(f"gives a view of shape {view.shape}, its type says {shape}")
    return view


@operation("ttg.memdesc_index")
def index_view(site: Site) -> Step:
    buffer, position = site.operands
    shape, result = site.result_type.shape, site.result
    spot = ring(site)

    def step(frame: Frame) -> None:
        at = frame[position].__index__()
        if spot is not None:
            frame[0].coverage.slot(spot, at)
        frame[result] = _checked(frame[buffer].index(at), shape)

    return step


def ring(site: Site) -> Spot | None:
    """The ring whose slots an operation takes in turn: one for all that take the same one's."""
    size = site.operand_types[0].shape[0]
    if size == 1 or site.is_constant(1):
        return None
    rings = site.compiler.rings
    if site.operands[0] not in rings:
        rings[site.operands[0]] = site.spot(size)
    return rings[site.operands[0]]


@operation("ttg.memdesc_trans")
def transposed_view(site: Site) -> Step:
    order = site.integers("order")
    return _viewing(site, lambda view: view.transposed(order))


@operation("ttg.memdesc_subslice")
def window_view(site: Site) -> Step:
    offsets, shape = site.integers("offsets"), site.result_type.shape
    return _viewing(site, lambda view: view.window(offsets, shape))


@operation("ttng.tmem_subslice")
def columns_view(site: Site) -> Step:
    at, shape = site.integer("N"), site.result_type.shape
    return _viewing(site, lambda view: view.window((0,) * (len(shape) - 1) + (at,), shape))


@operation("ttg.memdesc_reshape")
def reshaped_view(site: Site) -> Step:
    shape = site.result_type.shape
    return _viewing(site, lambda view: view.reshaped(shape))


@operation("ttg.memdesc_reinterpret")
def reinterpreted_view(site: Site) -> Step:
    """Only of the same element type: bytes depend on the layout, which is not modelled."""
    before, after = site.operand_types[0], site.result_type
    if before.of != after.of or math.prod(before.shape) != math.prod(after.shape):
        raise site.refuse(f"a view of {before} as {after}")
    return _viewing(site, lambda view: view.reshaped(after.shape))


@operation("ttg.async_copy_global_to_local")
def async_copy(site: Site) -> Suspending:
    element, result = pointee(site), site.result
    (pointers,), (buffer,) = site.groups[:2]
    mask, other = site.optional(2), site.optional(3)

    def task(frame: Frame) -> Task:
        yield POINT
        chosen = None if mask is None else frame[mask]
        filler = None if other is None else frame[other]
        addresses = frame[pointers]
        frame[0].effects.copy_in(
            lambda: gather(frame, addresses, chosen, filler, element), frame[buffer], None, 0
        )
        frame[result] = TOKEN

    return Suspending(task)


@operation("ttg.async_commit_group")
def commit_group(site: Site) -> Suspending:
    result = site.result

    def task(frame: Frame) -> Task:
        yield POINT
        frame[0].effects.group("async_copy")
        frame[result] = TOKEN

    return Suspending(task)


@operation("ttg.async_wait")
def async_wait(site: Site) -> Suspending:
    results = site.results
    wait = waiting("async_copy", site.integer("num"))

    def task(frame: Frame) -> Task:
        yield from wait(frame)
        for slot in results:
            frame[slot] = TOKEN

    return Suspending(task)


def waiting(what: str, pending: int) -> Callable[[Frame], Task]:
    """A task that waits until at most `pending` groups of this kind are unfinished."""

    def task(frame: Frame) -> Task:
        effects = frame[0].effects
        yield POINT
        yield Blocked(lambda: effects.wait_group(what, pending), f"{what} groups, {pending} left")

    return task


@operation("ttg.global_scratch_alloc")
def scratch(site: Site) -> Step:
    size, result = site.integer("nbytes"), site.result

    def step(frame: Frame) -> None:
        frame[result] = frame[0].memory.allocate("scratch", size).base

    return step


@operation("ttg.warp_specialize")
def warp_specialize(site: Site) -> Suspending:
    """The default region and the partitions as separate tasks."""
    default, compiler, results = site.body(0), site.compiler, site.results
    holder = site.operation.regions[1].blocks[0].operations[0].operation
    # Since Triton 3.7 the captures are operands of the inner operation.
    captured = tuple(compiler.slot(value) for value in holder.operands) or site.operands
    partitions = [compiler.region(region, False) for region in holder.regions]
    names = ["the default partition", *(f"partition {n}" for n in range(len(partitions)))]

    def task(frame: Frame) -> Task:
        for body in partitions:
            for slot, source in zip(body.arguments, captured, strict=True):
                frame[slot] = frame[source]
        bodies = (default, *partitions)
        values, *_ = yield Fork(names, [body.resume(frame) for body in bodies])
        for slot, value in zip(results, values, strict=True):
            frame[slot] = value

    return Suspending(task)


@operation("ttg.warp_id")
def warp_id(site: Site) -> Step:
    """Threads run in step; what depends on the warp cannot be told apart."""
    raise site.refuse("code that depends on the warp")


def any_view(value: Any) -> bool:
    """Whether a value is a view of shared or tensor memory."""
    return isinstance(value, View)
