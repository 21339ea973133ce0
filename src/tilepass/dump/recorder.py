"""Writes down every step of every compilation while it happens.

It only writes texts: differences, disassembly and figures are made from them afterwards, so that
a program under observation is slowed down little and a dump of a program that died is complete up
to where it died.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from tilepass.binary.artifacts import BINARY_STAGES
from tilepass.binary.tools import find_tools
from tilepass.core.pass_base import PassContext, Target
from tilepass.dump.kernel_files import KernelFiles, RecorderOptions, Said, slug
from tilepass.dump.left_out import note_left_out
from tilepass.dump.steps import (
    COMPILATION_FILE,
    CompilationRecord,
    read_compilation,
    read_steps,
    write_compilation,
)
from tilepass.dump.store import DumpError, new_folder
from tilepass.frontends.observing import Origin


@dataclass(frozen=True)
class PassRun:
    """A pass that ran before the compiler was started, and the IR that it left."""

    stage: str
    pass_text: str
    text: str
    said: Said


class CompilationInfo(Protocol):
    """What the front end tells of a compilation (frontends.observing.Compilation)."""

    @property
    def key(self) -> str: ...
    @property
    def kernel(self) -> str: ...
    @property
    def language(self) -> str: ...
    @property
    def target(self) -> Target: ...
    @property
    def options(self) -> Mapping[str, object]: ...


class Recorder:
    """A StageObserver that dumps what it is shown, one folder per compilation.

    With `fail_softly` an error is printed and recording ends, for programs that should not die of
    a full disk; without, DumpError is raised into the compilation.
    """

    def __init__(
        self,
        options: RecorderOptions,
        *,
        compiler: str,
        pipeline: str = "",
        fail_softly: bool = False,
    ) -> None:
        self._options = options
        self._compiler = compiler
        self._pipeline = pipeline
        self._fail_softly = fail_softly
        self._failed = False
        # Each thread compiles one kernel at a time.
        self._threads = threading.local()
        self._earlier: tuple[str, tuple[PassRun, ...]] | None = None

    @property
    def locations(self) -> bool:
        """Whether the dump keeps locations."""
        return self._options.locations

    def begin_with(self, source: str, runs: Sequence[PassRun]) -> None:
        """The next compilation starts from `source` and the passes that have run on it."""
        self._earlier = (source, tuple(runs))

    def begin(self, compilation: CompilationInfo, source: Callable[[], str]) -> None:
        """A compilation starts from the IR that `source` prints."""
        self._threads.kernel = None
        if self._failed:
            return
        name, options = compilation.kernel, self._options
        if not options.kernels.search(name):
            self._guarded(lambda: note_left_out(options.folder, name))
            return
        if self._is_dumped(compilation):
            return
        self._guarded(lambda: self._begin(compilation, source()))

    def after_pass(
        self,
        stage: str,
        index: int,
        pass_text: str,
        origin: Origin,
        module_text: Callable[[], str],
    ) -> None:
        """A pass has run."""
        del index
        kernel = self._kernel()
        if kernel is None:
            return
        said = Said()
        if origin == "tilepass":
            said = Said.in_context(self._threads.context, self._threads.decisions)
        self._guarded(lambda: kernel.add_pass(stage, pass_text, origin, module_text(), said))

    def after_stage(self, stage: str, artifact: Callable[[], str | bytes]) -> None:
        """A stage is done."""
        if kernel := self._kernel():
            self._guarded(lambda: kernel.add_stage(stage, artifact()))

    def before_pass(self, context: PassContext) -> None:
        """A Python pass is about to run in this thread with `context`."""
        self._threads.context = context
        self._threads.decisions = len(context.decisions)

    def _begin(self, compilation: CompilationInfo, source: str) -> None:
        target = compilation.target
        folder = new_folder(self._options.folder, _folder_name(compilation))
        record = CompilationRecord(
            kernel=compilation.kernel,
            key=compilation.key,
            language=compilation.language,
            backend=target.backend,
            arch=target.arch,
            compiler=self._compiler_of(compilation),
            pipeline=self._pipeline,
            options=compilation.options,
            tools=_tools(target),
        )
        kernel = KernelFiles(folder, self._options)
        source, runs = self._earlier or (source, ())
        self._earlier = None
        kernel.add_source(source)
        write_compilation(folder, record)
        for run in runs:
            kernel.add_pass(run.stage, run.pass_text, "tilepass", run.text, run.said)
        self._threads.kernel = kernel

    def _compiler_of(self, compilation: CompilationInfo) -> str:
        if compilation.language != "cute":
            return self._compiler
        from tilepass.core.versions import cute_version

        return str(cute_version())

    def _is_dumped(self, compilation: CompilationInfo) -> bool:
        """Whether this very compilation is already there, finished: another process was first."""
        pattern = f"{_folder_name(compilation)}*/{COMPILATION_FILE}"
        return any(
            read_compilation(file.parent).key == compilation.key and is_finished(file.parent)
            for file in self._options.folder.glob(pattern)
        )

    def _kernel(self) -> KernelFiles | None:
        return None if self._failed else getattr(self._threads, "kernel", None)

    def _guarded(self, write: Callable[[], None]) -> None:
        try:
            write()
        except DumpError as error:
            if not self._fail_softly:
                raise
            self._failed = True
            print(f"error: dump-ir: {error}; no more is recorded", file=sys.stderr)


def is_finished(folder: Path) -> bool:
    """Whether the compilation in a kernel's folder came to its binary."""
    return any(step.stage in BINARY_STAGES for step in read_steps(folder))


def _tools(target: Target) -> dict[str, str] | None:
    """The tools of this process's Triton: the one that reads the dump may have another."""
    if target.backend != "cuda" or not isinstance(target.arch, int):
        return None
    return asdict(find_tools(target.arch))


def _folder_name(compilation: CompilationInfo) -> str:
    target = compilation.target
    return f"{slug(compilation.kernel)}-{target.backend}{target.arch}-{compilation.key[:8]}"
