"""Measure what tilepass costs: compile time, memory, commands; each against its target.

Usage: python scripts/bench_overhead.py [--kernels N] [--rounds N] [--only TEXT]

Needs no GPU. CPU times are those of this process and of the assemblers it starts; on a busy machine
take more rounds. bench_launch.py measures launches. The status is 1 if a target is missed, 2 if
`--only` selects nothing.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.corpus import overhead

SPECIALIZED_EPILOGUES = ("none", "bias", "bias_gelu", "residual")
SMALL_FILE = "module {\n  tt.func public @f(%x: i32) {\n    tt.return\n  }\n}\n"


@dataclass(frozen=True)
class Figure:
    """A measured number and the number that it must not exceed."""

    what: str
    value: float
    unit: str
    target: float
    details: str = ""

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.value <= self.target

    def __str__(self) -> str:
        verdict = "met" if self.met else "MISSED"
        details = f" ({self.details})" if self.details else ""
        return (
            f"{verdict:6} {self.what}: {self.value:.2f} {self.unit}, "
            f"at most {self.target:g} {self.unit}{details}"
        )


def main() -> int:
    """Print one line per figure as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s [options]")
    parser.add_argument("--kernels", type=_positive, help="compile only so many kernels")
    parser.add_argument("--rounds", type=_positive, default=8, help="compilations of each kind")
    parser.add_argument("--only", default="", help="only figures whose name contains this")
    parser.add_argument("--memory-child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_child:
        print(*overhead.trip_memory(5.0))
        return 0
    measurements = dict(_measurements(options.kernels, options.rounds))
    chosen = [measure for name, measure in measurements.items() if options.only in name]
    if not chosen:
        parser.error(f"no figure is called like {options.only!r}: {', '.join(measurements)}")
    met = True
    for measure in chosen:
        figure = measure()
        met &= figure.met
        print(figure, flush=True)
    return 0 if met else 1


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


def _measurements(kernels: int | None, rounds: int) -> Iterator[tuple[str, Callable[[], Figure]]]:
    yield "fires", lambda: _compile("a pass that fires", "test-round-trip", 3.0, kernels, rounds)
    yield (
        "idle",
        lambda: _compile(
            "a pass whose touches do not occur", "touches-nothing", 0.3, kernels, rounds
        ),
    )
    yield "specialize", lambda: _specialize(rounds)
    yield "trip", _trip
    yield "memory", _memory
    yield "help", lambda: _command("tilepass-opt --help", ["--help"], 150.0)
    yield "opt", _small_file


def _compile(what: str, pipeline: str, target: float, kernels: int | None, rounds: int) -> Figure:
    shares = overhead.compile_overhead(pipeline, overhead.compilable(kernels), rounds)
    percents = sorted(100 * share for share in shares)
    details = f"median of {len(percents)} kernels"
    if len(percents) > 1:
        quartiles = statistics.quantiles(percents, n=4)
        details += f"; quartiles {quartiles[0]:.2f} and {quartiles[2]:.2f}"
    median = statistics.median(percents)
    return Figure(f"CPU time to cubin with {what}", median, "%", target, details)


def _specialize(rounds: int) -> Figure:
    variants = [{"flatten": False, "epilogue": name} for name in SPECIALIZED_EPILOGUES]
    shares = overhead.pass_shares("persistent_matmul", variants, "epilogue-warp-specialize", rounds)
    percents = [100 * share for share in shares]
    named = zip(SPECIALIZED_EPILOGUES, percents, strict=True)
    details = ", ".join(f"{name} {percent:.2f}" for name, percent in named)
    what = "CPU time to cubin inside epilogue-warp-specialize"
    return Figure(what, max(percents), "%", 2.0, f"the most of {details}")


def _trip() -> Figure:
    name, operations, module = overhead.module_of_size(200)
    times = overhead.trip_times(module, 400)
    details = f"median of {len(times)}, the fastest {min(times):.2f}; {name}"
    what = f"CPU time of a trip of a module of {operations} operations"
    return Figure(what, statistics.median(times), "ms", 5.0, details)


def _memory() -> Figure:
    child = [sys.executable, str(Path(__file__).resolve()), "--memory-child"]
    size, peak = map(float, subprocess.check_output(child, text=True).split()[-2:])
    return Figure(f"memory of a trip of a {size:.1f} MB module", peak, "MB", 50.0)


def _small_file() -> Figure:
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(SMALL_FILE)
        file.flush()
        return _command(
            "tilepass-opt on a small file", [file.name, "-p", "test-round-trip"], 1200.0
        )


def _command(what: str, arguments: list[str], target: float) -> Figure:
    command = [str(Path(sys.executable).with_name("tilepass-opt")), *arguments]
    times = overhead.command_times(command, 7)
    return Figure(what, statistics.median(times), "ms", target, f"least {min(times):.0f}")


if __name__ == "__main__":
    sys.exit(main())
