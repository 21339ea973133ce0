"""A module in Triton's context."""

from __future__ import annotations

from tilepass.core.diagnostics import Diagnostic
from tilepass.core.pass_base import CompilerVersion, PassContext
from tilepass.core.versions import triton_version
from tilepass.frontends.triton import modules
from tilepass.frontends.triton.run_builtin import BuiltinRun
from tilepass.opt.source import Part
from tilepass.opt.steps import Step
from tilepass.opt.work import Form


class TritonWork:
    """A `Work` that takes Triton's passes as well as tilepass's own."""

    def __init__(self, part: Part) -> None:
        self._module = modules.load(part.text, part.file, first_line=part.first_line)

    @property
    def compiler(self) -> CompilerVersion:
        """The installed Triton."""
        return triton_version()

    def run(self, step: Step, context: PassContext) -> list[Diagnostic]:
        """As `Work.run`."""
        if isinstance(step, BuiltinRun):
            return step.run(self._module, context)
        # Here and not above: it loads the engine.
        from tilepass.frontends.triton import bridge

        self._module = bridge.run_passes(self._module, [step], lambda _: context)
        return []

    def operation_names(self) -> set[str]:
        """As `Work.operation_names`."""
        return modules.operation_names(self._module)

    def text(self, form: Form, *, debug_info: bool) -> str:
        """As `Work.text`; the generic form has its aliases expanded."""
        if form == "pretty":
            text = self._module.str() if debug_info else self._module.str_nodebug()
            return text.rstrip("\n")
        from tilepass.ir import engine

        module = engine.parse(modules.generic_text(self._module))
        text = module.operation.get_asm(enable_debug_info=debug_info, print_generic_op_form=True)
        return text.rstrip("\n")
