"""A module in the IR engine alone."""

from __future__ import annotations

from dataclasses import replace

from tilepass.core import underway
from tilepass.core.diagnostics import Diagnostic
from tilepass.core.errors import PassFailure, TilepassError
from tilepass.core.pass_base import Pass, PassContext
from tilepass.core.reproducer import Failure, watched
from tilepass.core.versions import cute_version, triton_version
from tilepass.ir import engine
from tilepass.ir.checked_run import checked_run
from tilepass.opt.source import Part
from tilepass.opt.steps import Step
from tilepass.opt.work import Form, is_cute, with_file_name


class EngineWork:
    """A `Work` that takes tilepass's own passes only."""

    def __init__(self, part: Part) -> None:
        self._flags: tuple[str, ...] = ()
        if is_cute(part.text):
            self.compiler = cute_version()
            self._module = read_cute(part)
        else:
            self._flags = ("--allow-unregistered-dialect",)
            # Operations of unknown dialects do not change whose pipeline the rest is for.
            self.compiler = triton_version()
            self._module = _named(
                underway.under_name(
                    f"reading {part.file} with the IR engine's parser",
                    lambda: engine.parse(_padded(part), part.file),
                ),
                part,
            )

    def run(self, step: Step, context: PassContext) -> list[Diagnostic]:
        """As `Work.run`."""
        if not isinstance(step, Pass):
            raise TilepassError(
                f"'{step.name}' is a pass of Triton; it cannot run on a CuTe module or on one with "
                "operations of unknown dialects"
            )
        before = self.text("generic", debug_info=True)
        crash = Failure([step], context, before, "crashed", self._flags)
        problem = watched(crash, lambda: checked_run(step, self._module, context))
        if problem:
            failure = replace(crash, reason=problem.reason)
            raise PassFailure(failure.message) from problem.cause
        return []

    def operation_names(self) -> set[str]:
        """As `Work.operation_names`."""
        return engine.operation_names(self._module)

    def text(self, form: Form, *, debug_info: bool) -> str:
        """As `Work.text`; operations of unknown dialects have no pretty form, and with debug info
        none has."""
        text = engine.print_readable(self._module, locations=debug_info, generic=form == "generic")
        return text.rstrip("\n")


def read_cute(part: Part) -> engine.Module:
    """The module in a part that holds one of CuTe's. Raises ParseError with the diagnostics."""
    # Registered dialects read aliases themselves, and the lines stay where they are.
    module = underway.under_name(
        f"reading {part.file} with the IR engine's parser",
        lambda: engine.parse_expanded(_padded(part), part.file),
    )
    return _named(module, part)


def _padded(part: Part) -> str:
    return "\n" * (part.first_line - 1) + part.text


def _named(module: engine.Module, part: Part) -> engine.Module:
    """The module with the file's name in its locations: the engine calls a text in memory "-"."""
    return engine.parse(with_file_name(engine.print_generic(module), part.file))
