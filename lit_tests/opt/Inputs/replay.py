"""Run the command after `replay: ` in a file; the exit status is 0 if that command fails."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path


def main() -> int:
    lines = Path(sys.argv[1]).read_text().splitlines()
    (command,) = [line.removeprefix("replay: ") for line in lines if line.startswith("replay: ")]
    return int(subprocess.run(shlex.split(command), check=False).returncode == 0)


if __name__ == "__main__":
    sys.exit(main())
