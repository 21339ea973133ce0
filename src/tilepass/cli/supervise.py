"""Commands that load native code run in a child, so that a crash of it ends in a message.

The process forks at its start, before it loads anything heavy, and waits: signals, streams and
terminal stay as they are. Measured: 1 to 2 ms. Where the child dies of a crash, the stack that
faulthandler left in a file without a name says what was under way (see core.underway).
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import os
import signal
import sys
from collections.abc import Callable

from tilepass.core import tracebacks, underway

FAILURE = 1
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
    from tilepass.cli.crash_report import crash_message

    print(crash_message(by, stack, output), file=sys.stderr)
    return FAILURE


def _name(stack: str) -> str:
    """What was under way, without its reproducer, which is not worth the name."""
    line = stack.splitlines()[0].removeprefix(underway.NOTED)
    return line.partition(" (module before it: ")[0]


def _text(descriptor: int) -> str:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")
