"""Asynchronous dots, and partitions."""

from __future__ import annotations

from tilepass.sim.protocol.events import Kind, Thread
from tilepass.sim.protocol.findings import Race
from tilepass.sim.protocol.makers import TENSOR, Unfinished, enter, place_of, require_finished
from tilepass.sim.protocol.recorder import Recorder
from tilepass.sim.protocol.views import View
from tilepass.sim.site import Site
from tilepass.sim.state import Frame, Step


@enter("ttng.warp_group_dot")
def _dot(site: Site) -> Step:
    """The accumulator is not looked at: a dot may add to what the last one has not finished."""
    place, (a, b), result = place_of(site), site.operands[:2], site.result
    waited = not site.flag("isAsync")

    def step(frame: Frame) -> None:
        recorder: Recorder = frame[0]
        require_finished(frame, frame[a])
        views = [value for value in (frame[a], frame[b]) if isinstance(value, View)]
        recorder.add(Kind.DOT, place, [view.touch() for view in views])
        recorder.issued += 1
        frame[result] = TENSOR if waited else Unfinished(recorder.issued)
        if not isinstance(frame[a], View):
            recorder.registers[recorder.issued] = place
        if waited:
            recorder.add(Kind.DOT_WAIT, place)
            recorder.finish_dots(0)

    return step


@enter("ttng.warp_group_dot_wait")
def _dot_wait(site: Site) -> Step:
    place, pendings = place_of(site), site.integer("pendings")
    pairs = list(zip(site.operands, site.results, strict=True))

    def step(frame: Frame) -> None:
        recorder: Recorder = frame[0]
        recorder.add(Kind.DOT_WAIT, place, amount=pendings)
        recorder.finish_dots(pendings)
        for source, result in pairs:
            frame[result] = frame[source]

    return step


def writing_registers(step: Step) -> Step:
    """The step of an operation that may be given the registers of an earlier dot's operand."""

    def checked(frame: Frame) -> None:
        if registers := frame[0].registers:
            dot = next(iter(registers.values()))
            raise Race(f"writes registers that {dot} may still read: it is not waited for")
        step(frame)

    return checked


@enter("ttg.warp_specialize")
def _warp_specialize(site: Site) -> Step:
    default, place = site.body(0), place_of(site)
    holder = site.operation.regions[1].blocks[0].operations[0].operation
    compiler, results = site.compiler, site.results
    # Since Triton 3.7 the captures are operands of the inner operation.
    captured = tuple(compiler.slot(value) for value in holder.operands) or site.operands
    partitions = [compiler.region(region, False) for region in holder.regions]

    def step(frame: Frame) -> None:
        recorder: Recorder = frame[0]
        values = [frame[slot] for slot in captured]
        threads = _new_threads(recorder, len(partitions))
        recorder.add(Kind.FORK, place, threads=threads)
        for thread, body in zip(threads, partitions, strict=True):
            with recorder.partition(thread):
                body.enter(frame, values)
        handed = default.run(frame)
        recorder.add(Kind.JOIN, place, threads=threads)
        for slot, value in zip(results, handed, strict=True):
            frame[slot] = value

    return step


def _new_threads(recorder: Recorder, count: int) -> tuple[int, ...]:
    first = len(recorder.threads)
    recorder.threads.extend(Thread(f"partition {n}") for n in range(count))
    return tuple(range(first, first + count))
