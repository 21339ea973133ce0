"""Saying which of Triton's passes failed on IR that Python passes have rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilepass.core.errors import ParseError
from tilepass.core.pass_base import PassContext, Placed
from tilepass.core.reproducer import Failure
from tilepass.frontends.triton.capture import Captured, capture_diagnostics
from tilepass.frontends.triton.modules import load, new_context
from tilepass.frontends.triton.recording import RecordedPass, RecordingPassManager
from tilepass.frontends.triton.run_builtin import crashed, failure_reason, module_in_dump


@dataclass(frozen=True)
class _TritonPass:
    """One of Triton's passes, by its name and with its options."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TritonFailure:
    """A run of `segment` failed on a module that `changed_by` have rewritten."""

    manager: RecordingPassManager
    segment: Sequence[RecordedPass]
    changed_by: Sequence[Placed]
    context: PassContext

    def message(self, captured: Captured, error: RuntimeError) -> str:
        """The pass that failed, its diagnostics, whose IR it failed on, and the reproducer."""
        reason = failure_reason(captured.text) or f"failed: {error}"
        blamed = ", ".join(dict.fromkeys(map(str, self.changed_by)))
        how, _, details = reason.partition("\n")
        reason = f"{how.rstrip(':')} on the IR that {blamed} left\n{details}".rstrip()
        dump = module_in_dump(captured.text)
        # After a crash nothing is tried again in this process.
        found = self._culprit(dump) if dump and not crashed(captured.text) else None
        if found is None:
            first, last = (self._describe(self.segment[end]).name for end in (0, -1))
            return f"one of Triton's passes {first} .. {last} {reason}"
        culprit, module_text = found
        return Failure([culprit], self.context, module_text, reason).message

    def _culprit(self, dump: str) -> tuple[_TritonPass, str] | None:
        """The first pass that fails by itself, and the module before it."""
        try:
            module: Any = load(dump, "<reproducer>", new_context())
        except ParseError:
            return None
        manager = RecordingPassManager(module.context, self.manager.on_run)
        for recorded in self.segment:
            before = module.str()
            with capture_diagnostics(forward=False):
                try:
                    manager.build([recorded]).run(module, "reproducer")
                except RuntimeError:
                    return self._describe(recorded), before
        return None

    def _describe(self, recorded: RecordedPass) -> _TritonPass:
        context = self.manager.context
        return _TritonPass(recorded.name(context), recorded.text(context))
