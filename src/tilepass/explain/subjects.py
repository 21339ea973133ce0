"""What passes are run on to explain them: an IR file, a kernel of tilepass, a program."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from tilepass.core import tracebacks
from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Pass, Target
from tilepass.core.pipeline_spec import parse_pipeline
from tilepass.core.registry import find_pass, pass_names
from tilepass.explain.account import Account
from tilepass.subjects.anew import compiled_anew
from tilepass.subjects.kernel import KernelSpec
from tilepass.subjects.program import DEFAULT_TARGET, CompileOnly
from tilepass.without_gpu.program import is_check

if TYPE_CHECKING:
    from tilepass.dump.program_run import Recording

IR_SUFFIXES = (".mlir", ".ttir", ".ttgir")


def explain_file(file: str, pipeline: str, target: Target | None) -> Account:
    """Run a pipeline on an IR file, as tilepass-opt does; for its own target, else for cuda:90."""
    from tilepass.opt.file_run import FileRun
    from tilepass.opt.source import read_source

    run = FileRun.of(read_source(file), pipeline, target, default=DEFAULT_TARGET)
    account = Account(tuple(type(step) for step in run.steps if isinstance(step, Pass)))
    for step in run.steps:
        context, _ = run.run(step, account.remarks.append)
        account.decisions += context.decisions
    return account


def explain_kernel(
    name: str, pipeline: str, target: Target | None, options: Mapping[str, str]
) -> Account:
    """Compile a kernel of tilepass; `options` are fields of its configuration."""
    from tilepass.frontends.triton.targets import gpu_target
    from tilepass.kernels import get_workload

    workload = get_workload(name)
    config = workload.config_from(workload.default_shapes[0], options)
    with _enabled(pipeline) as account, compiled_anew():
        workload.compile(config, gpu_target(target or DEFAULT_TARGET))
    return account


def explain_command(
    command: Sequence[str], pipeline: str, load: Sequence[str], compile_only: CompileOnly | None
) -> Account:
    """Run a program, the processes that it starts included. Its kernels are compiled anew."""
    from tilepass.dump.program_run import recorded_program

    with recorded_program(command, pipeline, load, compile_only=compile_only) as recording:
        return _account(pipeline, recording)


def explain_spec(
    kernel: KernelSpec, target: Target | None, pipeline: str, load: Sequence[str]
) -> Account:
    """Compile a jitted function of the user's."""
    from tilepass.dump.program_run import recorded_kernel

    with recorded_kernel(kernel, target or DEFAULT_TARGET, pipeline, load) as recording:
        return _account(pipeline, recording)


def _account(pipeline: str, recording: Recording) -> Account:
    account = Account(_passes(pipeline), status=recording.status)
    for kernel in recording.kernels:
        account.decisions += kernel.decisions
        account.remarks += kernel.remarks
    return account


def explain_program(
    file: str, arguments: Sequence[str], pipeline: str, compile_only: CompileOnly | None = None
) -> Account:
    """Run a Python program in this process. Its kernels are compiled anew.

    Raises TilepassError where the program cannot be read or exits with a failure.
    """
    if compile_only is not None:
        from tilepass.without_gpu.program import stand_in_for_gpu

        stand_in_for_gpu(compile_only.target, all_configurations=compile_only.all_configurations)
    with _enabled(pipeline) as account, compiled_anew():
        _run_program(file, arguments)
    return account


def _run_program(file: str, arguments: Sequence[str]) -> None:
    if not Path(file).is_file():
        raise TilepassError(f"{file}: no such file")
    previous, path = sys.argv, list(sys.path)
    sys.argv = [file, *arguments]
    # As of `python FILE`: what lies beside it is imported first.
    sys.path[0] = str(Path(file).resolve().parent)
    try:
        # Standard output is for the account.
        with redirect_stdout(sys.stderr):
            runpy.run_path(file, run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0):
            raise TilepassError(f"{file} exited with {error.code}") from error
    except TilepassError:
        raise
    except Exception as error:
        if is_check(error):
            return
        raise TilepassError(f"{file} raised {tracebacks.describe(error, '__main__')}") from error
    finally:
        sys.argv, sys.path[:] = previous, path


def _passes(pipeline: str) -> tuple[type[Pass], ...]:
    names = [item.name for item in parse_pipeline(pipeline)]
    return tuple(find_pass(name) for name in names if name in pass_names())


@contextmanager
def _enabled(pipeline: str) -> Generator[Account]:
    from tilepass.activate import enabled

    account = Account(_passes(pipeline))
    with enabled(pipeline, remarks="none") as session:
        try:
            yield account
        finally:
            account.decisions += session.decisions
            account.remarks += session.remarks
