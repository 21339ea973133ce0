"""`--mlir-print-ir-before/after...`: the IR on stderr around passes."""

from __future__ import annotations

import sys

from tilepass.core.errors import OptionError, nearest
from tilepass.opt.options import IrPrinting, OptOptions, PrintMoment
from tilepass.opt.work import Work


class IrPrinter:
    """Prints the module before and after the passes that the flags select."""

    def __init__(self, options: OptOptions, work: Work) -> None:
        self._flags = options.ir_printing
        self._options = options
        self._work = work
        self._last = self._text() if self._flags.only_changes else ""

    def print_ir(self, moment: PrintMoment, pass_name: str) -> None:
        """Print the module if that is wanted at this moment of this pass."""
        if not self._flags.wanted(moment, pass_name):
            return
        text = self._text()
        if moment == "after" and self._flags.only_changes:
            changed, self._last = text != self._last, text
            if not changed:
                return
        heading = f"// -----// IR Dump {moment.capitalize()} {pass_name} //----- //"
        print(f"{heading}\n{text}\n", file=sys.stderr)

    def _text(self) -> str:
        return self._work.text(self._options.emit, debug_info=self._options.debug_info)


def check_pass_names(flags: IrPrinting, names: list[str]) -> None:
    """Raise OptionError for a pass that the flags name and the pipeline does not run."""
    for flag, selected in (("before", flags.before), ("after", flags.after)):
        for name in sorted(selected.difference(names)):
            raise OptionError(
                f"--mlir-print-ir-{flag}={name}: the pipeline does not run it{nearest(name, names)}"
            )
