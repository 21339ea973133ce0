"""The hardware's counters of one launch, by Nsight Compute: tensor cores, L2 and memory traffic.

Each launch is profiled in its own process (`python -m benchmarks.counters FILE`), which
launches twice before it lets the profiler look: compilation and a cold instruction cache are past.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilepass.ab.job import Job, Task, decode_job, encode_job
from tilepass.ab.supervisor import worker_environment
from tilepass.core.errors import TilepassError

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = "tilepass.counters/1"
# Sections hold what each GPU has under names of its own; the metrics named are on all of them.
SECTIONS = ("SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis")
METRICS = ("gpu__time_duration.sum", "lts__t_bytes.sum", "dram__bytes.sum")
_SHARE = "avg.pct_of_peak_sustained_elapsed"


@dataclass(frozen=True)
class Figure:
    """What a counter tells: its column's name, the unit ncu has it in, and that over ours."""

    label: str
    unit: str
    scale: float = 1.0


FIGURES: Mapping[str, Figure] = {
    "gpu__time_duration.sum": Figure("us", "ns", 1e3),
    f"sm__pipe_tensor_cycles_active.{_SHARE}": Figure("tensor cores busy, %", "%"),
    f"lts__throughput.{_SHARE}": Figure("L2 busy, %", "%"),
    "lts__t_bytes.sum": Figure("L2, MB", "byte", 1e6),
    "dram__bytes.sum": Figure("DRAM, MB", "byte", 1e6),
}


@dataclass(frozen=True)
class Counted:
    """A kernel that was profiled: counters by name, with their units."""

    kernel: str
    values: Mapping[str, str]

    def figures(self) -> dict[str, float]:
        """By label what FIGURES names, as far as the GPU has it. Raises TilepassError on units that
        are not those of ncu's raw page."""
        found: dict[str, float] = {}
        for name, figure in FIGURES.items():
            if name not in self.values:
                continue
            number, _, unit = self.values[name].partition(" ")
            if unit != figure.unit:
                raise TilepassError(f"ncu: {name} in '{unit}', expected '{figure.unit}'")
            found[figure.label] = float(number.replace(",", "")) / figure.scale
        return found

    def describe(self) -> str:
        """The figures that tell of limits, on one line."""
        shown = [f"{label} {value:.1f}" for label, value in self.figures().items()]
        return f"{self.kernel}: {'; '.join(shown) or 'none of the counters'}"


def count(job: Job, point: int, arm: int, seconds: float = 120.0) -> list[Counted]:
    """Profile one launch of an arm at a point, kernel by kernel. Raises TilepassError."""
    profiler = find_profiler()
    with tempfile.TemporaryDirectory() as folder:
        task, log = Path(folder, "job.json"), Path(folder, "counters.csv")
        task.write_text(encode_job(job, [Task(point, (arm,))]))
        command = [profiler, *options(), "--log-file", str(log)]
        command += [sys.executable, "-m", "benchmarks.counters", str(task)]
        status, errors = run_within(command, seconds)
        text = log.read_text() if log.exists() else ""
    if status or not (found := parse(text)):
        said = [*text.splitlines(), *errors.splitlines()][-3:]
        raise TilepassError(f"ncu read no counters (status {status}): {' | '.join(said)}")
    return found


def find_profiler() -> str:
    """The path of ncu. Raises TilepassError."""
    profiler = shutil.which("ncu")
    if profiler is None:
        raise TilepassError("ncu (Nsight Compute) is not on the PATH: no hardware counters")
    return profiler


def run_within(command: Sequence[str], seconds: float) -> tuple[int, str]:
    """Exit status and standard error. Past the time limit the profiled program is ended too."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=worker_environment(),
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise TilepassError(f"ncu did not end within {seconds:.0f} s") from error
    return process.returncode, errors


def options() -> list[str]:
    """Of ncu: the clocks are left as they are, and only what is bracketed is profiled."""
    chosen = ["--clock-control", "none", "--profile-from-start", "off", "--csv", "--page", "raw"]
    for section in SECTIONS:
        chosen += ["--section", section]
    return [*chosen, "--metrics", ",".join(METRICS)]


def parse(text: str) -> list[Counted]:
    """What ncu wrote: a header, a line of units, and a line for each kernel."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = list(csv.reader(io.StringIO("\n".join(lines))))
    if len(rows) < 3:
        return []
    header, units = rows[0], rows[1]
    name = header.index("Kernel Name")
    return [
        Counted(
            row[name],
            {
                key: f"{value} {unit}".strip()
                for key, value, unit in zip(header, row, units, strict=True)
                if "__" in key
            },
        )
        for row in rows[2:]
    ]


def launch_for_profiler(job: Job, task: Task) -> None:
    """Launch the task's arm; the third launch is between the profiler's brackets."""
    import torch

    from tilepass.ab.arms import arm_enabled
    from tilepass.ab.subjects import find_library, find_subject

    subject, point = find_subject(job.kernel), job.points[task.point]
    arm = job.arms[task.arms[0]]
    config = subject.configure(point, arm)
    inputs = subject.make_inputs(point.shape, job.seed(task.point), config)
    launcher: Callable[[], Any] = (
        (lambda: find_library(arm.library)(inputs))
        if arm.library
        else subject.launcher(inputs, config)
    )
    profiler: Any = torch.cuda.profiler
    with arm_enabled(arm):
        for _ in range(2):
            launcher()
        torch.cuda.synchronize()
        profiler.start()
        launcher()
        torch.cuda.synchronize()
        profiler.stop()


def main(arguments: Sequence[str]) -> int:
    """The profiled process; `arguments` is the file with the job."""
    job, tasks = decode_job(Path(arguments[0]).read_text())
    launch_for_profiler(job, tasks[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
