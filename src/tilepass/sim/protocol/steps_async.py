"""Barriers, fences, asynchronous copies and waits."""

from __future__ import annotations

import math
from collections.abc import Callable

from tilepass.ir.shared_memory import tma_alignment
from tilepass.sim.elements import ValueType
from tilepass.sim.faults import MemoryMisuse
from tilepass.sim.protocol.events import Kind
from tilepass.sim.protocol.makers import (
    MAKERS,
    TENSOR,
    Make,
    buffers,
    condition,
    enter,
    holds,
    memdesc_in,
    place_of,
    view_in,
)
from tilepass.sim.site import Site
from tilepass.sim.state import Frame, Step


def _on_barrier(kind: Kind, amount: str | None = None) -> Make:
    def make(site: Site) -> Step:
        place, barrier = place_of(site), site.operands[0]
        count = site.integer(amount) if amount else 0
        predicate = condition(site)

        def step(frame: Frame) -> None:
            if holds(frame, predicate):
                frame[0].add(kind, place, (), view_in(frame, barrier).touch(), count)

        return step

    return make


MAKERS["ttng.init_barrier"] = _on_barrier(Kind.INIT, "count")
MAKERS["ttng.inval_barrier"] = _on_barrier(Kind.INVALIDATE)
MAKERS["ttng.barrier_expect"] = _on_barrier(Kind.EXPECT, "size")
MAKERS["ttng.arrive_barrier"] = _on_barrier(Kind.ARRIVE, "count")


@enter("ttng.wait_barrier")
def _wait(site: Site) -> Step:
    barrier, phase = site.operands[:2]
    predicate, place = condition(site), place_of(site)

    def step(frame: Frame) -> None:
        if holds(frame, predicate):
            parity = frame[phase].__index__() & 1
            frame[0].add(Kind.WAIT, place, (), view_in(frame, barrier).touch(), parity)

    return step


@enter("ttng.async_tma_copy_global_to_local", "ttng.async_tma_gather")
def _tma_load(site: Site) -> Step:
    barrier, buffer = buffers(site)[:2]
    predicate = condition(site)
    place, type_ = place_of(site), site.type_of(buffer)
    size = math.prod(type_.shape) * type_.of.size
    check_box, alignment = _box_check(site, type_), _alignment(type_)

    def step(frame: Frame) -> None:
        if holds(frame, predicate):
            check_box()
            target = view_in(frame, buffer).touch_by_tma(alignment)
            at = view_in(frame, barrier).touch()
            frame[0].add(Kind.LOAD, place, [target], at, size)

    return step


@enter("ttng.async_tma_copy_local_to_global", "ttng.async_tma_reduce", "ttng.async_tma_scatter")
def _tma_store(site: Site) -> Step:
    place, buffer = place_of(site), site.operands[-1]
    type_ = site.operand_types[-1]
    check_box, alignment = _box_check(site, type_), _alignment(type_)

    def step(frame: Frame) -> None:
        check_box()
        frame[0].add(Kind.STORE, place, [view_in(frame, buffer).touch_by_tma(alignment)])

    return step


def _box_check(site: Site, buffer: ValueType) -> Callable[[], None]:
    """What raises MemoryMisuse where a descriptor's block is not as large as the buffer. Rows that
    are gathered or scattered have a descriptor of one row."""
    box = site.operand_types[0]
    by_rows = site.name.endswith(("gather", "scatter"))
    fits = by_rows or math.prod(box.shape) == math.prod(buffer.shape)

    def check() -> None:
        if not fits:
            raise MemoryMisuse(
                f"a box of {_shaped(box)} does not fit a buffer of {_shaped(buffer)}"
            )

    return check


def _alignment(buffer: ValueType) -> int:
    return tma_alignment(memdesc_in(buffer).encoding)


def _shaped(type_: ValueType) -> str:
    return "x".join(map(str, type_.shape))


def _counting(kind: Kind, attribute: str | None = None) -> Make:
    def make(site: Site) -> Step:
        place, amount = place_of(site), site.integer(attribute) if attribute else 0
        results = site.results

        def step(frame: Frame) -> None:
            frame[0].add(kind, place, amount=amount)
            for slot in results:
                frame[slot] = TENSOR

        return step

    return make


MAKERS["ttng.async_tma_store_wait"] = _counting(Kind.STORE_WAIT, "pendings")
MAKERS["ttg.async_commit_group"] = _counting(Kind.COMMIT)
MAKERS["ttg.async_wait"] = _counting(Kind.COPY_WAIT, "num")
MAKERS["ttng.fence_async_shared"] = _counting(Kind.FENCE)


@enter("ttg.async_copy_global_to_local")
def _async_copy(site: Site) -> Step:
    place, (buffer,), result = place_of(site), buffers(site), site.result

    def step(frame: Frame) -> None:
        frame[0].add(Kind.COPY, place, [view_in(frame, buffer).touch()])
        frame[result] = TENSOR

    return step
