"""Comparing what a program, or a jitted function with its signature, is compiled to by each arm.

Nothing is timed: which launches of a program belong together only the program knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeAlias

from tilepass.ab.arms import portable_remarks
from tilepass.ab.events import ArmFailed, ArmReady, Done, KernelFact, Remarked, Started
from tilepass.ab.gpu import versions
from tilepass.ab.job import Arm, Job, Point
from tilepass.ab.report import Report
from tilepass.binary.elf import code_hash
from tilepass.binary.figures import KernelFigures
from tilepass.core.errors import TilepassError
from tilepass.core.pass_base import Target
from tilepass.core.remarks import Remark
from tilepass.dump.program_run import Recording
from tilepass.dump.report import finish_kernel

Record: TypeAlias = "Callable[[Arm], AbstractContextManager[Recording]]"


@dataclass(frozen=True)
class _Compiled:
    fact: KernelFact
    figures: KernelFigures
    remarks: list[Remark]


def compare_compiled(
    what: str, arms: Sequence[Arm], target: Target, record: Record, load: Sequence[str] = ()
) -> Report:
    """A report with a point for every kernel that the first arm compiles.

    Kernels of other arms are matched by name, and among those of one name by their order. Raises
    TilepassError where an arm's kernel does not come to a binary.
    """
    found = [_compile(arm, record) for arm in arms]
    points = list(dict.fromkeys(key for each in found for key in each))
    job = Job(what, tuple(arms), tuple(map(_point, points)), load=tuple(load))
    report = Report(job)
    report.facts.update({"compiled for": str(target), **versions()})
    for index, key in enumerate(points):
        report.add(Started(index, "compile"))
        for arm, kernels in enumerate(found):
            if key not in kernels:
                report.add(ArmFailed(index, arm, "compiles no such kernel"))
                continue
            kernel = kernels[key]
            report.add(Remarked(index, arm, portable_remarks(kernel.remarks)))
            report.add(ArmReady(index, arm, (kernel.fact,), "", equal_bits=None))
        report.add(Done(index, "compiled"))
    report.figures = {
        kernel.fact.code_hash: kernel.figures for each in found for kernel in each.values()
    }
    return report


def _compile(arm: Arm, record: Record) -> dict[tuple[str, int], _Compiled]:
    """What an arm compiles, by name and number."""
    found: dict[tuple[str, int], _Compiled] = {}
    count = Counter[str]()
    with record(arm) as recording:
        if recording.status:
            raise TilepassError(
                f"arm {arm.label}: a program that fails may not have compiled all that it would"
            )
        for kernel in recording.kernels:
            name = kernel.record.kernel
            count[name] += 1
            binary, figures = kernel.binary, finish_kernel(kernel.folder).figures
            if binary is None or figures is None:
                raise TilepassError(f"arm {arm.label}: {kernel.folder.name} came to no binary")
            fact = KernelFact(name, code_hash(binary.read_bytes()), "")
            found[name, count[name]] = _Compiled(fact, figures, kernel.remarks)
    return found


def _point(key: tuple[str, int]) -> Point:
    name, number = key
    return Point((), {"kernel": name if number == 1 else f"{name}#{number}"})
