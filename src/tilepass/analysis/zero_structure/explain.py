"""Why a fragment is zero, and why one is not: the way of its data, backwards."""

from __future__ import annotations

from tilepass.analysis.zero_structure.facts import Failure, Step
from tilepass.analysis.zero_structure.machine import Machine
from tilepass.analysis.zero_structure.program import Instruction
from tilepass.analysis.zero_structure.sites import GemmSite


def why_not_run(machine: Machine, site: GemmSite) -> Failure:
    return Failure("no mma.sync of the gemm is run")


def why_not_zero(machine: Machine, product: Instruction) -> Failure:
    return Failure("not zero")


def evidence(machine: Machine, product: Instruction, operand: str) -> tuple[Step, ...]:
    return ()
