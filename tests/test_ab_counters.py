"""Hardware counters: what ncu is asked for, and what is read of its answer."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from benchmarks.counters import count, parse
from tilepass.ab.job import Arm, Job, Point
from tilepass.core.errors import TilepassError

JOB = Job("persistent-matmul", (Arm("A"), Arm("B", "flatten-loops")), (Point((256, 256, 64)),))
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
ANSWER = f"""\
==PROF== Connected to process 7
"ID","Kernel Name","dram__bytes.sum","gpu__time_duration.sum","{TENSOR}","launch__x"
"","","byte","ns","%",""
"0","persistent_matmul","134,250,000","110,500","81.5","3"
"1","reduce","1,500,000","2,000","0","4"
==PROF== Disconnected
"""

# Stands for ncu: writes what it was asked, answers as ncu does, and does not start the program.
PROFILER = """#!{python}
import sys, time
from pathlib import Path
arguments = sys.argv[1:]
Path({asked!r}).write_text(" ".join(arguments))
if {seconds}:
    time.sleep({seconds})
Path(arguments[arguments.index("--log-file") + 1]).write_text({answer!r})
sys.exit({status})
"""


def profiler(
    folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str = ANSWER, status: int = 0,
    seconds: int = 0,
) -> Path:  # fmt: skip
    """Put a stand-in on the PATH; returns the file with what it was asked."""
    asked, program = folder / "asked", folder / "ncu"
    program.write_text(
        PROFILER.format(
            python=sys.executable, asked=str(asked), answer=answer, status=status, seconds=seconds
        )
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return asked


def test_counters_are_read_kernel_by_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = profiler(tmp_path, monkeypatch)
    main, reduce = count(JOB, 0, 1)
    assert main.describe() == (
        "persistent_matmul: us 110.5; tensor cores busy, % 81.5; DRAM, MB 134.2"
    )
    assert reduce.values["launch__x"] == "4"
    command = asked.read_text()
    assert "--clock-control none --profile-from-start off" in command
    assert "-m benchmarks.counters" in command


def test_a_figure_in_another_unit_is_an_error() -> None:
    (counted,) = parse('"Kernel Name","dram__bytes.sum"\n"","Mbyte"\n"k","134.2"\n')
    with pytest.raises(TilepassError, match=r"dram__bytes.sum in 'Mbyte', expected 'byte'"):
        counted.figures()


def test_no_answer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse("==ERROR== the driver does not let you") == []
    profiler(tmp_path, monkeypatch, "==ERROR== LibraryNotLoaded\n", 9)
    with pytest.raises(TilepassError, match=r"no counters \(status 9\): ==ERROR== LibraryNotLoad"):
        count(JOB, 0, 0)
    profiler(tmp_path, monkeypatch, seconds=3600)
    with pytest.raises(TilepassError, match="did not end within 0 s"):
        count(JOB, 0, 0, seconds=0.2)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TilepassError, match=r"ncu .* is not on the PATH"):
        count(JOB, 0, 0)
