"""The IR after every stage and pass: the same as `tilepass dump-ir`.

usage: dump_ir.py WHAT [options]
       dump_ir.py [options] -- PROGRAM [ARGUMENT ...]
"""

from __future__ import annotations

import sys

from tilepass.cli.dump_ir import main as dump_ir
from tilepass.cli.guard import run_guarded


def main() -> int:
    """Run the command; returns its exit status."""
    return run_guarded(dump_ir, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
