"""Decisions: what was chosen for which loop, from which facts, and by whom."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from tilepass.core.diagnostics import SourceLocation

DecisionSource = Literal["forced", "profile", "cost-model", "default"]
Fact = str | int | float | bool | None


@dataclass(frozen=True)
class Choice:
    """What a cost model proposes, with its reason in a few words."""

    value: str
    reason: str


@dataclass(frozen=True)
class Decision:
    """A choice on record. Enough stands here to reproduce it: kind, facts, source."""

    kind: str
    value: str
    source: DecisionSource
    reason: str
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    location: SourceLocation | None = None

    def __str__(self) -> str:
        facts = ", ".join(f"{name}={value}" for name, value in self.facts.items())
        return f"{self.kind} = {self.value} ({self.source}: {self.reason})" + (
            f" from {facts}" if facts else ""
        )

    def to_json(self) -> str:
        """One line of JSON, keys in a fixed order."""
        return json.dumps(asdict(self), sort_keys=True)


ProfileLookup = Callable[[str, Mapping[str, Fact]], Choice | None]


def no_profile(kind: str, facts: Mapping[str, Fact]) -> Choice | None:
    """The profile of a compiler that has measured nothing."""
    del kind, facts
    return None


def decide(
    kind: str,
    facts: Mapping[str, Fact],
    *,
    forced: str | None,
    model: Callable[[Mapping[str, Fact]], Choice | None],
    default: Choice,
    profile: ProfileLookup = no_profile,
    location: SourceLocation | None = None,
) -> Decision:
    """Decide by precedence: forced by the user, measured profile, cost model, default."""
    if forced is not None:
        choice, source = Choice(forced, "asked for by the user"), "forced"
    elif measured := profile(kind, facts):
        choice, source = measured, "profile"
    elif modelled := model(facts):
        choice, source = modelled, "cost-model"
    else:
        choice, source = default, "default"
    return Decision(kind, choice.value, source, choice.reason, dict(facts), location)
