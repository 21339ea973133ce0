"""The files of one dumped compilation, written step by step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tilepass.core.pass_base import PassContext
from tilepass.dump.ir_text import without_locations
from tilepass.dump.steps import MLIR_SUFFIXES, Origin, Step, append_step
from tilepass.dump.store import write_file
from tilepass.opt.work import is_cute


@dataclass(frozen=True)
class RecorderOptions:
    """What to write: IR after passes that changed nothing, locations, kernels by name."""

    folder: Path
    only_changed: bool = False
    locations: bool = False
    kernels: re.Pattern[str] = field(default_factory=lambda: re.compile(""))


@dataclass(frozen=True)
class Said:
    """Remarks, formatted, and the fields of the decisions of one pass run."""

    remarks: tuple[str, ...] = ()
    decisions: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def in_context(cls, context: PassContext, earlier_decisions: int = 0) -> Said:
        """What a pass said in its context, which held some decisions before."""
        return cls(
            tuple(remark.format() for remark in context.remarks.remarks),
            tuple(map(asdict, context.decisions[earlier_decisions:])),
        )


@dataclass
class KernelFiles:
    """The files of one compilation."""

    folder: Path
    options: RecorderOptions
    number: int = 0
    text: str = ""

    def add_source(self, text: str) -> None:
        """The IR before the first pass."""
        suffix = "mlir" if is_cute(text) else "ttgir" if "ttg." in text else "ttir"
        self._add_mlir(suffix, "source", "stage", "", text, suffix)

    def add_pass(self, stage: str, pass_text: str, origin: Origin, text: str, said: Said) -> None:
        """The IR after a pass."""
        if origin == "override":
            self._add_override(stage, pass_text, text)
            return
        name = pass_text.partition("{")[0]
        # Other stages' passes work on MLIR, too, and what they lead to is something else (LLVM IR).
        suffix = stage if f".{stage}" in MLIR_SUFFIXES else "mlir"
        self._add_mlir(stage, name, origin, pass_text, text, suffix, said)

    def add_stage(self, stage: str, artifact: str | bytes) -> None:
        """The result of a stage, always written."""
        changed = True
        if isinstance(artifact, str) and f".{stage}" in MLIR_SUFFIXES:
            artifact = self._shown(artifact)
            changed = artifact != self.text
            self.text = artifact
        file = f"{self.number:04d}-{stage}.{stage}"
        self._add(Step(self.number, stage, stage, "stage", "", changed, file), artifact)

    def _add_override(self, stage: str, file: str, text: str) -> None:
        """What a user's file holds, whatever the stage makes."""
        if f".{stage}" in MLIR_SUFFIXES:
            self._add_mlir(stage, "override", "override", file, text, stage, Said())
            return
        name = f"{self.number:04d}-{stage}-override.{stage}"
        self._add(Step(self.number, stage, "override", "override", file, True, name), text)

    def _add_mlir(
        self,
        stage: str,
        name: str,
        origin: Origin,
        pass_text: str,
        text: str,
        suffix: str,
        said: Said = Said(),
    ) -> None:
        text = self._shown(text)
        changed = text != self.text
        self.text = text
        label = name if origin == "stage" else f"{stage}-{name}"
        file = f"{self.number:04d}-{slug(label)}.{suffix}"
        step = Step(
            self.number,
            stage,
            name,
            origin,
            pass_text,
            changed,
            None if self.options.only_changed and not changed else file,
            said.remarks,
            said.decisions,
        )
        self._add(step, text)

    def _add(self, step: Step, content: str | bytes) -> None:
        """The file first: a step on record has its file."""
        if step.file is not None:
            write_file(self.folder / step.file, content)
        append_step(self.folder, step)
        self.number += 1

    def _shown(self, text: str) -> str:
        return text if self.options.locations else without_locations(text)


def slug(name: str) -> str:
    """A name as part of a file name, at most 80 characters."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-")[:80] or "unnamed"
