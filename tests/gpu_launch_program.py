"""A program for the GPU tests: it launches a kernel, and prints what it got as a line of JSON.

usage: gpu_launch_program.py [fork] [spawn] [exit=STATUS]

`fork` and `spawn` launch it in a child process of that kind first.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from dataclasses import asdict


def launched(process: str) -> str:
    """The line of one process."""
    from gpu_support import launch

    return json.dumps({"process": process, "pid": os.getpid(), **asdict(launch())})


def main(arguments: list[str]) -> int:
    """Returns the exit status that was asked for."""
    status = 0
    for argument in arguments:
        if argument.startswith("exit="):
            status = int(argument.removeprefix("exit="))
            continue
        with multiprocessing.get_context(argument).Pool(1) as pool:
            print(*pool.map(launched, [argument]), flush=True)
    print(launched("main"), flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
