"""One point of a comparison, in the process that owns the GPU: check all arms, then time them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from tilepass.ab.arms import arm_enabled
from tilepass.ab.checks import (
    different_names,
    equal_bits,
    library_tolerance,
    poison,
    same_kernels,
    wrong_outputs,
)
from tilepass.ab.cuda_device import Graph, copies_for, launches_for
from tilepass.ab.events import (
    ArmFailed,
    ArmReady,
    Done,
    Event,
    KernelFact,
    Remarked,
    Setup,
    Started,
    sampled,
)
from tilepass.ab.job import Arm, Job
from tilepass.ab.protocol import Device, measure
from tilepass.ab.subjects import Subject, copy_inputs, find_library
from tilepass.core.errors import TilepassError
from tilepass.subjects.anew import compiled_anew

if TYPE_CHECKING:
    from tilepass.ab.cuda_device import Launcher, Tensors


class Gpu(Protocol):
    """What a point needs of the GPU; `cuda_device.CudaGpu` is the real one."""

    kind: str

    def synchronize(self) -> None: ...
    def capture(self, launchers: Sequence[Launcher]) -> Graph: ...
    def l2_bytes(self) -> int: ...
    def launch_us(self, graph: Graph) -> float: ...
    def timer(self, graphs: Sequence[Graph]) -> Device: ...


class Log(Protocol):
    """Tells which kernels were launched; `kernel_log.KernelLog` is the real one."""

    def launches(self) -> AbstractContextManager[dict[str, KernelFact]]: ...


@dataclass(frozen=True)
class Prepared:
    """An arm that is compiled and checked: its single launch and the right outputs, kept aside."""

    arm: Arm
    config: object
    settings: str
    graph: Graph
    outputs: Tensors
    kernels: tuple[KernelFact, ...]


class PointRunner:
    """Runs the points of a job; every step is reported through `emit`."""

    def __init__(
        self,
        job: Job,
        subject: Subject,
        log: Log,
        gpu: Gpu,
        emit: Callable[[Event], None],
    ) -> None:
        self._job = job
        self._subject = subject
        self._log = log
        self._gpu = gpu
        self._emit = emit

    def prime(self, point: int, arms: Sequence[int]) -> None:
        """Compile arms into Triton's cache and launch each once."""
        self._emit(Started(point, "compile"))
        where = self._job.points[point]
        subject = self._subject
        baseline = subject.configure(where, self._job.arms[0])
        inputs = subject.make_inputs(where.shape, self._job.seed(point), baseline, self._gpu.kind)
        for index in arms:
            arm = self._job.arms[index]
            launcher = subject.launcher(inputs, subject.configure(where, arm))
            with compiled_anew(), arm_enabled(arm) as remarks:
                launcher()
            self._gpu.synchronize()
            self._emit(Remarked(point, index, tuple(remarks)))
        self._emit(Done(point, "primed"))

    def run(self, point: int, arms: Sequence[int]) -> None:
        """Check arms against the reference, then time them. Raises TilepassError."""
        job, subject, where = self._job, self._subject, self._job.points[point]
        self._emit(Started(point, "check"))
        baseline = subject.configure(where, job.arms[0])
        inputs = subject.make_inputs(where.shape, job.seed(point), baseline, self._gpu.kind)
        ready = self._check_arms(point, arms, inputs)
        notes = self._compare_names([prepared.kernels for prepared in ready.values()])
        kernels = {arm: prepared.kernels for arm, prepared in ready.items()}
        settings = {arm: prepared.settings for arm, prepared in ready.items()}
        first = same_kernels(kernels, settings, job.force)
        timed = [ready[arm] for arm in ready if first[arm] == arm]
        if len(ready) == 1:
            raise TilepassError("every arm but the baseline failed")
        if len(timed) == 1:
            self._emit(Done(point, "identical"))
            return
        # The duplicate is prepared anew: its own buffers, like every other arm.
        timed.append(self._prepare(job.arms[0], baseline, inputs, ready[0].outputs))
        graphs = self._timing_graphs(point, timed, inputs, notes)
        self._emit(Started(point, "time"))
        device = self._gpu.timer(graphs)
        plan = replace(job.plan, seed=job.seed(point))
        for batch in measure(device, len(timed) - 1, plan):
            self._emit(sampled(point, batch))
        for prepared in timed:
            self._check_again(prepared, inputs)
        self._emit(Done(point, "timed"))

    def _check_arms(self, point: int, arms: Sequence[int], inputs: object) -> dict[int, Prepared]:
        expected = self._subject.reference(inputs)
        ready: dict[int, Prepared] = {}
        for index in arms:
            arm = self._job.arms[index]
            try:
                config = self._subject.configure(self._job.points[point], arm)
                prepared = self._prepare(arm, config, inputs, expected)
            except Exception as error:
                if index == 0 or not self._job.keep_going:
                    raise
                # Raises where the failure has left the GPU unusable: the point is then lost.
                self._gpu.synchronize()
                self._emit(ArmFailed(point, index, describe_failure(error)))
                continue
            ready[index] = prepared
            equal = equal_bits(prepared.outputs, ready[0].outputs)
            self._emit(ArmReady(point, index, prepared.kernels, prepared.settings, equal))
            if self._job.need_equal_bits and not equal:
                raise TilepassError(f"arm {arm.label}: outputs differ from arm A's bit by bit")
        return ready

    def _launcher(self, arm: Arm, config: object, inputs: object) -> Launcher:
        if not arm.library:
            return self._subject.launcher(inputs, config)
        function = find_library(arm.library)
        return lambda: function(inputs)

    def _prepare(self, arm: Arm, config: object, inputs: object, expected: Tensors) -> Prepared:
        launcher = self._launcher(arm, config, inputs)
        with arm_enabled(arm):
            kernels: dict[str, KernelFact] = {}
            if arm.library:
                launcher()
            else:
                with self._log.launches() as kernels:
                    launcher()
            if not kernels and not arm.library:
                raise TilepassError(f"arm {arm.label} launched no Triton kernel")
            graph = self._gpu.capture([launcher])
        outputs = graph.outputs[0]
        poison(outputs)
        graph.replay()
        self._gpu.synchronize()
        tolerance = self._subject.tolerance(inputs, outputs)
        if arm.library:
            tolerance = library_tolerance(tolerance)
        if (problem := wrong_outputs(outputs, expected, tolerance)) is not None:
            raise TilepassError(f"arm {arm.label} ({arm.describe()}) is wrong: {problem}")
        kept = tuple(output.clone() for output in outputs)
        settings = arm.library or repr(config)
        return Prepared(arm, config, settings, graph, kept, tuple(kernels.values()))

    def _compare_names(self, kernels: Sequence[tuple[KernelFact, ...]]) -> tuple[str, ...]:
        if (difference := different_names(kernels)) is None:
            return ()
        message = f"the arms launch kernels of different names: {difference}"
        if not self._job.force:
            raise TilepassError(f"{message} (--force times them all the same)")
        return (message,)

    def _timing_graphs(
        self, point: int, timed: Sequence[Prepared], inputs: object, notes: tuple[str, ...]
    ) -> list[Graph]:
        """One graph per slot, each of the same number of launches over as many input copies."""
        self._emit(Started(point, "estimate"))
        where, subject = self._job.points[point], self._subject
        flops, moved = subject.work(where.shape, timed[0].config)
        launches = launches_for(min(self._gpu.launch_us(prepared.graph) for prepared in timed))
        copies = copies_for(launches, moved, self._gpu.l2_bytes())
        self._emit(Setup(point, launches, copies, flops, moved, notes))
        if launches == 1:
            return [prepared.graph for prepared in timed]
        sets = [inputs, *(copy_inputs(inputs) for _ in range(copies - 1))]
        return [self._rotating_graph(prepared, sets, launches) for prepared in timed]

    def _rotating_graph(self, prepared: Prepared, sets: Sequence[object], launches: int) -> Graph:
        launchers = [self._launcher(prepared.arm, prepared.config, inputs) for inputs in sets]
        with arm_enabled(prepared.arm):
            for launcher in launchers:
                launcher()
            return self._gpu.capture(
                [launchers[index % len(launchers)] for index in range(launches)]
            )

    def _check_again(self, prepared: Prepared, inputs: object) -> None:
        """Outputs that changed while the arms were timed are a race, and no time stands."""
        outputs = prepared.graph.outputs[0]
        poison(outputs)
        prepared.graph.replay()
        self._gpu.synchronize()
        tolerance = self._subject.tolerance(inputs, outputs)
        if self._subject.promises_equal_bits and not equal_bits(outputs, prepared.outputs):
            problem = "another bit pattern than before"
        else:
            problem = wrong_outputs(outputs, prepared.outputs, tolerance)
        if problem is not None:
            raise TilepassError(
                f"arm {prepared.arm.label} ({prepared.arm.describe()}): outputs changed between "
                f"launches on the same inputs, which is a race: {problem}"
            )


def describe_failure(error: Exception) -> str:
    """A TilepassError's message; of others the type and the message's first lines."""
    if isinstance(error, TilepassError):
        return str(error)
    lines = str(error).strip().splitlines()[:3]
    return f"{type(error).__name__}: {' '.join(lines)}"
