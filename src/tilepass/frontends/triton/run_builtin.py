"""Running one of Triton's own passes on a module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from triton._C import libtriton

from tilepass.core.diagnostics import Diagnostic
from tilepass.core.errors import PassFailure
from tilepass.core.pass_base import PassContext, Target
from tilepass.core.pipeline_spec import PipelineItem
from tilepass.core.reproducer import Failure
from tilepass.frontends.triton.builtin_passes import BuiltinPass
from tilepass.frontends.triton.capture import capture_diagnostics, parse_diagnostics
from tilepass.frontends.triton.modules import TritonModule, new_context

# When a pass fails, libtriton dumps the module from before it with MLIR's reproducer section...
_DUMP = re.compile(
    r"^(?:[#!][\w$]+ = .*\n)*(?:\"builtin\.)?module\b.*?^\{-#\n.*?^#-\}\n", re.MULTILINE | re.DOTALL
)
# ... and adds an error that names neither a place nor a reason.
_EPILOGUE = "Failures have been detected while processing an MLIR pass pipeline"
# It survives an assertion or a segmentation fault in a pass, and says so in many words.
_CRASH = "A signal was caught while processing the MLIR module"
# The pass that gives tensors their layouts, for a number of warps.
_TO_WARPS = "convert-triton-to-tritongpu"
_WARPS = "num-warps"


@dataclass(frozen=True)
class BuiltinRun:
    """One of Triton's passes with the options for a run of it."""

    builtin: BuiltinPass
    options: Mapping[str, str]

    @property
    def name(self) -> str:
        """The pass's MLIR name."""
        return self.builtin.name

    def __str__(self) -> str:
        return str(PipelineItem(self.name, self.options))

    def check(self, target: Target) -> None:
        """Check the options without a module. Raises OptionError."""
        self.builtin.add(_new_manager(new_context()), self.options, target)

    def run(self, module: TritonModule, context: PassContext) -> list[Diagnostic]:
        """Run the pass on `module`, in place; returns the diagnostics that it emitted.

        What it printed besides goes to stderr. Raises OptionError, and PassFailure with a
        reproducer; after that the module and its context must not be used again.
        """
        manager = _new_manager(module.context)
        self.builtin.add(manager, self.options, context.target)
        if self.name == _TO_WARPS and _WARPS not in self.options:
            assumed = next(one.default for one in self.builtin.options if one.name == _WARPS)
            message = f"TTIR names no number of warps: {assumed} are assumed ({_WARPS}=N)"
            context.remarks.missed(None, message)
        before = module.str()
        with capture_diagnostics(forward=False) as captured:
            try:
                manager.run(module, self.name)
            except RuntimeError as error:
                reason = failure_reason(captured.text) or f"failed: {error}"
                failure = Failure([self], context, before, reason)
                raise PassFailure(failure.message) from error
        captured.forward()
        return captured.diagnostics


def _new_manager(context: Any) -> Any:
    return cast("Any", libtriton).ir.pass_manager(context)


def crashed(text: str) -> bool:
    """Whether a pass ended by a signal, by what was printed."""
    return _CRASH in text


def module_in_dump(text: str) -> str | None:
    """The module from before a failed pass manager's passes, as libtriton prints it."""
    dump = _DUMP.search(text)
    return dump[0][: dump[0].index("{-#")] if dump else None


def failure_reason(text: str) -> str:
    """How a pass failed: its diagnostics and what else it printed, without what libtriton adds."""
    diagnostics, rest = parse_diagnostics(_DUMP.sub("", text))
    told = [one for one in diagnostics if not one.message.startswith((_EPILOGUE, _CRASH))]
    lines = [*rest.splitlines(), *(one.format() for one in told)]
    if not lines and not crashed(text):
        return ""
    return "\n".join(["crashed" if crashed(text) else "failed:", *lines])
