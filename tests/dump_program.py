"""A program for the tests of dump-ir: it compiles a kernel, then ends as its arguments say.

usage: dump_program.py [child] [kill] [wait] [STATUS]
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time


def main(arguments: list[str]) -> int:
    """Returns the exit status that was asked for."""
    if "child" in arguments:
        return subprocess.run([sys.executable, __file__], check=False).returncode
    from dump_kernels import compile_matmul

    compile_matmul()
    if "kill" in arguments:
        os.kill(os.getpid(), signal.SIGKILL)
    if "wait" in arguments:
        print("waiting", flush=True)
        time.sleep(60)
    return int(arguments[-1]) if arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
