"""A module in the IR engine alone."""

from __future__ import annotations

from tilepass.core.diagnostics import Diagnostic
from tilepass.core.errors import PassFailure, TilepassError
from tilepass.core.pass_base import Pass, PassContext
from tilepass.frontends.cute.versions import cute_version
from tilepass.frontends.triton.reproducer import Failure
from tilepass.frontends.triton.versions import triton_version
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
        else:
            self._flags = ("--allow-unregistered-dialect",)
            # Operations of unknown dialects do not change whose pipeline the rest is for.
            self.compiler = triton_version()
        module = engine.parse("\n" * (part.first_line - 1) + part.text, part.file)
        # The engine calls a text in memory "-".
        self._module = engine.parse(with_file_name(engine.print_generic(module), part.file))

    def run(self, step: Step, context: PassContext) -> list[Diagnostic]:
        """As `Work.run`."""
        if not isinstance(step, Pass):
            raise TilepassError(
                f"'{step.name}' is a pass of Triton; it cannot run on a CuTe module or on one with "
                "operations of unknown dialects"
            )
        before = self.text("generic", debug_info=True)
        # The DSL builds operations in the context that is entered.
        with self._module.context, engine.ir.Location.unknown():
            reason = checked_run(step, self._module, context)
        if reason:
            failure = Failure([step], context, before, reason, self._flags)
            raise PassFailure(failure.message)
        return []

    def operation_names(self) -> set[str]:
        """As `Work.operation_names`."""
        return engine.operation_names(self._module)

    def text(self, form: Form, *, debug_info: bool) -> str:
        """As `Work.text`; operations of unknown dialects have no pretty form."""
        text = self._module.operation.get_asm(
            enable_debug_info=debug_info, print_generic_op_form=form == "generic"
        )
        return text.rstrip("\n")
