"""A program as a subject: the environment in which it runs with a pipeline, and its run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tilepass
from tilepass import variables
from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Target

DEFAULT_TARGET = Target("cuda", 90)
_SECONDS_TO_END = 10.0


@dataclass(frozen=True)
class CompileOnly:
    """A GPU that is not there: kernels compile for its target and do not run.

    Autotuners compile their configurations up to the first that fits, or all.
    """

    target: Target
    all_configurations: bool = False


def compile_only_asked(
    target: str | None, *, asked: bool, all_configurations: bool
) -> CompileOnly | None:
    """What the flags of `add_compile_only_flags` ask for; each of them means `--compile-only`.

    Raises TilepassError for a target that is none, or that no GPU is known of.
    """
    if not (asked or target or all_configurations):
        return None
    # Here and not above: commands that run a program start it at once.
    from tilepass.without_gpu.devices import device_of

    found = Target.parse(target, "--target") if target else DEFAULT_TARGET
    device_of(found)
    return CompileOnly(found, all_configurations)


def compile_only_without_gpu(
    target: str | None, *, asked: bool, all_configurations: bool
) -> CompileOnly | None:
    """As `compile_only_asked`; and where there is no GPU, which is said, for the default target."""
    from tilepass.without_gpu.nvml import is_gpu_there

    found = compile_only_asked(target, asked=asked, all_configurations=all_configurations)
    if found is not None or is_gpu_there():
        return found
    print(f"no GPU here: compiling for {DEFAULT_TARGET} (see --target)", file=sys.stderr)
    return CompileOnly(DEFAULT_TARGET)


def program_environment(
    environment: Mapping[str, str],
    pipeline: str,
    load: Sequence[str],
    remarks: str,
    *,
    validate: bool = False,
    shapes: Sequence[str] = (),
    on_failure: str = "stop",
    compile_only: CompileOnly | None = None,
) -> dict[str, str]:
    """The environment in which a program runs with a pipeline, of one that has none or another."""
    site = str(Path(tilepass.__file__).parent / "_site")
    inherited = [
        folder
        for folder in environment.get("PYTHONPATH", "").split(os.pathsep)
        if folder and folder != site
    ]
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join([site, *inherited]),
        variables.PIPELINE: pipeline,
        variables.LOAD: os.pathsep.join(str(Path(path).resolve()) for path in load),
        variables.REMARKS: remarks,
        variables.VALIDATE: "1" if validate else "",
        variables.ON_FAILURE: on_failure,
        variables.VALIDATE_SHAPES: variables.SHAPES_SEPARATOR.join(shapes),
        **_without_gpu(compile_only),
    }


def _without_gpu(compile_only: CompileOnly | None) -> dict[str, str]:
    if compile_only is None:
        return {variables.COMPILE_ONLY: ""}
    # Here and not above: it loads the engine.
    from tilepass.frontends.cute.lowering import chip_of

    target, every = compile_only.target, " all" if compile_only.all_configurations else ""
    chip = {"CUTE_DSL_ARCH": chip_of(target)} if target.backend == "cuda" else {}
    return {variables.COMPILE_ONLY: f"{target}{every}", **chip}


def run_program(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run `command` to its end; returns its exit status, 128 + N where signal N ended it.

    Ctrl-C is left to the program, which gets it from the terminal too; a second one ends it.
    Raises TilepassError where the program cannot be started.
    """
    sys.stdout.flush()
    try:
        program = subprocess.Popen(command, env=dict(environment))
    except OSError as error:
        raise TilepassError(f"cannot run '{command[0]}': {error.strerror}") from error
    with _terminated_with(program):
        status = _wait(program)
    return 128 - status if status < 0 else status


def _wait(program: subprocess.Popen[bytes]) -> int:
    try:
        return program.wait()
    except KeyboardInterrupt:
        pass
    try:
        return program.wait()
    except KeyboardInterrupt:
        program.terminate()
    try:
        return program.wait(_SECONDS_TO_END)
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        program.kill()
        return program.wait()


@contextmanager
def _terminated_with(program: subprocess.Popen[bytes]) -> Generator[None]:
    """SIGTERM goes to the program instead of ending this process."""
    previous = signal.signal(signal.SIGTERM, lambda number, frame: program.send_signal(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
