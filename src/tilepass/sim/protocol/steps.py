"""The steps of operations while recording: what their makers share, shared memory and its views,
barriers, fences, asynchronous copies and waits, dots and partitions, and all other operations.

Within a partition all is in program order: Triton's membar pass puts barriers between its warps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tilepass.ir import engine
from tilepass.ir.layouts import MemDescType
from tilepass.ir.shared_memory import allocation_alignment, part_offset, slot_bytes, tma_alignment
from tilepass.sim.elements import ValueType
from tilepass.sim.faults import MemoryMisuse
from tilepass.sim.poison import Poison
from tilepass.sim.protocol.events import Kind, Memory, Place, Thread
from tilepass.sim.protocol.findings import Race
from tilepass.sim.protocol.recorder import UNKNOWN, Recorder
from tilepass.sim.protocol.views import View
from tilepass.sim.site import OPERATIONS, CannotSimulate, Site
from tilepass.sim.state import Frame, Step, Suspending

TENSOR = Poison(UNKNOWN)
"""Every tensor, and every scalar that comes from one."""


@dataclass(frozen=True)
class Unfinished:
    """The result of an asynchronous dot, the `serial`-th of its partition."""

    serial: int


def require_finished(frame: Frame, value: object) -> None:
    """Raise MemoryMisuse for the result of a dot that was not waited for."""
    if type(value) is Unfinished and value.serial > frame[0].finished:
        raise MemoryMisuse("it reads the result of a dot that was not waited for")


Make = Callable[[Site], Step]
MAKERS: dict[str, Make] = {}


def enter(*names: str) -> Callable[[Make], Make]:
    """Enter a step maker for the operations of these names."""

    def add(make: Make) -> Make:
        for name in names:
            MAKERS[name] = make
        return make

    return add


def place_of(site: Site) -> Place:
    """Where an operation is."""
    return Place(site.name, engine.location_of(site.operation))


def buffers(site: Site) -> list[int]:
    """The operands that are memory; how operands are grouped differs between Tritons."""
    pairs = zip(site.operands, site.operand_types, strict=True)
    return [slot for slot, type_ in pairs if type_.form == "memdesc"]


def memdesc_in(type_: ValueType) -> MemDescType:
    """The view of a buffer's type."""
    assert isinstance(type_.view, MemDescType)
    return type_.view


def condition(site: Site) -> int | None:
    """The last operand that is a scalar i1: the predicate."""
    pairs = zip(site.operands, site.operand_types, strict=True)
    found = [slot for slot, type_ in pairs if type_.text == "i1"]
    return found[-1] if found else None


def holds(frame: Frame, predicate: int | None) -> bool:
    """Whether a predicate that may be absent is true."""
    return predicate is None or bool(frame[predicate])


def view_in(frame: Frame, slot: int) -> View:
    """The view in a slot."""
    return frame[slot]


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


_CONTROL = ("scf.", "cf.", "tt.call")
# Tensor operations of these dialects compute values and nothing else.
_VALUE_DIALECTS = ("arith.", "math.", "tt.", "ub.")
_VALUE_OPERATIONS = frozenset(
    ("ttg.convert_layout", "ttg.fp4_to_fp", "ttg.global_scratch_alloc", "llvm.intr.assume",
     "ttng.tensormap_create", "ttng.reinterpret_tensor_descriptor", "ttg.async_commit_group",
     "ttng.tensormap_fenceproxy_acquire")
)  # fmt: skip
# Within a partition, and with one CTA in a cluster, these order nothing that is not in order.
_NOTHING = frozenset(
    ("gpu.barrier", "ttg.barrier", "ttg.local_barrier", "ttng.fence_mbarrier_init_release_cluster",
     "ttng.cluster_barrier", "ttng.cluster_arrive", "ttng.cluster_wait",
     "tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents")
)  # fmt: skip


def make_step(site: Site, name_of: NameOf) -> Step:
    """The step of an operation; `name_of` names an allocation. Raises CannotSimulate for one that
    cannot be followed."""
    if site.name == "ttg.local_alloc":
        return allocate(site, name_of)
    if site.name in MAKERS:
        return MAKERS[site.name](site)
    if site.name.startswith(_CONTROL) or _only_scalars(site):
        return _checked(_by_value(site))
    if site.name in _NOTHING:
        return lambda _: None
    known = site.name in OPERATIONS and site.name.startswith(_VALUE_DIALECTS)
    if known or site.name in _VALUE_OPERATIONS:
        return _tensor_step(site)
    raise CannotSimulate("the protocol of this operation is not known")


def _only_scalars(site: Site) -> bool:
    changes_memory = site.name in ("tt.atomic_rmw", "tt.atomic_cas", "tt.store")
    types = (*site.operand_types, *site.result_types)
    return (
        not changes_memory
        and site.name.startswith(("arith.", "math.", "tt.", "ub."))
        and all(each.form == "scalar" for each in types)
        and not len(site.operation.regions)
    )


def _by_value(site: Site) -> Step | Suspending:
    make = OPERATIONS.get(site.name)
    if make is None:
        raise CannotSimulate("it is not known to the simulator")
    return make(site)


def _checked(step: Step | Suspending) -> Step:
    assert not isinstance(step, Suspending), "nothing suspends while recording"
    return step


def _tensor_step(site: Site) -> Step:
    """All results unknown; an operand that a dot is still writing must not be read."""
    results = site.results
    tensors = [
        slot
        for slot, type_ in zip(site.operands, site.operand_types, strict=True)
        if type_.form == "tensor"
    ]
    if site.name == "arith.select" and site.operand_types[0].form == "scalar":
        return _select(site)

    def step(frame: Frame) -> None:
        for slot in tensors:
            require_finished(frame, frame[slot])
        for slot in results:
            frame[slot] = TENSOR

    return step


def _select(site: Site) -> Step:
    """A choice between values by a scalar moves nothing: it becomes a branch."""
    condition, yes, no = site.operands
    result = site.result

    def step(frame: Frame) -> None:
        choice = frame[condition]
        frame[result] = TENSOR if choice is TENSOR else frame[yes if choice else no]

    return step
