"""Decisions: what was chosen for which loop, from which facts, and by whom."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, cast

from tilepass.core.diagnostics import SourceLocation
from tilepass.core.figures import Trial, trial_of

DecisionSource = Literal["forced", "cost-model", "default", "source"]
Fact = str | int | float | bool | None


@dataclass(frozen=True)
class Choice:
    """What a cost model proposes, with its reason in a few words."""

    value: str
    reason: str


@dataclass(frozen=True)
class Proposal:
    """What one source would have chosen; `value` is None where it had no say."""

    source: DecisionSource
    value: str | None
    reason: str


@dataclass(frozen=True)
class Decision:
    """A choice on record. Enough stands here to reproduce it: kind, facts, source.

    `proposals` are those of all sources, first the one that is asked first; the source "source" is
    the form that the author wrote, where something speaks against another. `trials` are the forms
    that were compiled to see whether anything does; None where there was no way to compile them.
    """

    kind: str
    value: str
    source: DecisionSource
    reason: str
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    location: SourceLocation | None = None
    proposals: tuple[Proposal, ...] = ()
    trials: tuple[Trial, ...] | None = ()

    def __str__(self) -> str:
        facts = ", ".join(f"{name}={value}" for name, value in self.facts.items())
        why = f"{self.source}: {self.reason}"
        if self.trials is None:
            why += "; no trial"
        elif self.trials:
            why += f"; trial: {'; '.join(map(str, self.trials))}"
        return f"{self.kind} = {self.value} ({why})" + (f" from {facts}" if facts else "")

    def to_json(self) -> str:
        """One line of JSON, keys in a fixed order."""
        return json.dumps(asdict(self), sort_keys=True)


def decision_of(fields: Mapping[str, Any]) -> Decision:
    """The decision of which `asdict` made the fields, also after a way through JSON."""
    location, trials = fields["location"], fields["trials"]
    made: dict[str, Any] = {
        **fields,
        "location": location and SourceLocation(**location),
        "proposals": tuple(Proposal(**each) for each in fields["proposals"]),
        "trials": trials if trials is None else tuple(map(trial_of, trials)),
    }
    return Decision(**made)


def decide(
    kind: str,
    facts: Mapping[str, Fact],
    *,
    forced: str | None,
    model: Callable[[Mapping[str, Fact]], Choice | None],
    default: Choice,
    location: SourceLocation | None = None,
) -> Decision:
    """Decide by precedence: forced by the user, cost model, default.

    The cost model is asked even where its answer cannot count, for the record.
    """
    chosen_by_user = None if forced is None else Choice(forced, "asked for by the user")
    proposals = (
        _proposal("forced", chosen_by_user, "the user asked for nothing"),
        _proposal("cost-model", model(facts), "has no answer for these facts"),
        _proposal("default", default, ""),
    )
    decisive = next(proposal for proposal in proposals if proposal.value is not None)
    return Decision(
        kind,
        cast("str", decisive.value),
        decisive.source,
        decisive.reason,
        dict(facts),
        location,
        proposals,
    )


def _proposal(source: DecisionSource, choice: Choice | None, otherwise: str) -> Proposal:
    if choice is None:
        return Proposal(source, None, otherwise)
    return Proposal(source, choice.value, choice.reason)


def kept(decision: Decision, source: str, reason: str) -> Decision:
    """The decision that leaves the loop as it is, `source`, for what speaks against the other."""
    proposal = Proposal("source", source, f"not {decision.value}: {reason}")
    return replace(
        decision,
        value=source,
        source="source",
        reason=proposal.reason,
        proposals=(proposal, *decision.proposals),
    )


def after_trials(
    decision: Decision, source: str, compile_form: Callable[[str], Trial], limit: int | None
) -> Decision:
    """The decision once the chosen form was compiled: the source's form stays where figures speak
    against the other one.

    `limit` is the target's shared memory in bytes. The source's form is compiled only where the
    chosen one spills or is serialized: without that no form is better, by these figures.
    """
    chosen = compile_form(decision.value)
    trials = [chosen]
    drawback = chosen.drawback(None, limit)
    if not drawback and chosen.figures and chosen.figures.suspicious:
        trials.append(compile_form(source))
        drawback = chosen.drawback(trials[-1], limit)
    decision = replace(decision, trials=tuple(trials))
    return kept(decision, source, drawback) if drawback else decision
