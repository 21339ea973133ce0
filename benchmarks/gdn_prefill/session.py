"""A run of the study: every type and case, printed and written as it goes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.gdn_prefill.arms import SCHEMA, Arm
from benchmarks.gdn_prefill.build import Built, load
from benchmarks.gdn_prefill.goals import misses
from benchmarks.gdn_prefill.measure import CaseResult, Loaded, check, time_case
from benchmarks.gdn_prefill.workload import CHECKED, TIMED, Case, cases_named
from tilepass.ab.clocks import ClockMonitor
from tilepass.ab.gpu import NvmlClock, gpu_facts
from tilepass.ab.protocol import Plan
from tilepass.ab.table import format_estimate
from tilepass.core.errors import TilepassError
from tilepass.core.files import write_json


class Session:
    """Times `arms` (the first is dense) for `seconds` in all, and writes `out` after each case."""

    def __init__(
        self, arms: list[Arm], dtypes: list[str], copies: int, seconds: float, out: Path
    ) -> None:
        self.arms, self.dtypes, self.copies = arms, dtypes, copies
        self.seconds, self.out = seconds, out
        self.names = [arm.name for arm in arms]
        self._content: dict[str, Any] = {"schema": SCHEMA, "cases": []}
        self._misses: dict[str, list[str]] = {name: [] for name in self.names[1:]}

    def run(self, built: Mapping[tuple[str, str], Built], only: str | None) -> int:
        """Everything, or the cases named in `only`. Returns the exit status.

        Raises TilepassError without a GPU.
        """
        import torch

        if not torch.cuda.is_available():
            raise TilepassError("no GPU: --compile stops before one is needed")
        cases = list(TIMED) if only is None else cases_named(only)
        cuda: Any = torch.cuda
        clock = NvmlClock(str(cuda.get_device_properties(0).uuid))
        facts = gpu_facts(clock.facts())
        self._content |= {
            "environment": facts,
            "arms": {arm.name: arm.pipeline for arm in self.arms},
            "built": {f"{dtype} {name}": each.figures() for (dtype, name), each in built.items()},
        }
        print(f"{facts['GPU']}; time / dense, below 1 is faster; A'/A in the last column")
        each = self.seconds / (len(cases) * len(self.dtypes))
        with ClockMonitor(clock) as monitor:
            for dtype in self.dtypes:
                self._time(dtype, built, cases, Plan(seconds=each), monitor)
        return self._judge()

    def _time(
        self,
        dtype: str,
        built: Mapping[tuple[str, str], Built],
        cases: list[Case],
        plan: Plan,
        monitor: ClockMonitor,
    ) -> None:
        arms = [Loaded(name, tuple(load(built[dtype, name], self.copies))) for name in self.names]
        duplicate = Loaded("dense'", tuple(load(built[dtype, self.names[0]], self.copies)))
        for case in CHECKED:
            self._keep(check(case, dtype, arms))
        for case in cases:
            self._keep(time_case(case, dtype, arms, duplicate, plan, monitor))

    def _keep(self, result: CaseResult) -> None:
        self._content["cases"].append(result.to_dict(self.names))
        write_json(self.out, self._content)
        print(_row(result, self.names), flush=True)
        for name, found in misses(result, self.names).items():
            self._misses[name] += found

    def _judge(self) -> int:
        for name, found in self._misses.items():
            print(f"{name}: " + ("; ".join(found) or "reaches every goal"))
        first = self.names[1] if len(self.names) > 1 else None
        return 1 if first is not None and self._misses[first] else 0


def _row(result: CaseResult, names: list[str]) -> str:
    bits = (
        "bits equal"
        if all(result.equal_bits.values())
        else "BITS DIFFER: "
        + ", ".join(name for name, equal in result.equal_bits.items() if not equal)
    )
    head = f"{result.dtype:5}{result.case:28}"
    errors = f"errors {result.errors.output:.1e} {result.errors.state:.1e}"
    if result.summary is None:
        return f"{head} {bits}, {errors}"
    ratios = [
        f"{names[each.arm]} {format_estimate(each.estimate)} {each.verdict}"
        for each in result.summary.comparisons
    ]
    control = f"A'/A {format_estimate(result.summary.duplicate.estimate)}"
    time = f"{result.summary.medians[0]:.1f} us x{result.launches}"
    return "\n    ".join(
        [f"{head} {time}, {bits}, {errors}, {result.rounds} rounds", *ratios, control]
    )
