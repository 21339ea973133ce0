"""Capturing stderr in processes that do more than compile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tilepass.frontends.triton.capture import capture_diagnostics


def test_other_threads_keep_their_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    """What they write is late, not lost; what they fork has the real one for all its life."""
    inside, written = threading.Event(), threading.Event()
    parent, child = os.pipe()

    def compile_() -> None:
        with capture_diagnostics(), capture_diagnostics():
            inside.set()
            written.wait(20)

    thread = threading.Thread(target=compile_)
    thread.start()
    inside.wait(20)
    print("of a thread", file=sys.stderr, flush=True)
    if not (forked := os.fork()):
        os.read(parent, 1)
        os.write(2, b"of a forked process\n")
        os._exit(0)
    written.set()
    thread.join()
    os.write(child, b"x")
    os.waitpid(forked, 0)
    for pipe in (parent, child):
        os.close(pipe)
    assert capfd.readouterr().err == "of a thread\nof a forked process\n"


def test_a_process_without_stderr_compiles(tmp_path: Path) -> None:
    """As a daemon, whose descriptors are closed."""
    program = (
        "import os\n"
        "os.close(2)\n"
        "from frontend_support import REWRITE_ADD, compile_kernel, operation_of\n"
        "from tilepass.activate import enabled\n"
        f"file = {str(tmp_path / 'rewrite_add.py')!r}\n"
        "open(file, 'w').write(REWRITE_ADD)\n"
        "with enabled('rewrite-add', load=[file]):\n"
        "    print(operation_of(compile_kernel()))\n"
    )
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    folder = os.path.dirname(__file__)
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    assert (result.returncode, result.stdout) == (0, "mul\n")
