"""A run of a pipeline on a file's module, pass by pass: no stage of a compiler runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from tilepass.core.diagnostics import Diagnostic
from tilepass.core.pass_base import PassContext, Target
from tilepass.core.pipeline_spec import parse_pipeline
from tilepass.core.registry import load_file
from tilepass.core.remarks import RemarkListener
from tilepass.opt.contexts import make_context, target_of_module
from tilepass.opt.light_triton import load_libtriton
from tilepass.opt.source import Part
from tilepass.opt.steps import Step, resolve
from tilepass.opt.work import Work, open_work


@dataclass(frozen=True)
class FileRun:
    """A module, the passes to run on it in order, and the target that they are told of."""

    work: Work
    steps: list[Step]
    target: Target | None

    @classmethod
    def of(
        cls,
        source: Part,
        pipeline: str,
        target: Target | None,
        *,
        default: Target | None = None,
        load: Iterable[str | Path] = (),
    ) -> FileRun:
        """The run of a pipeline's text; for `target`, else the module's own, else the default.

        Raises TilepassError: the module does not parse, a pass or its option is unknown.
        """
        for file in load:
            load_file(file)
        load_libtriton()
        target = target or target_of_module(source) or default
        steps = resolve(parse_pipeline(pipeline), target)
        return cls(open_work(source, allow_unregistered_dialect=False), steps, target)

    def run(self, step: Step, listener: RemarkListener) -> tuple[PassContext, list[Diagnostic]]:
        """Run one of the steps; its remarks go to the listener. Raises PassFailure."""
        context = make_context(step, self.work, self.target, listener)
        # Standard output is for what the command prints.
        with redirect_stdout(sys.stderr):
            diagnostics = self.work.run(step, context)
        return context, diagnostics
