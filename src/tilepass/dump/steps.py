"""The record of a dumped compilation: which steps it took and which files show them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tilepass.dump.store import append_line, read_lines, read_text, write_file

# Whose pass it is; or a file in place of what passes made; or the result of a stage.
Origin = Literal["triton", "cute", "tilepass", "override", "stage"]
STEPS_FILE = "steps.jsonl"
COMPILATION_FILE = "compilation.json"
# Texts that one step turns into the next: these are compared with each other.
MLIR_SUFFIXES = (".ttir", ".glir", ".ttgir", ".mlir")


@dataclass(frozen=True)
class Step:
    """One pass, the source, or the result of a stage.

    `number` counts all steps of the compilation from 0; `pass_text` is the pass with its options;
    `file` is None where an unchanged IR was not written again. `remarks` are formatted;
    `decisions` are the fields of `core.decisions.Decision`.
    """

    number: int
    stage: str
    name: str
    origin: Origin
    pass_text: str
    changed: bool
    file: str | None
    remarks: tuple[str, ...] = ()
    decisions: tuple[Mapping[str, Any], ...] = ()

    @property
    def is_mlir(self) -> bool:
        return self.file is None or self.file.endswith(MLIR_SUFFIXES)


@dataclass(frozen=True)
class CompilationRecord:
    """What was compiled: the cache key that Triton hashed to, the target, the options.

    `tools` are those of the compiling Triton (fields of dump.tools.Tools), None on AMD. A `goal`
    other than a binary is a pipeline alone: no target is needed then (arch is "").
    """

    kernel: str
    key: str
    language: str
    backend: str
    arch: int | str
    compiler: str
    pipeline: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tools: Mapping[str, str] | None = None
    goal: Literal["binary", "pipeline"] = "binary"

    @property
    def target(self) -> str:
        return f"{self.backend}:{self.arch}" if self.arch else "no target"


def write_compilation(folder: Path, record: CompilationRecord) -> None:
    """Raises DumpError."""
    text = json.dumps(asdict(record), indent=2, default=str)
    write_file(folder / COMPILATION_FILE, text + "\n")


def read_compilation(folder: Path) -> CompilationRecord:
    """The record in a kernel's folder; the file must be there."""
    return CompilationRecord(**json.loads(read_text(folder / COMPILATION_FILE)))


def append_step(folder: Path, step: Step) -> None:
    """Raises DumpError."""
    append_line(folder / STEPS_FILE, asdict(step))


def read_steps(folder: Path) -> list[Step]:
    """The steps recorded so far: all of them also when the compiling process was killed."""
    return list(map(_step, read_lines(folder / STEPS_FILE)))


def _step(line: dict[str, Any]) -> Step:
    lists: dict[str, Any] = {name: tuple(line[name]) for name in ("remarks", "decisions")}
    return Step(**{**line, **lists})


def kernel_folders(dump: Path) -> list[Path]:
    """The folders of a dump that hold a compilation, by name."""
    return sorted(file.parent for file in dump.glob(f"*/{COMPILATION_FILE}"))
