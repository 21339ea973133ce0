"""A command in a child: its status, signals, and what is said where it crashes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilepass.cli.guard import crash_message

_PROGRAM = """
import os, signal, sys, time
from tilepass.cli.guard import run_guarded
from tilepass.core.underway import under_name

def command(arguments):
    print(os.getpid(), flush=True)
    {body}
    return 0

sys.exit(run_guarded(command, [], in_child=True))
"""


def _start(body: str) -> tuple[subprocess.Popen[str], int]:
    """A supervised command that has begun, and its own process."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM.format(body=body)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def _end(body: str) -> tuple[int, str]:
    process, _ = _start(body)
    _, told = process.communicate(timeout=60)
    return process.returncode, told


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ("pass", 0, ""),
        ("return 7", 7, ""),
        ("sys.exit(2)", 2, ""),
        ("os._exit(3)", 3, ""),
        ("under_name('pass \\'p\\' of f.py', lambda: os._exit(3))", 1,
         "error: pass 'p' of f.py ended the process with status 3\n"),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, ""),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL,
         "error: killed (SIGKILL): is there too little memory?\n"),
        ("under_name('reading f.mlir with a parser', os.abort)", 1,
         "f.mlir: error: a parser crashed (SIGABRT)\n"),
        ("under_name('pass \\'p\\' of <string>', os.abort)", 1,
         "error: pass 'p' crashed (SIGABRT) (<string>)\n"),
    ],
)  # fmt: skip
def test_how_it_ends(body: str, status: int, told: str) -> None:
    assert _end(body) == (status, told)


def test_an_unnamed_crash_shows_its_line() -> None:
    status, told = _end("os.abort()")
    assert status == 1
    assert told == "error: the process crashed (SIGABRT) (<string>:8, in command)\n"


@pytest.mark.parametrize("to_all", [False, True])
def test_an_interrupt_reaches_the_command(to_all: bool) -> None:
    process, _ = _start("time.sleep(60)")
    if to_all:
        os.killpg(process.pid, signal.SIGINT)
    else:
        os.kill(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (130, "interrupted\n")


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_the_command_ends_with_the_process_that_waits(by: signal.Signals) -> None:
    process, child = _start("time.sleep(600)")
    os.kill(process.pid, by)
    assert process.wait(timeout=60) == -by
    until = time.monotonic() + 60
    while _is_running(child):
        assert time.monotonic() < until
        time.sleep(0.01)
    process.communicate()


def _is_running(process: int) -> bool:
    """Whether it is there and no zombie, which nobody need reap in a container."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


_PASS = "pass 'p' of /project/passes.py (module before it: /none.mlir)"


@pytest.mark.parametrize(
    ("frames", "told"),
    [
        (
            [("/usr/lib/x.py", 3, "help"), ("/project/passes.py", 12, "match"),
             ("/project/passes.py", 30, "run"), ("/tilepass/underway.py", 9, _PASS)],
            "error: pass 'p' crashed (SIGSEGV) (/project/passes.py:12, in match)\nno memory\n"
            "reproducer: /none.mlir",
        ),
        (
            [("/tilepass/underway.py", 9, "reading a module with Triton's parser"),
             ("/tilepass/underway.py", 9, _PASS)],
            "error: pass 'p' left IR on which Triton's parser crashed (SIGSEGV) "
            "(/project/passes.py)\nno memory\nreproducer: /none.mlir",
        ),
    ],
)  # fmt: skip
def test_the_frames_of_a_pass(frames: list[tuple[str, int, str]], told: str) -> None:
    other = 'Thread 0x1 (most recent call first):\n  File "other.py", line 1 in wait\n\n'
    shown = "".join(f'  File "{file}", line {line} in {name}\n' for file, line, name in frames)
    stack = f"Fatal\n\n{other}Current thread 0x2 (most recent call first):\n{shown}"
    assert crash_message(signal.SIGSEGV, stack, "no memory\n") == told
