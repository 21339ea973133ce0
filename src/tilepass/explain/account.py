"""What happened in a run of passes, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from tilepass.core.decisions import Decision, Proposal
from tilepass.core.options import describe_options
from tilepass.core.pass_base import Pass
from tilepass.core.remarks import Remark


@dataclass
class Account:
    """The decisions and remarks of a run of `passes`, and the exit status of what they ran in."""

    passes: tuple[type[Pass], ...]
    decisions: list[Decision] = field(default_factory=list[Decision])
    remarks: list[Remark] = field(default_factory=list[Remark])
    status: int = 0

    def to_text(self) -> str:
        """For people."""
        parts = [_decision(decision) for decision in self.decisions]
        if not parts:
            parts = ["no decision was taken"]
        refusals = [remark.format() for remark in self.remarks if remark.kind == "missed"]
        if refusals:
            parts.append("\n".join(["not considered:", *(f"  {line}" for line in refusals)]))
        if options := list(_options(self.passes)):
            parts.append("\n".join(["to decide otherwise:", *options]))
        return "\n\n".join(parts)

    def to_json(self) -> str:
        """For programs: `decisions` and `remarks`, the fields of their classes."""
        record: dict[str, Any] = {
            "decisions": [asdict(decision) for decision in self.decisions],
            "remarks": [asdict(remark) for remark in self.remarks],
        }
        return json.dumps(record, indent=2)


def _decision(decision: Decision) -> str:
    place = f"{decision.location}: " if decision.location else ""
    lines = [f"{place}{decision.kind} = {decision.value}"]
    lines.append(f"  decided by  {decision.source}: {decision.reason}")
    facts = [f"{name} = {value}" for name, value in decision.facts.items()]
    lines += _column("from facts", facts or ["none"])
    lines += _column("in order", [_proposal(one, decision) for one in decision.proposals])
    trials = ["none: there is no compiler here"] if decision.trials is None else decision.trials
    lines += _column("trials", map(str, trials))
    return "\n".join(lines)


def _proposal(proposal: Proposal, decision: Decision) -> str:
    if proposal.value is None:
        return f"{proposal.source}: no, {proposal.reason}"
    reason = f" ({proposal.reason})" if proposal.reason else ""
    chosen = "  <-" if proposal.source == decision.source else ""
    return f"{proposal.source}: {proposal.value}{reason}{chosen}"


def _column(heading: str, entries: Iterable[str]) -> list[str]:
    """The heading before the first entry, blanks before the others."""
    return [
        f"  {'' if index else heading:<12}{entry}".rstrip() for index, entry in enumerate(entries)
    ]


def _options(passes: tuple[type[Pass], ...]) -> Iterable[str]:
    """Options that name their alternatives: with one of them the user decides."""
    for pass_class in passes:
        for name, takes, default in describe_options(pass_class):
            if takes.startswith("one of "):
                yield f"  {pass_class.name}{{{name}=...}}: {takes} (default: {default})"
