"""The child process that owns the GPU: `python -m tilepass.ab.worker time|prime`.

Reads a job (see `job.encode_job`) from standard input, writes events (see `events`) to standard
output. It is a separate process so that a kernel that hangs or faults cannot take the tool with
it: the parent ends it and goes on with the next point.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from tilepass.ab.events import Event, Failed, Found, Loaded, encode
from tilepass.ab.job import Job, Task, decode_job
from tilepass.core.errors import TilepassError
from tilepass.core.registry import load_file

POISONED = 3
"""Exit status when the CUDA context is unusable: a new process has to do the rest."""


def main(argv: Sequence[str]) -> int:
    """Run the tasks of the job on standard input; `argv` is `["time"]` or `["prime"]`."""
    emit = _event_stream()
    try:
        job, tasks = decode_job(sys.stdin.readline())
        return _run(job, tasks, prime=list(argv) == ["prime"], emit=emit)
    except TilepassError as error:
        emit(Failed(None, str(error)))
        return 1


def _event_stream() -> Callable[[Event], None]:
    """Writes events where standard output was; what programs print goes to standard error."""
    stream = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return lambda event: print(encode(event), file=stream, flush=True)


def _run(job: Job, tasks: Sequence[Task], prime: bool, emit: Callable[[Event], None]) -> int:
    import torch

    from tilepass.ab.clocks import ClockMonitor
    from tilepass.ab.cuda_device import CudaGpu
    from tilepass.ab.cute import CuteSubject
    from tilepass.ab.gpu import gpu_facts, open_clock
    from tilepass.ab.kernel_log import KernelLog
    from tilepass.ab.point import PointRunner, describe_failure
    from tilepass.ab.subjects import find_subject

    if not torch.cuda.is_available():
        raise TilepassError(f"torch {torch.__version__} finds no GPU")
    clock, clock_facts = open_clock()
    for path in job.load:
        load_file(path)
    log = KernelLog(on_load=lambda kernel: emit(Loaded(kernel.name)))
    log.install()
    subject = find_subject(job.kernel)
    emit(Found(gpu_facts(clock_facts)))
    with ExitStack() as stack:
        monitor = None
        if clock is not None and not prime:
            monitor = stack.enter_context(ClockMonitor(clock))
        launched = subject if isinstance(subject, CuteSubject) else log
        runner = PointRunner(job, subject, launched, CudaGpu(monitor), emit)
        for task in tasks:
            try:
                if prime:
                    runner.prime(task.point, task.arms)
                else:
                    runner.run(task.point, task.arms)
            except Exception as error:
                emit(Failed(task.point, describe_failure(error)))
                if not context_usable():
                    return POISONED
            torch.cuda.empty_cache()
    return 0


def context_usable() -> bool:
    """False after a fault that CUDA reports on every later call."""
    import torch

    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
