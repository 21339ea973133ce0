"""The steps of operations while recording.

Within a partition all is in program order: Triton's membar pass puts barriers between its warps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilepass.ir import engine
from tilepass.sim.faults import MemoryMisuse
from tilepass.sim.poison import Poison
from tilepass.sim.protocol.events import Kind, Memory, Place, Thread
from tilepass.sim.protocol.recorder import UNKNOWN, Recorder
from tilepass.sim.protocol.views import View
from tilepass.sim.site import Site
from tilepass.sim.state import Frame
from tilepass.sim.table import OPERATIONS, CannotSimulate, Step, Suspending

TENSOR = Poison(UNKNOWN)
"""Every tensor, and every scalar that comes from one or from memory."""


@dataclass(frozen=True)
class Unfinished:
    """The result of an asynchronous dot until it is waited for: the `serial`-th of its thread."""

    thread: int
    serial: int


Make = Callable[[Site], Step]
NameOf = Callable[[Place], str | None]
_MAKERS: dict[str, Make] = {}

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
    ("gpu.barrier", "ttg.barrier", "ttng.fence_mbarrier_init_release_cluster",
     "ttng.cluster_barrier", "ttng.cluster_arrive", "ttng.cluster_wait",
     "tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents")
)  # fmt: skip


def make_step(site: Site, name_of: NameOf) -> Step:
    """The step of an operation; `name_of` names an allocation. Raises CannotSimulate for one that
    cannot be followed."""
    if site.name == "ttg.local_alloc":
        return _allocate(site, name_of)
    if site.name in _MAKERS:
        return _MAKERS[site.name](site)
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
            if type(frame[slot]) is not Poison:
                raise MemoryMisuse("it reads the result of a dot that was not waited for")
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


def _enter(*names: str) -> Callable[[Make], Make]:
    def enter(make: Make) -> Make:
        for name in names:
            _MAKERS[name] = make
        return make

    return enter


def _place(site: Site) -> Place:
    return Place(site.name, engine.location_of(site.operation))


def _predicate(frame: Frame, slot: int | None) -> bool:
    return slot is None or bool(frame[slot])


def _view(frame: Frame, slot: int) -> View:
    return frame[slot]


# Memory and its views.


def _allocate(site: Site, name_of: NameOf) -> Step:
    type_, place, result = site.result_type, _place(site), site.result
    name = name_of(place)
    source = site.operands[0] if site.operands else None
    key = object()

    def step(frame: Frame) -> None:
        recorder: Recorder = frame[0]
        memory = recorder.memories.get(key)
        if memory is None:
            label = name or f"smem{len(recorder.memories)}"
            memory = Memory(label, type_.shape, str(type_.of), place)
            recorder.memories[key] = memory
        view = frame[result] = View.whole(memory)
        recorder.add(Kind.ALLOCATE, place, [view.region])
        if source is not None:
            recorder.add(Kind.WRITE, place, [view.region])

    return step


def _accessing(kind: Kind, operand: int, result: bool) -> Make:
    def make(site: Site) -> Step:
        place, slot = _place(site), site.operands[operand]
        stored = site.operands[0] if operand else None
        results = site.results

        def step(frame: Frame) -> None:
            if stored is not None and type(frame[stored]) is Unfinished:
                raise MemoryMisuse("it stores the result of a dot that was not waited for")
            frame[0].add(kind, place, [_view(frame, slot).touch()])
            if result:
                frame[results[0]] = TENSOR

        return step

    return make


_MAKERS["ttg.local_dealloc"] = _accessing(Kind.FREE, 0, False)
_MAKERS["ttg.local_load"] = _accessing(Kind.READ, 0, True)
_MAKERS["ttg.local_store"] = _accessing(Kind.WRITE, 1, False)


@_enter("ttg.memdesc_index")
def _index(site: Site) -> Step:
    return site.compute(lambda view, at: view.index(at.__index__()))


@_enter("ttg.memdesc_trans")
def _transposed(site: Site) -> Step:
    order = site.integers("order")
    return site.compute(lambda view: view.transposed(order))


@_enter("ttg.memdesc_subslice")
def _window(site: Site) -> Step:
    offsets, shape = site.integers("offsets"), site.result_type.shape
    return site.compute(lambda view: view.window(offsets, shape))


@_enter("ttg.memdesc_reshape", "ttg.memdesc_reinterpret")
def _reshaped(site: Site) -> Step:
    return site.compute(lambda view: view.reshaped())


# Barriers.


def _on_barrier(kind: Kind, amount: str | None = None) -> Make:
    def make(site: Site) -> Step:
        place, barrier = _place(site), site.operands[0]
        count = site.integer(amount) if amount else 0
        condition = _condition(site)

        def step(frame: Frame) -> None:
            if _predicate(frame, condition):
                frame[0].add(kind, place, (), _view(frame, barrier).touch(), count)

        return step

    return make


_MAKERS["ttng.init_barrier"] = _on_barrier(Kind.INIT, "count")
_MAKERS["ttng.inval_barrier"] = _on_barrier(Kind.INVALIDATE)
_MAKERS["ttng.barrier_expect"] = _on_barrier(Kind.EXPECT, "size")
_MAKERS["ttng.arrive_barrier"] = _on_barrier(Kind.ARRIVE, "count")


@_enter("ttng.wait_barrier")
def _wait(site: Site) -> Step:
    barrier, phase = site.operands[:2]
    condition, place = _condition(site), _place(site)

    def step(frame: Frame) -> None:
        if _predicate(frame, condition):
            parity = frame[phase].__index__() & 1
            frame[0].add(Kind.WAIT, place, (), _view(frame, barrier).touch(), parity)

    return step


# Asynchronous copies.


def _buffers(site: Site) -> list[int]:
    """The operands that are memory; how operands are grouped differs between Tritons."""
    pairs = zip(site.operands, site.operand_types, strict=True)
    return [slot for slot, type_ in pairs if type_.form == "memdesc"]


def _condition(site: Site) -> int | None:
    """The last operand that is a scalar i1."""
    pairs = zip(site.operands, site.operand_types, strict=True)
    found = [slot for slot, type_ in pairs if type_.text == "i1"]
    return found[-1] if found else None


@_enter("ttng.async_tma_copy_global_to_local", "ttng.async_tma_gather")
def _tma_load(site: Site) -> Step:
    barrier, buffer = _buffers(site)[:2]
    predicate = _condition(site)
    place, type_ = _place(site), site.type_of(buffer)
    size = type_.of.size
    for extent in type_.shape:
        size *= extent

    def step(frame: Frame) -> None:
        if _predicate(frame, predicate):
            target, at = _view(frame, buffer).touch(), _view(frame, barrier).touch()
            frame[0].add(Kind.LOAD, place, [target], at, size)

    return step


@_enter("ttng.async_tma_copy_local_to_global", "ttng.async_tma_reduce", "ttng.async_tma_scatter")
def _tma_store(site: Site) -> Step:
    place, buffer = _place(site), site.operands[-1]
    return lambda frame: frame[0].add(Kind.STORE, place, [_view(frame, buffer).touch()])


def _counting(kind: Kind, attribute: str | None = None) -> Make:
    def make(site: Site) -> Step:
        place, amount = _place(site), site.integer(attribute) if attribute else 0
        results = site.results

        def step(frame: Frame) -> None:
            frame[0].add(kind, place, amount=amount)
            for slot in results:
                frame[slot] = TENSOR

        return step

    return make


_MAKERS["ttng.async_tma_store_wait"] = _counting(Kind.STORE_WAIT, "pendings")
_MAKERS["ttg.async_commit_group"] = _counting(Kind.COMMIT)
_MAKERS["ttg.async_wait"] = _counting(Kind.COPY_WAIT, "num")
_MAKERS["ttng.fence_async_shared"] = _counting(Kind.FENCE)


@_enter("ttg.async_copy_global_to_local")
def _async_copy(site: Site) -> Step:
    place, (buffer,), result = _place(site), _buffers(site), site.result

    def step(frame: Frame) -> None:
        frame[0].add(Kind.COPY, place, [_view(frame, buffer).touch()])
        frame[result] = TENSOR

    return step


# Matrix units.


@_enter("ttng.warp_group_dot")
def _dot(site: Site) -> Step:
    """The accumulator is not looked at: a dot may add to what the last one has not finished."""
    place, (a, b), result = _place(site), site.operands[:2], site.result
    waited = not site.flag("isAsync")

    def step(frame: Frame) -> None:
        recorder: Recorder = frame[0]
        if Unfinished in (type(frame[a]), type(frame[b])):
            raise MemoryMisuse("it multiplies the result of a dot that was not waited for")
        views = [value for value in (frame[a], frame[b]) if isinstance(value, View)]
        recorder.add(Kind.DOT, place, [view.touch() for view in views])
        recorder.issued += 1
        if waited:
            recorder.add(Kind.DOT_WAIT, place)
            frame[result] = TENSOR
        else:
            frame[result] = Unfinished(recorder.current, recorder.issued)

    return step


@_enter("ttng.warp_group_dot_wait")
def _dot_wait(site: Site) -> Step:
    place, pendings = _place(site), site.integer("pendings")
    pairs = list(zip(site.operands, site.results, strict=True))

    def step(frame: Frame) -> None:
        recorder: Recorder = frame[0]
        recorder.add(Kind.DOT_WAIT, place, amount=pendings)
        for source, result in pairs:
            value = frame[source]
            finished = isinstance(value, Unfinished) and value.serial <= recorder.issued - pendings
            frame[result] = TENSOR if finished else value

    return step


# Partitions.


@_enter("ttg.warp_specialize")
def _warp_specialize(site: Site) -> Step:
    default, place = site.body(0), _place(site)
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
