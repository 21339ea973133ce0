"""How every command ends: an exit status, and for an expected error one line on stderr.

Commands that load native code run in a child, so that a crash of it ends in a message. The process
forks at its start, before it loads anything heavy, and waits: signals, streams and terminal stay as
they are. Measured: 1 to 2 ms. Where the child dies of a crash, the stack that faulthandler left in
a file without a name says what was under way (see core.underway).
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TextIO

from tilepass.core import tracebacks, underway
from tilepass.core.errors import TilepassError, report
from tilepass.core.extras import EXTRAS

Command = Callable[[Sequence[str]], int]

FAILURE = 1
# What a shell reports for a command that SIGINT or SIGPIPE ended.
INTERRUPTED = 128 + 2
BROKEN_PIPE = 128 + 13
_CRASHES = (
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGSEGV,
    signal.SIGTRAP,
    signal.SIGSYS,
)
_BY_KERNEL = 0x80
# Seconds in which a process that is interrupted ends.
_GRACE = 0.3


def run_guarded(command: Command, arguments: Sequence[str], *, in_child: bool = False) -> int:
    """Run `command` and return its exit status.

    A TilepassError, an OSError (a full disk, a file that cannot be written), or a package that an
    extra would have brought becomes a line `error: ...` and 1; `in_child`, so does a crash of
    native code.
    """
    _fill_closed_streams()
    if in_child:
        return supervised(lambda: _guarded(command, arguments))
    return _guarded(command, arguments)


def _guarded(command: Command, arguments: Sequence[str]) -> int:
    try:
        status = _run_and_flush(command, arguments)
    except TilepassError as error:
        tracebacks.print_if_wanted(error)
        print(report(error), file=sys.stderr)
        return FAILURE
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        tracebacks.print_if_wanted(error)
        advice = f"pip install 'tilepass[{EXTRAS[package]}]'"
        print(f"error: this needs {package}, which is not installed: {advice}", file=sys.stderr)
        return FAILURE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_stdout()
        return BROKEN_PIPE
    except OSError as error:
        if error.filename is None:
            _abandon_stdout()
        place = "standard output" if error.filename is None else error.filename
        print(f"error: {place}: {error.strerror or error}", file=sys.stderr)
        return FAILURE
    return status


def _run_and_flush(command: Command, arguments: Sequence[str]) -> int:
    try:
        status = command(arguments)
    except SystemExit:
        # After `--help`, which may go to a full disk too.
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return status


def _fill_closed_streams() -> None:
    """Open the standard streams that the caller has closed (`>&-`).

    Otherwise the next file that is opened takes the number of one. Reading finds nothing, writing
    to stdout fails as it does in a program in C, and messages go nowhere.
    """
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdin = _open_nothing(0, os.O_RDONLY, "r")
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdout = _open_nothing(1, os.O_RDONLY, "w")
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = _open_nothing(2, os.O_WRONLY, "w")


def _open_nothing(number: int, flags: int, mode: Literal["r", "w"]) -> TextIO:
    opened = os.open(os.devnull, flags)
    os.dup2(opened, number)
    if opened != number:
        os.close(opened)
    return open(number, mode, encoding="utf-8", closefd=False)


def _abandon_stdout() -> None:
    """What could not be written stays in the buffer: the flush at exit must not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def supervised(command: Callable[[], int]) -> int:
    """The status of `command`, run in a child; a crash of it is an error like any other."""
    sys.stdout.flush()
    stacks, output = os.memfd_create("stacks"), os.memfd_create("output")
    alive, end = os.pipe()
    waiting_for = {signal.SIGINT, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waiting_for)
    child = os.fork()
    if child == 0:
        os.close(end)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _end_with_parent(alive)
        faulthandler.enable(stacks)
        underway.attribute_crashes(stacks, output)
        return command()
    os.close(alive)
    status = os.waitstatus_to_exitcode(_wait(child, waiting_for))
    stack = _text(stacks)
    if status >= 0 and not stack.startswith(underway.NOTED):
        # The child has cleaned up.
        os._exit(status)
    if status >= 0:
        print(f"error: {_name(stack)} ended the process with status {status}", file=sys.stderr)
        return FAILURE
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return _killed(signal.Signals(-status), stack, _text(output))


def _end_with_parent(alive: int) -> None:
    """Let the end of the parent, who holds the other end of the pipe, end this process too."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(alive, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(alive, fcntl.F_SETSIG, signal.SIGTERM)  # pyright: ignore
        fcntl.fcntl(alive, fcntl.F_SETFL, os.O_ASYNC)


def _wait(child: int, signals: set[signal.Signals]) -> int:
    """The status with which the child ends; an interrupt for this process alone is passed on."""
    while True:
        received = signal.sigwaitinfo(signals)
        # The terminal's reaches the child by itself, and so does what is sent to all of a group,
        # who must not be interrupted twice.
        if received.si_signo == signal.SIGINT:
            if received.si_code == _BY_KERNEL:
                continue
            if signal.sigtimedwait({signal.SIGCHLD}, _GRACE) is None:
                os.kill(child, signal.SIGINT)
                continue
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status


def _killed(by: signal.Signals, stack: str, output: str) -> int:
    if by not in _CRASHES:
        if by == signal.SIGKILL:
            print("error: killed (SIGKILL): is there too little memory?", file=sys.stderr)
        else:
            signal.signal(by, signal.SIG_DFL)
        os.kill(os.getpid(), by)
    if tracebacks.is_wanted() or "--traceback" in sys.argv:
        print(stack, file=sys.stderr)
    print(crash_message(by, stack, output), file=sys.stderr)
    return FAILURE


def _name(stack: str) -> str:
    """What was under way, without its reproducer, which is not worth the name."""
    line = stack.splitlines()[0].removeprefix(underway.NOTED)
    return line.partition(" (module before it: ")[0]


def _text(descriptor: int) -> str:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")


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
    noted = [
        line.removeprefix(underway.NOTED)
        for line in stack.splitlines()
        if line.startswith(underway.NOTED)
    ]
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
