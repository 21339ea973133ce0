"""Change the rules of the analyses one by one and see whether the package's tests notice.

Usage: python scripts/mutate_rules.py [--module TEXT] [--sample N] [--seed S] [--verbose]

The modules are those in which a wrong rule would let a wrong rewrite through, each with the tests
that concern it (tests/rule_subjects.py). A row for each: mutants, tried, noticed; then the rest.
tests/rule_mutants_accepted.toml says of which none can be, or need be, and why: they count as
`accepted`. The status is 1 if less than 95 % of the others were noticed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.rule_mutants import Mutant, mutants_of, sample
from tests.rule_mutants_run import Subject, Verdict, accepted, judge, preload, require_tests_to_pass
from tests.rule_subjects import SUBJECTS

LEAST_SHARE = 0.95


def main() -> int:
    """Print the table and the survivors; the status is 1 if there are too many."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s [options]")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--module", action="append", help="modules whose path holds this text")
    parser.add_argument("--sample", type=int, default=20, help="mutants of a module (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice")
    parser.add_argument("--mutant", help="only mutants whose name holds this text, all of them")
    parser.add_argument("--verbose", action="store_true", help="a line for each mutant")
    options = parser.parse_args()
    chosen = [
        subject
        for subject in SUBJECTS
        if not options.module or any(text in subject.module for text in options.module)
    ]
    if not chosen:
        parser.error("no such module")
    preload()
    tried = killed = 0
    survivors = list[tuple[Subject, Mutant]]()
    print(f"{'module':58} mutants  tried accepted noticed   CPU")
    for subject in chosen:
        require_tests_to_pass(subject)
        mutants = mutants_of(subject.path.read_text())
        picked = sample(mutants, options.sample, options.seed)
        if options.mutant:
            picked = [each for each in mutants if options.mutant in each.name]
        known = accepted(subject.module, mutants)
        rest = [each for each in picked if each not in known]
        verdicts = [_judged(subject, each, options.verbose) for each in rest]
        noticed = sum(verdict.killed for verdict in verdicts)
        seconds = sum(verdict.seconds for verdict in verdicts)
        print(
            f"{subject.module:58} {len(mutants):7} {len(picked):6} {len(picked) - len(rest):8} "
            f"{noticed:7} {seconds:5.0f}",
            flush=True,
        )
        tried, killed = tried + len(rest), killed + noticed
        survivors += [(subject, verdict.mutant) for verdict in verdicts if not verdict.killed]
    for subject, mutant in survivors:
        print(f"not noticed: {subject.module}:{mutant.line}: {mutant.name}")
    share = killed / max(1, tried)
    print(f"{killed} of {tried} noticed: {share:.1%}")
    return 0 if share >= LEAST_SHARE else 1


def _judged(subject: Subject, mutant: Mutant, verbose: bool) -> Verdict:
    verdict = judge(subject, mutant)
    if verbose:
        said = f"noticed by {verdict.by}" if verdict.killed else "NOT NOTICED"
        print(f"  {verdict.seconds:5.1f} s  {mutant.line}: {mutant.name}: {said}", flush=True)
    return verdict


if __name__ == "__main__":
    sys.exit(main())
