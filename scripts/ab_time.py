"""Time a kernel with a pass on and off, in pairs: the same as `tilepass ab`.

usage: python scripts/ab_time.py KERNEL --a PIPELINE --b PIPELINE [options]
"""

from __future__ import annotations

import sys

from tilepass.cli.ab import main
from tilepass.cli.guard import run_guarded

if __name__ == "__main__":
    sys.exit(run_guarded(main, sys.argv[1:]))
