"""What a dump's folders say once the compilations are over: differences, SASS, figures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilepass.binary.artifacts import BINARY_STAGES, Artifacts
from tilepass.binary.figures import KernelFigures, kernel_figures
from tilepass.binary.sass import listing
from tilepass.binary.tools import Tools
from tilepass.core.errors import TilepassError
from tilepass.dump.diff import unified
from tilepass.dump.steps import (
    CompilationRecord,
    Step,
    kernel_folders,
    read_compilation,
    read_steps,
)
from tilepass.dump.store import read_text, write_file

FIGURES_FILE = "figures.json"
# Triton's modules have it as an attribute; CuTe's lowered ones at the launch, a constant's name.
_SHARED = re.compile(r"\bttg\.shared\"? = (\d+) : i32|\bdynamicSmemBytes = %c(\d+)_i64\b")


@dataclass(frozen=True)
class KernelReport:
    """One compilation of a dump. `figures` is None where it did not come to a binary, or where
    the figures could not be had; `problem` then says why, if a binary was the goal."""

    folder: Path
    record: CompilationRecord
    steps: tuple[Step, ...]
    figures: KernelFigures | None = None
    problem: str | None = None

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def passes(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.origin not in ("stage", "override"))

    def summary(self) -> str:
        """One line: the figures, or what stands in their way; and how many passes did something."""
        changed = sum(step.changed for step in self.passes)
        if self.figures:
            subject = f"{self.figures.summary()};"
        else:
            subject = f"{self.name}: {self.problem};" if self.problem else f"{self.name}:"
        return f"{subject} {changed} of {len(self.passes)} passes changed the IR"


def finish_dump(dump: Path) -> list[KernelReport]:
    """Complete every kernel folder of a dump. Raises DumpError where a file cannot be written."""
    return [finish_kernel(folder) for folder in kernel_folders(dump)]


def finish_kernel(folder: Path) -> KernelReport:
    """Write differences, SASS and figures beside the steps of a kernel.

    Raises DumpError; what the compiler or its tools could not do is the report's `problem`.
    """
    record, steps = read_compilation(folder), tuple(read_steps(folder))
    _write_diffs(folder, steps)
    if record.goal == "pipeline":
        return KernelReport(folder, record, steps)
    binary = next((step for step in steps if step.stage in BINARY_STAGES), None)
    if binary is None or binary.file is None:
        last = steps[-1].name if steps else "nothing"
        return KernelReport(
            folder, record, steps, problem=f"the compilation did not finish (last step: {last})"
        )
    artifacts = _artifacts(folder, record, steps, binary)
    try:
        steps = (*steps, *_write_listing(folder, artifacts, steps))
        figures = kernel_figures(artifacts)
    except TilepassError as error:
        return KernelReport(folder, record, steps, problem=str(error))
    write_file(folder / FIGURES_FILE, json.dumps(figures.to_dict(), indent=2) + "\n")
    return KernelReport(folder, record, steps, figures)


def mlir_changes(folder: Path, steps: tuple[Step, ...]) -> Iterator[tuple[Step, Step]]:
    """(the step that shows the IR before, the step) for every step that changed MLIR."""
    before: Step | None = None
    for step in steps:
        if step.file is None or not step.is_mlir:
            continue
        if before is not None and step.changed:
            yield before, step
        before = step


def _write_diffs(folder: Path, steps: tuple[Step, ...]) -> None:
    for before, step in mlir_changes(folder, steps):
        assert before.file is not None
        assert step.file is not None
        left, right = read_text(folder / before.file), read_text(folder / step.file)
        text = unified(left, right, before.file, step.file)
        write_file((folder / step.file).with_suffix(".diff"), text)


def _artifacts(
    folder: Path, record: CompilationRecord, steps: tuple[Step, ...], binary: Step
) -> Artifacts:
    assert binary.file is not None
    texts = {
        step.stage: read_text(folder / step.file)
        for step in steps
        if step.file is not None and step.origin == "stage" and step is not binary
    }
    metadata: dict[str, Any] = {
        **record.options,
        "target": {"backend": record.backend, "arch": record.arch},
        "shared": _shared_bytes(folder, steps),
    }
    content = (folder / binary.file).read_bytes()
    tools = Tools(**record.tools) if record.tools else None
    compiled_by = "cute" if record.language == "cute" else "triton"
    return Artifacts(record.kernel, binary.stage, content, texts, metadata, tools, compiled_by)


def _shared_bytes(folder: Path, steps: tuple[Step, ...]) -> int | None:
    """What the last MLIR of the compilation says of shared memory, in bytes."""
    for step in reversed(steps):
        if step.file is not None and step.file.endswith(".mlir"):
            found = _SHARED.search(read_text(folder / step.file))
            return int(found[1] or found[2]) if found else None
    return None


def _write_listing(folder: Path, artifacts: Artifacts, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """SASS as one more step; AMD's assembly is a separate stage already."""
    if not artifacts.is_nvidia:
        return ()
    number = steps[-1].number + 1
    step = Step(number, "sass", "sass", "stage", "", True, f"{number:04d}-sass.sass")
    assert step.file is not None
    write_file(folder / step.file, listing(artifacts))
    return (step,)
