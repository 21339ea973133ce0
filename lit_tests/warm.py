"""Commands of lit tests run in forks of one process that has imported what most of them need.

Starting `tilepass-opt` takes twice as long as most tests' passes. With `--param warm` lit finds
small programs of the same names first on its PATH; each hands its arguments, folder, environment
and open files to the server here, which forks, and ends as the fork does. A command that the server
does not know, and one with another environment than the server's (which counts when Python starts),
is run as it would be without.

usage: python warm.py SOCKET (the server; it ends when its standard input does)
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import importlib
import io
import marshal
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PROGRAMS = ("tilepass-opt", "tilepass", "python")
SERVERS: list[Any] = []
_PRELOADED = ("core", "ir", "analysis", "sim", "opt", "passes.triton")
# Variables that programs read when they need them, and those that none of ours does.
_OF_NO_ACCOUNT = (
    *("TMPDIR", "TMP", "TEMP", "TEMPDIR"),
    *("PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE", "LIT_CURRENT_TESTCASE"),
)
_RUN_IT_YOURSELF = 1 << 16

# Neither `site` nor `os` is loaded: it has to start in no time.
_CLIENT = """#!{python} -IS
import _socket, marshal, posix, sys
def start():
    posix.execv({program!r}, [{program!r}, *sys.argv[1:]])
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
try:
    server.connect({socket!r})
except OSError:
    start()
environment = {{name.decode(): value.decode() for name, value in posix.environ.items()}}
told = marshal.dumps(({name!r}, {program!r}, sys.argv[1:], posix.getcwd(), environment))
files = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
server.sendmsg([len(told).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
while told:
    told = told[server.send(told):]
answer = server.recv(4)
status = int.from_bytes(answer, "big", signed=True) if answer else 1
if status == {run_it_yourself}:
    start()
if status < 0:
    import _signal
    _signal.signal(-status, _signal.SIG_DFL)
    posix.kill(posix.getpid(), -status)
posix._exit(status)
"""


def start(folder: Path, environment: dict[str, str], programs: Path) -> None:
    """Start a server that ends with this process, and put the programs for it into `folder`.

    `environment` is that of the commands, `folder` on the PATH included.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = str(folder / f"{os.getpid()}.socket")
    for name in PROGRAMS:
        program = sys.executable if name == "python" else str(programs / name)
        client = folder / name
        client.write_text(
            _CLIENT.format(
                python=sys.executable,
                name=name,
                program=program,
                socket=path,
                run_it_yourself=_RUN_IT_YOURSELF,
            )
        )
        client.chmod(0o755)
    command = [sys.executable, __file__, path]
    # Its standard input is never written to; the pipe is closed when this process ends.
    server: Any = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    server.stdout.readline()
    SERVERS.append(server)
    if len(SERVERS) == 1:
        atexit.register(stop)


def stop() -> None:
    """End the servers: what they and their forks took then counts as this process's children's."""
    while SERVERS:
        server = SERVERS.pop()
        server.stdin.close()
        server.wait()


def preload() -> None:
    """Import what commands import, Triton's Python part and the DSL excepted."""
    from tilepass.opt.light_triton import load_libtriton

    load_libtriton()
    names = ["tilepass.cli.opt", "tilepass.cli.main", "tilepass.cli.check", "filecheck.main"]
    for package in _PRELOADED:
        module = importlib.import_module(f"tilepass.{package}")
        found = pkgutil.walk_packages(module.__path__, f"{module.__name__}.")
        names += [each.name for each in found if not each.name.endswith("__main__")]
    for name in names:
        importlib.import_module(name)


def serve(path: str) -> None:
    """Answer clients until standard input ends."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener.bind(path)
    listener.listen(128)
    print("listening", flush=True)
    own = {**os.environ}
    preload()
    gc.freeze()
    waiting = selectors.DefaultSelector()
    waiting.register(sys.stdin, selectors.EVENT_READ)
    waiting.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is sys.stdin:
                os.unlink(path)
                # Nanobind would list what it has not freed.
                os._exit(0)
            if key.fileobj is not listener:
                _finish(waiting, key.fd, *key.data)
                continue
            client, _ = listener.accept()
            pid = _answer(client, own, (listener, waiting))
            if pid is not None:
                waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, client))


def _finish(waiting: selectors.BaseSelector, ended: int, pid: int, client: socket.socket) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    waiting.unregister(ended)
    os.close(ended)
    _tell(client, status)


def _tell(client: socket.socket, status: int) -> None:
    with client, contextlib.suppress(BrokenPipeError):
        client.sendall(status.to_bytes(4, "big", signed=True))


def _answer(client: socket.socket, own: dict[str, str], open_here: Sequence[Any]) -> int | None:
    """Fork for what a client asks; returns the process, None where it is to do that itself."""
    size, ancillary, _, _ = client.recvmsg(4, socket.CMSG_LEN(12))
    files = list(array.array("i", ancillary[0][2]))
    told = b""
    while len(told) < int.from_bytes(size, "big"):
        told += client.recv(1 << 20)
    name, program, arguments, folder, environment = marshal.loads(told)
    command = _command(name, program, arguments, folder)
    if command is None or _counting(environment) != _counting(own):
        for file in files:
            os.close(file)
        _tell(client, _RUN_IT_YOURSELF)
        return None
    pid = os.fork()
    if pid:
        for file in files:
            os.close(file)
        return pid
    for each in (client, *open_here):
        each.close()
    _become(command, files, folder, environment)
    raise AssertionError


def _counting(environment: dict[str, str]) -> dict[str, str]:
    return {k: v for k, v in environment.items() if k not in _OF_NO_ACCOUNT}


def _command(
    name: str, program: str, arguments: list[str], folder: str
) -> Callable[[], object] | None:
    """What a command line calls, with `sys.argv` and `sys.path` as it has them."""

    def run(path: str, argv: list[str], function: Callable[[], object]) -> Callable[[], object]:
        def call() -> object:
            sys.path[0] = path
            sys.argv[:] = argv
            return function()

        return call

    if name == "tilepass-opt":
        from tilepass.cli.opt import main

        return run(os.path.dirname(program), [program, *arguments], main)
    if name == "tilepass":
        from tilepass.cli.main import main

        return run(os.path.dirname(program), [program, *arguments], main)
    if len(arguments) > 1 and arguments[0] == "-m":
        module = arguments[1]
        function = lambda: runpy.run_module(module, run_name="__main__", alter_sys=True)  # noqa: E731
        return run(folder, arguments[1:], function)
    if arguments and arguments[0].endswith(".py"):
        script = arguments[0]
        function = lambda: runpy.run_path(script, run_name="__main__")  # noqa: E731
        return run(os.path.dirname(os.path.join(folder, script)), arguments, function)
    return None


def _become(
    command: Callable[[], object],
    files: Sequence[int],
    folder: str,
    environment: dict[str, str],
) -> None:
    """Run a command with what its client has, and end as Python does at its end."""
    status = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdin = sys.__stdin__ = _stream(0, "r")
        sys.stdout = sys.__stdout__ = _stream(1, "w")
        sys.stderr = sys.__stderr__ = _stream(2, "w", line_buffering=True)
        status = _status_of(command)
    finally:
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BaseException):
                stream.flush()
        os._exit(status)


def _stream(number: int, mode: str, *, line_buffering: bool = False) -> Any:
    raw = io.FileIO(number, mode, closefd=False)
    file: Any = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    errors = "backslashreplace" if number == 2 else None
    return io.TextIOWrapper(file, "utf-8", errors, line_buffering=line_buffering)


def _status_of(command: Callable[[], object]) -> int:
    try:
        returned = command()
    except SystemExit as end:
        returned = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    if isinstance(returned, str):
        print(returned, file=sys.stderr)
        return 1
    return returned & 255 if isinstance(returned, int) else 0


if __name__ == "__main__":
    serve(sys.argv[1])
