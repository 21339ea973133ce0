"""Figures that need no run: every arm compiled, and what the binaries say of themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tilepass.ab.arms import arm_enabled
from tilepass.ab.cute import CuteSubject
from tilepass.ab.events import (
    ArmFailed,
    ArmReady,
    Done,
    Event,
    Failed,
    KernelFact,
    Remarked,
    Started,
)
from tilepass.ab.job import Job
from tilepass.ab.kernel_log import KernelLog, kernel_fact
from tilepass.ab.subjects import OwnSubject, Subject, WorkloadSubject
from tilepass.binary.figures import KernelFigures, kernel_figures
from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Target
from tilepass.frontends.triton.targets import gpu_target
from tilepass.subjects.anew import compiled_anew
from tilepass.without_gpu.driver import compile_only


def compile_points(job: Job, subject: Subject, arch: int, emit: Callable[[Event], None]) -> None:
    """Compile every arm of every point for sm_`arch`, without a GPU.

    Points that compile end in Done("compiled"), others in Failed.
    """
    log = KernelLog()
    log.install()
    compiler = _Compiler(job, subject, arch, log)
    try:
        for index in range(len(job.points)):
            emit(Started(index, "compile"))
            emit(compiler.compile_point(index, emit))
    finally:
        log.uninstall()


def collect_figures(kernels: Iterable[KernelFact]) -> Mapping[str, KernelFigures]:
    """Figures of the kernels by code hash; each distinct binary is examined once.

    The disassembler and ptxas are processes, so threads are enough to run several at a time.
    Raises TilepassError where a tool fails.
    """
    paths = {kernel.code_hash: Path(kernel.path) for kernel in kernels}
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return dict(zip(paths, pool.map(kernel_figures, paths.values()), strict=True))


class _Compiler:
    """Compiles what a job's arms launch; each distinct kernel once."""

    def __init__(self, job: Job, subject: Subject, arch: int, log: KernelLog) -> None:
        self._job = job
        self._subject = subject
        self._arch = arch
        self._log = log
        self._done: dict[tuple[object, ...], tuple[tuple[KernelFact, ...], tuple[str, ...]]] = {}

    def compile_point(self, index: int, emit: Callable[[Event], None]) -> Done | Failed:
        """Emit what is known of each arm; returns how it ended."""
        for arm in range(len(self._job.arms)):
            try:
                settings, kernels, remarks = self._compile_arm(index, arm)
            except Exception as error:
                known = isinstance(error, TilepassError)
                message = str(error) if known else f"{type(error).__name__}: {error}"
                if arm == 0 or not self._job.keep_going:
                    return Failed(index, message)
                emit(ArmFailed(index, arm, message))
                continue
            emit(Remarked(index, arm, remarks))
            emit(ArmReady(index, arm, kernels, settings, equal_bits=None))
        return Done(index, "compiled")

    def _compile_arm(
        self, index: int, arm: int
    ) -> tuple[str, tuple[KernelFact, ...], tuple[str, ...]]:
        point = self._job.points[index]
        if library := self._job.arms[arm].library:
            return library, (), ()
        config = self._subject.configure(point, self._job.arms[arm])
        own = isinstance(self._subject, WorkloadSubject)
        key = (None if own else point.shape, repr(config), self._job.arms[arm].pipeline)
        if key not in self._done:
            with compiled_anew(), arm_enabled(self._job.arms[arm]) as remarks:
                kernels = self._kernels(index, config)
            self._done[key] = (kernels, tuple(remarks))
        return repr(config), *self._done[key]

    def _kernels(self, index: int, config: Any) -> tuple[KernelFact, ...]:
        point, subject = self._job.points[index], self._subject
        if isinstance(subject, CuteSubject):
            return (subject.compile_for(config, self._arch),)
        if isinstance(subject, OwnSubject):
            compiled = subject.workload.compile(config, gpu_target(Target("cuda", self._arch)))
            return (kernel_fact(compiled.metadata.name, compiled.metadata_group),)
        inputs = subject.make_inputs(point.shape, self._job.seed(index), config, device="cpu")
        launcher = subject.launcher(inputs, config)
        with compile_only(Target("cuda", self._arch)), self._log.launches() as launched:
            launcher()
        if not launched:
            raise TilepassError("the function launched no Triton kernel")
        return tuple(launched.values())
