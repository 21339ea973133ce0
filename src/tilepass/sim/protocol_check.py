"""`tilepass check FILE`: the part that checks the protocol."""

from __future__ import annotations

from collections.abc import Sequence

from tilepass.core.errors import TilepassError
from tilepass.ir import engine
from tilepass.sim.inputs import Shapes, parse_shapes, resolved
from tilepass.sim.plan import make_plan
from tilepass.sim.protocol.check import Finding, check
from tilepass.sim.protocol.compiler import ProtocolProgram
from tilepass.sim.protocol.problems import Problem, problems_of, simple_problems

_MOST_FINDINGS = 4
_FENCES_TO_COME = (
    "; not the fences before dots, which triton-nvidia-gpu-fence-insertion has yet to insert"
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
    problems = [
        problem
        for each in parsed
        for problem in problems_of(program, resolved(each, program.parameters), grid)
    ]
    outcome = check(program, problems or default_problems(program, grid), seeds)
    if outcome.findings:
        raise ProtocolError(outcome.findings)
    said = f"{outcome.schedules} schedules of {_listed(outcome.problems)}"
    return said + _FENCES_TO_COME * program.fences_to_come if outcome.asynchronous else None


def default_problems(program: ProtocolProgram, grid: Sequence[int] | None = None) -> list[Problem]:
    """Those of a plan for the kernel, and a few simple ones."""
    plan = make_plan([program.module], program.name, grid)
    planned = [
        Problem(case.shapes, place, case.grid, case.said)
        for case in plan.cases
        if case.shapes.named
        for place in case.programs
    ]
    return [*simple_problems(program, grid), *planned]


def _listed(problems: Sequence[Problem]) -> str:
    """How many, and their shapes."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    shapes = dict.fromkeys(each.said or str(each.shapes) for each in problems)
    return f"{count} (each a program and its shapes, {'; '.join(shapes)})"
