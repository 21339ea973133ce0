"""`tilepass check FILE`: the part that checks the protocol."""

from __future__ import annotations

from collections.abc import Sequence

from tilepass.core.errors import TilepassError
from tilepass.ir import engine
from tilepass.sim.inputs import Shapes, parse_shapes
from tilepass.sim.protocol.check import Finding, Outcome, check
from tilepass.sim.protocol.compiler import ProtocolProgram
from tilepass.sim.protocol.problems import default_problems, problems_of

_MOST_FINDINGS = 4
_FENCES_TO_COME = (
    "; not the fences in front of dots, which triton-nvidia-gpu-fence-insertion has yet to insert"
)
# Without any of these, threads of a program meet in global memory alone.
_ASYNCHRONOUS = ("ttng.", "ttg.local_", "ttg.async_", "ttg.warp_specialize", "amdg.")


class ProtocolError(TilepassError):
    """A protocol that can go wrong; the message holds a schedule for the first finding."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        first, *others = findings
        shown = [str(first), *(each.headline for each in others[: _MOST_FINDINGS - 1])]
        if left := len(findings) - len(shown):
            shown.append(f"note: and {left} more")
        super().__init__("\n".join(shown))
        self.findings = tuple(findings)


def check_protocol(
    module: engine.Module,
    kernel: str | None = None,
    shapes: Sequence[str | Shapes] = (),
    seeds: int = 3,
    grid: Sequence[int] | None = None,
    *,
    text: str = "",
    file: str = "",
    registers: bool = False,
) -> str | None:
    """What was checked, in words; None for a kernel that does nothing asynchronously.

    Without shapes, a few sizes are tried. For `text`, `file` and `registers` see
    ProtocolProgram. Raises ProtocolError, CannotFollow, UnsupportedOperationsError.
    """
    if not any(name.startswith(_ASYNCHRONOUS) for name in engine.operation_names(module)):
        return None
    program = ProtocolProgram(module, kernel, text=text, file=file, registers=registers)
    parsed = [parse_shapes(each) if isinstance(each, str) else each for each in shapes]
    problems = [problem for each in parsed for problem in problems_of(program, each, grid)]
    outcome = check(program, problems or default_problems(program, grid), seeds)
    if outcome.findings:
        raise ProtocolError(outcome.findings)
    said = _said(outcome) + _FENCES_TO_COME * program.fences_to_come
    return said if outcome.asynchronous else None


def _said(outcome: Outcome) -> str:
    every = f", every schedule of {outcome.exhausted} of them" if outcome.exhausted else ""
    return f"{outcome.schedules} schedules of {_counted(outcome.problems)}{every}"


def _counted(problems: int) -> str:
    return "1 problem" if problems == 1 else f"{problems} problems"
