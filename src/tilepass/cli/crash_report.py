"""What is to be said of a process that native code ended: see cli.supervise."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from dataclasses import dataclass

from tilepass.core.underway import NOTED

_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_PASS = re.compile(r"pass '(.*)' of (.*?)(?: \(module before it: (.*)\))?$")
_READING = re.compile(r"reading (.*) with (.*)$")


def crash_message(by: signal.Signals, stack: str, output: str) -> str:
    """What crashed and where, by faulthandler's stack, and what it printed last."""
    return _message(by, _frames(stack), output.strip())


@dataclass(frozen=True)
class _Frame:
    file: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}, in {self.name}"


def _frames(stack: str) -> list[_Frame]:
    """The frames of the thread that crashed, the innermost first."""
    threads = re.split(r"^(?=(?:Current t|T)hread .*:$)", stack, flags=re.MULTILINE)
    crashed = next((one for one in threads if one.startswith("Current")), stack)
    found = filter(None, map(_FRAME.match, crashed.splitlines()))
    frames = [_Frame(match[1], int(match[2]), match[3]) for match in found]
    noted = [line.removeprefix(NOTED) for line in stack.splitlines() if line.startswith(NOTED)]
    # Outside of what a deep recursion leaves of the stack.
    return [*frames, *(_Frame("", 0, name) for name in reversed(noted))]


def _message(by: signal.Signals, frames: list[_Frame], output: str) -> str:
    """What crashed, where, and what it printed last."""
    said = f"\n{output}" if output else ""
    for index, frame in enumerate(frames):
        if match := _READING.match(frame.name):
            under_way = next(filter(None, (_PASS.match(each.name) for each in frames)), None)
            if under_way is None:
                return f"{match[1]}: error: {match[2]} crashed ({by.name}){said}"
        if match := _PASS.match(frame.name):
            return _pass_message(by, match, frames[:index], said)
    place = f" ({frames[0]})" if frames else ""
    return f"error: the process crashed ({by.name}){place}{said}"


def _pass_message(by: signal.Signals, match: re.Match[str], inside: list[_Frame], said: str) -> str:
    folder = os.path.join(os.path.dirname(match[2]), "")
    own = [frame for frame in inside if frame.file.startswith(folder)]
    read = any(_READING.match(frame.name) for frame in inside)
    how = (
        f"left IR on which Triton's parser crashed ({by.name})" if read else f"crashed ({by.name})"
    )
    place = f" ({own[0]})" if own else f" ({match[2]})"
    lines = [f"error: pass '{match[1]}' {how}{place}{said}"]
    if match[3]:
        lines += [f"reproducer: {match[3]}", *_replay(match[3])]
    return "\n".join(lines)


def _replay(file: str) -> list[str]:
    """The command that the reproducer holds in its first line."""
    with contextlib.suppress(OSError), open(file, encoding="utf-8") as opened:
        return [opened.readline().strip().replace("// RUN:", "replay:").replace("%s", file)]
    return []
