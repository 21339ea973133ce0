"""Where the warps of the prefill wait: Nsight Compute's samples by instruction.

The state's loads and stores are the two runs of global accesses without a branch between them that
are executed most often; each other instruction counts as `elsewhere`.
"""

from __future__ import annotations

import csv
import io
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.counters import find_profiler, run_within
from benchmarks.gdn_prefill.build import Built
from tilepass.core.errors import TilepassError

SCHEMA = "tilepass.gdn-stalls/1"
_SOURCE, _SAMPLES, _EXECUTED = "Source", "# Samples", "Instructions Executed"
_QUEUE = "stall_lg"
_SECONDS = 150.0
# The state of a thread is 64 numbers: 64 accesses of 4 bytes, or 32 of 8.
_LEAST_ACCESSES = 16


@dataclass(frozen=True)
class Instruction:
    """A line of SASS: its text, how many warps executed it, samples taken there, and those of them
    that waited for room in the queue of the load/store unit."""

    text: str
    executed: int
    samples: int
    queued: int

    @property
    def name(self) -> str:
        """The opcode without modifiers or predicate."""
        words = [word for word in self.text.split() if not word.startswith("@")]
        return words[0].split(".")[0] if words else ""


@dataclass(frozen=True)
class Stalls:
    """Samples of all warps of a launch, their mean over the launches: in all, at the loads of the
    state, at its stores, and of the latter those that waited for the load/store unit."""

    launches: int
    total: float
    loads: float
    stores: float
    queued: float


def profile(built: Built, case: str, launches: int) -> Stalls:
    """Sample launches of a compiled arm. Raises TilepassError."""
    profiler = find_profiler()
    with tempfile.TemporaryDirectory() as folder:
        report, log = Path(folder, "samples"), Path(folder, "source.csv")
        command = [profiler, "--clock-control", "none", "--cache-control", "none"]
        command += ["--profile-from-start", "off", "--section", "SourceCounters"]
        command += ["--warp-sampling-interval", "0", "--warp-sampling-buffer-size", str(1 << 27)]
        command += ["-f", "-o", str(report), sys.executable, "-m", "benchmarks.gdn_prefill.launch"]
        command += [str(Path(built.object_file).with_suffix(".request")), case, str(launches)]
        _checked(*run_within(command, _SECONDS))
        command = [profiler, "--import", f"{report}.ncu-rep", "--page", "source", "--csv"]
        _checked(*run_within([*command, "--log-file", str(log)], _SECONDS))
        kernels = list(parse(log.read_text()))
    if not kernels:
        raise TilepassError("ncu took no samples")
    return summarise(kernels)


def _checked(status: int, errors: str) -> None:
    if status:
        said = " | ".join(errors.splitlines()[-3:])
        raise TilepassError(f"ncu took no samples (status {status}): {said}")


def parse(text: str) -> Iterator[list[Instruction]]:
    """The source page of a report: for each launch a line that names the kernel, one of titles,
    and one for each instruction."""
    titles: list[str] = []
    listing: list[Instruction] = []
    for row in csv.reader(io.StringIO(text)):
        if row and row[0] == "Kernel Name":
            if listing:
                yield listing
            listing = []
        elif _SAMPLES in row:
            titles = row
        elif titles and len(row) == len(titles):
            cells = dict(zip(titles, row, strict=True))
            numbers = [int(cells.get(name) or 0) for name in (_EXECUTED, _SAMPLES, _QUEUE)]
            listing.append(Instruction(cells[_SOURCE].strip(), *numbers))
    if listing:
        yield listing


def summarise(kernels: Sequence[Sequence[Instruction]]) -> Stalls:
    """The mean over launches of one kernel. Raises TilepassError where the state is not found."""
    count = len(kernels)
    loads, stores = (_run_of(kernels[0], name) for name in ("LDG", "STG"))

    def mean(indices: Sequence[int], queued: bool = False) -> float:
        each = (listing[at] for listing in kernels for at in indices)
        return sum(one.queued if queued else one.samples for one in each) / count

    everything = range(len(kernels[0]))
    return Stalls(count, mean(everything), mean(loads), mean(stores), mean(stores, queued=True))


def _run_of(listing: Sequence[Instruction], name: str) -> list[int]:
    """The longest run of executed instructions of one kind without another between them."""
    longest: list[int] = []
    current: list[int] = []
    for at, one in enumerate(listing):
        if one.name == name and one.executed:
            current.append(at)
        elif one.name != "NOP":
            longest, current = max(longest, current, key=len), []
    longest = max(longest, current, key=len)
    if len(longest) < _LEAST_ACCESSES:
        raise TilepassError(f"the kernel has no run of {_LEAST_ACCESSES} {name}: not the prefill")
    return longest
