"""`tilepass-opt FILE -p PIPELINE`: run passes on an IR file."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tilepass.cli.guard import run_guarded
from tilepass.opt.options import parse_arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `tilepass-opt` and of `tilepass opt`; returns the exit status."""
    return run_guarded(_run, sys.argv[1:] if argv is None else argv, in_child=argv is None)


def _run(arguments: Sequence[str]) -> int:
    options = parse_arguments(arguments)
    # Here and not above: `--help` must not load a compiler.
    from tilepass.opt.driver import run

    return run(options)


if __name__ == "__main__":
    sys.exit(main())
