"""Figures that need no run: every arm compiled, and what the binaries say of themselves."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tilepass.ab.arms import arm_enabled
from tilepass.ab.compile_only import compile_only
from tilepass.ab.events import ArmReady, Done, Event, Failed, KernelFact, Started
from tilepass.ab.job import Job
from tilepass.ab.kernel_log import KernelLog, kernel_fact
from tilepass.ab.subjects import OwnSubject, Subject
from tilepass.core.errors import TilepassError
from tilepass.dump.figures import KernelFigures, kernel_figures


def compile_points(job: Job, subject: Subject, arch: int, emit: Callable[[Event], None]) -> None:
    """Compile every arm of every point for sm_`arch`, without a GPU.

    Points that compile end in Done("compiled"), others in Failed.
    """
    log = KernelLog()
    log.install()
    try:
        for index in range(len(job.points)):
            emit(Started(index, "compile"))
            emit(_compile_point(job, subject, log, index, arch, emit))
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


def _compile_point(
    job: Job,
    subject: Subject,
    log: KernelLog,
    index: int,
    arch: int,
    emit: Callable[[Event], None],
) -> Done | Failed:
    try:
        for arm in range(len(job.arms)):
            emit(_compile_arm(job, subject, log, index, arm, arch))
    except Exception as error:
        known = isinstance(error, TilepassError)
        return Failed(index, str(error) if known else f"{type(error).__name__}: {error}")
    return Done(index, "compiled")


def _compile_arm(
    job: Job, subject: Subject, log: KernelLog, index: int, arm: int, arch: int
) -> ArmReady:
    point = job.points[index]
    config = subject.configure(point, job.arms[arm])
    with arm_enabled(job.arms[arm]) as remarks:
        if isinstance(subject, OwnSubject):
            compiled = subject.workload.compile(config, _gpu_target(arch))
            kernels = (kernel_fact(compiled.metadata.name, compiled.metadata_group),)
        else:
            inputs = subject.make_inputs(point.shape, job.seed(index), config, device="cpu")
            launcher = subject.launcher(inputs, config)
            with compile_only(arch), log.launches() as launched:
                launcher()
            kernels = tuple(launched.values())
    if not kernels:
        raise TilepassError("the function launched no Triton kernel")
    return ArmReady(index, arm, kernels, repr(config), tuple(remarks), equal_bits=None)


def _gpu_target(arch: int) -> Any:
    return importlib.import_module("triton.backends.compiler").GPUTarget("cuda", arch, 32)
