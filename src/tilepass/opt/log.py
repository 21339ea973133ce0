"""Where diagnostics and remarks of a run go: to stderr, or into the list that is verified."""

from __future__ import annotations

import re
import sys

from tilepass.core.diagnostics import Diagnostic, SourceLocation
from tilepass.core.errors import TilepassError, report
from tilepass.core.remarks import Remark
from tilepass.opt.options import RemarkFilter
from tilepass.opt.verify_diagnostics import Produced


class Log:
    """The diagnostics of one part of the input.

    In verification every remark can be expected; one that the `-Rpass` flags do not ask for need
    not be.
    """

    def __init__(self, file: str, remarks: RemarkFilter, *, verify: bool) -> None:
        self._file = file
        self._remarks = remarks
        self._verify = verify
        self.produced: list[Produced] = []

    def diagnostic(self, diagnostic: Diagnostic) -> None:
        """A message of a parser or of one of Triton's passes."""
        if self._verify:
            self.produced.append(Produced(diagnostic))
        else:
            print(diagnostic.format(), file=sys.stderr)

    def remark(self, remark: Remark) -> None:
        """A remark of a pass of tilepass."""
        wanted = self._remarks.wanted(remark.kind, remark.pass_name)
        if self._verify:
            message = f"[{remark.pass_name}] {remark.kind}: {remark.message}"
            diagnostic = Diagnostic("remark", message, remark.location)
            # A remark without a place concerns no line that could carry the comment.
            self.produced.append(Produced(diagnostic, not wanted or remark.location is None))
        elif wanted:
            print(remark.format(), file=sys.stderr)

    def failure(self, error: TilepassError) -> None:
        """What ended the work on the part."""
        if not self._verify:
            print(report(error), file=sys.stderr)
            return
        from tilepass.frontends.triton.capture import parse_diagnostics

        diagnostics, _ = parse_diagnostics(str(error))
        found = diagnostics or [Diagnostic("error", str(error), self._place_in(str(error)))]
        self.produced.extend(map(Produced, found))

    def _place_in(self, message: str) -> SourceLocation | None:
        """The place that the message of a pass names, which need not begin with it."""
        match = re.search(rf"{re.escape(self._file)}:(\d+):(\d+)", message)
        return SourceLocation(self._file, int(match[1]), int(match[2])) if match else None
