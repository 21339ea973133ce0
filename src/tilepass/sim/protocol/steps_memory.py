"""Shared memory and its views."""

from __future__ import annotations

from collections.abc import Callable

from tilepass.ir.shared_memory import allocation_alignment, part_offset, slot_bytes
from tilepass.sim.protocol.events import Kind, Memory, Place
from tilepass.sim.protocol.makers import (
    MAKERS,
    TENSOR,
    Make,
    enter,
    memdesc_in,
    place_of,
    require_finished,
    view_in,
)
from tilepass.sim.protocol.recorder import Recorder
from tilepass.sim.protocol.views import View
from tilepass.sim.site import Site
from tilepass.sim.state import Frame, Step

NameOf = Callable[[Place], str | None]


def allocate(site: Site, name_of: NameOf) -> Step:
    """The step of `ttg.local_alloc`; `name_of` names the allocation at a place."""
    type_, place, result = site.result_type, place_of(site), site.result
    name = name_of(place)
    source = site.operands[0] if site.operands else None
    alignment = site.integer(
        "alignment", allocation_alignment(memdesc_in(site.result_type).encoding)
    )
    key = object()

    def step(frame: Frame) -> None:
        recorder: Recorder = frame[0]
        memory = recorder.memories.get(key)
        if memory is None:
            label = name or f"smem{len(recorder.memories)}"
            memory = Memory(label, type_.shape, str(type_.of), place, alignment)
            recorder.memories[key] = memory
        view = frame[result] = View.whole(memory)
        recorder.add(Kind.ALLOCATE, place, [view.region])
        if source is not None:
            recorder.add(Kind.WRITE, place, [view.region])

    return step


def _accessing(kind: Kind, operand: int, result: bool) -> Make:
    def make(site: Site) -> Step:
        place, slot = place_of(site), site.operands[operand]
        stored = site.operands[0] if operand else None
        results = site.results

        def step(frame: Frame) -> None:
            if stored is not None:
                require_finished(frame, frame[stored])
            frame[0].add(kind, place, [view_in(frame, slot).touch()])
            if result:
                frame[results[0]] = TENSOR

        return step

    return make


MAKERS["ttg.local_dealloc"] = _accessing(Kind.FREE, 0, False)
MAKERS["ttg.local_load"] = _accessing(Kind.READ, 0, True)
MAKERS["ttg.local_store"] = _accessing(Kind.WRITE, 1, False)


@enter("ttg.memdesc_index")
def _index(site: Site) -> Step:
    size = slot_bytes(memdesc_in(site.operand_types[0]))
    return site.compute(lambda view, at: view.index(at.__index__(), size))


@enter("ttg.memdesc_trans")
def _transposed(site: Site) -> Step:
    order = site.integers("order")
    return site.compute(lambda view: view.transposed(order))


@enter("ttg.memdesc_subslice")
def _window(site: Site) -> Step:
    offsets, shape = site.integers("offsets"), site.result_type.shape
    begin = part_offset(memdesc_in(site.operand_types[0]), offsets)
    return site.compute(lambda view: view.window(offsets, shape, begin))


@enter("ttg.memdesc_reshape", "ttg.memdesc_reinterpret")
def _reshaped(site: Site) -> Step:
    return site.compute(lambda view: view.reshaped())
