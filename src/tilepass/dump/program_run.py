"""Running a program whose compilations are dumped, and reading what was."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from tilepass.binary.artifacts import BINARY_STAGES
from tilepass.core.decisions import Decision, decision_of
from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Target
from tilepass.core.remarks import Remark, parse_remark
from tilepass.core.versions import triton_version
from tilepass.dump.environment import encode
from tilepass.dump.kernel_files import RecorderOptions
from tilepass.dump.recorder import Recorder
from tilepass.dump.sources import compile_kernel
from tilepass.dump.steps import (
    CompilationRecord,
    Step,
    kernel_folders,
    read_compilation,
    read_steps,
)
from tilepass.frontends.placed import place_passes
from tilepass.subjects.anew import ANEW
from tilepass.subjects.kernel import KernelSpec
from tilepass.subjects.program import CompileOnly, program_environment, run_program
from tilepass.variables import DUMP, EMPTY_PIPELINE


@dataclass(frozen=True)
class Recorded:
    """A compilation of a program: what was compiled, and its steps."""

    folder: Path
    record: CompilationRecord
    steps: tuple[Step, ...]

    @property
    def remarks(self) -> list[Remark]:
        return [parse_remark(text) for step in self.steps for text in step.remarks]

    @property
    def decisions(self) -> list[Decision]:
        return [decision_of(fields) for step in self.steps for fields in step.decisions]

    @property
    def binary(self) -> Path | None:
        """The file with the binary; None where the compilation did not come to one."""
        return next(filter(None, map(self.result, BINARY_STAGES)), None)

    def result(self, stage: str) -> Path | None:
        """The file with the result of a stage, or the `source`; None where it was not reached."""
        found = [step for step in self.steps if step.origin == "stage" and step.name == stage]
        return self.folder / found[-1].file if found and found[-1].file else None


@dataclass(frozen=True)
class Recording:
    """What was compiled, in order; and the exit status of the program that did."""

    kernels: list[Recorded]
    status: int = 0


def record_program(
    command: Sequence[str],
    pipeline: str,
    load: Sequence[str],
    options: RecorderOptions,
    *,
    remarks: str = "missed",
    compile_only: CompileOnly | None = None,
) -> int:
    """Run a program in which every kernel is compiled and dumped; returns its exit status.

    Raises TilepassError for a pipeline that is in error, or a program that cannot be started.
    """
    # What there is to say about the files, the program says.
    place_passes(pipeline, load, quiet=True)
    environment = program_environment(
        os.environ, pipeline or EMPTY_PIPELINE, load, remarks, compile_only=compile_only
    )
    return run_program(command, environment | ANEW | {DUMP: encode(options)})


@contextmanager
def recorded_kernel(
    kernel: KernelSpec, target: Target, pipeline: str, load: Sequence[str]
) -> Generator[Recording]:
    """A jitted function compiled; the files are there in the block. Raises TilepassError."""
    with tempfile.TemporaryDirectory(prefix="tilepass-") as folder:
        options = RecorderOptions(Path(folder), only_changed=True)
        recorder = Recorder(options, compiler=str(triton_version()), pipeline=pipeline)
        with redirect_stdout(sys.stderr):
            compile_kernel(kernel, target, pipeline, load, recorder)
        yield Recording(read_recorded(Path(folder)))


@contextmanager
def recorded_program(
    command: Sequence[str],
    pipeline: str,
    load: Sequence[str],
    *,
    compile_only: CompileOnly | None = None,
) -> Generator[Recording]:
    """What a program compiled; the files are there in the block. That it failed is said.

    Raises TilepassError where it compiled nothing.
    """
    said = " ".join(command)
    with tempfile.TemporaryDirectory(prefix="tilepass-") as folder:
        options = RecorderOptions(Path(folder), only_changed=True)
        with _stdout_to_stderr():
            status = record_program(
                command, pipeline, load, options, remarks="none", compile_only=compile_only
            )
        found = read_recorded(Path(folder))
        if not found:
            how = f"exited with {status} and " if status else ""
            raise TilepassError(f"{said} {how}compiled no kernel")
        if status:
            print(f"error: {said} exited with {status}; what it compiled:", file=sys.stderr)
        yield Recording(found, status)


def read_recorded(dump: Path) -> list[Recorded]:
    """The compilations in a dump, in the order in which they began."""
    folders = sorted(kernel_folders(dump), key=_begin)
    return [Recorded(each, read_compilation(each), tuple(read_steps(each))) for each in folders]


def _begin(folder: Path) -> int:
    return min(file.stat().st_mtime_ns for file in folder.iterdir())


@contextmanager
def _stdout_to_stderr() -> Generator[None]:
    """Let what processes that are started in the block print go to stderr."""
    sys.stdout.flush()
    before = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(before, 1)
        os.close(before)
