"""Check that mistakes of many kinds are noticed in every scheme of epilogue-warp-specialize.

Usage: python scripts/scheme_mutants.py [--scheme S] [--all]

Mutants of the kinds of tests/scheme_mutants.py, with --all those of protocol_mutants.py as well, on
the problems that `tilepass check` takes by itself, K = 0 included. Prints each mutant that is not
reported, and the rates. The status is 1 if less than 95 % are reported in a scheme.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from pathlib import Path
from typing import Protocol

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.protocol_mutants import mutants
from tests.scheme_mutants import SCHEMES, built, scheme_mutants
from tilepass.ir.engine import Module
from tilepass.sim.protocol.check import find
from tilepass.sim.protocol.compiler import ProtocolProgram
from tilepass.sim.protocol.problems import Problem
from tilepass.sim.protocol.recorder import CannotFollow
from tilepass.sim.protocol_check import default_problems

_WANTED = 0.95
_SEEDS = 3


class _AnyMutant(Protocol):
    @property
    def name(self) -> str: ...
    def apply(self, module: Module) -> Module: ...


def main() -> int:
    """Print the tables; the status is 1 if too few are reported."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s [options]")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--scheme", choices=SCHEMES, help="one of the schemes only")
    parser.add_argument("--all", action="store_true", help="the older kinds as well")
    options = parser.parse_args()
    rates = [_scheme(each, options.all) for each in SCHEMES if options.scheme in (None, each)]
    return 0 if min(rates) >= _WANTED else 1


def _scheme(scheme: str, older: bool) -> float:
    start = time.process_time()
    module = built(scheme)
    problems = default_problems(ProtocolProgram(module))
    every: list[tuple[str, _AnyMutant]] = [(each.kind, each) for each in scheme_mutants(module)]
    if older:
        every += [(f"older: {each.group}", each) for each in mutants(module)]
    totals: collections.Counter[str] = collections.Counter()
    reported: collections.Counter[str] = collections.Counter()
    for kind, mutant in every:
        totals[kind] += 1
        if _is_reported(mutant, module, problems):
            reported[kind] += 1
        else:
            print(f"{scheme}: not reported: {kind}: {mutant.name}")
    kinds = ", ".join(f"{reported[kind]} of {n} {kind}" for kind, n in sorted(totals.items()))
    count, of = reported.total(), totals.total()
    seconds = time.process_time() - start
    print(f"{scheme}: {count} of {of} ({count / of:.1%}) in {seconds:.0f} s: {kinds}", flush=True)
    return count / of


def _is_reported(mutant: _AnyMutant, module: Module, problems: list[Problem]) -> bool:
    program = ProtocolProgram(mutant.apply(module))
    try:
        return any(find(program, problem, range(_SEEDS)) for problem in problems)
    except CannotFollow:
        return False


if __name__ == "__main__":
    sys.exit(main())
