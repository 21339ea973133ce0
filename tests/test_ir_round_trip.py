"""A trip through the IR engine leaves every module of the corpus as it was."""

from __future__ import annotations

import pytest
from corpus.compiling import run_stages
from corpus.entries import Entry, all_entries
from corpus.round_trip import difference_after_trip, round_trips

from tilepass.frontends.triton import bridge
from tilepass.ir import engine

ENTRIES = all_entries()


def test_the_corpus_has_the_promised_size() -> None:
    assert len({entry.kernel.__name__ for entry in ENTRIES}) >= 30


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_trip_is_exact(entry: Entry) -> None:
    outcomes = list(round_trips(entry))
    assert len(outcomes) >= 2
    assert [str(outcome) for outcome in outcomes if outcome.difference] == []


def test_a_difference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = next(entry for entry in ENTRIES if entry.kernel.__name__ == "vector_add")
    (_, module), *_ = run_stages(entry, "ttir")
    to_engine = bridge.to_engine

    def lossy(module: bridge.TritonModule) -> engine.Module:
        copy = to_engine(module)
        copy.body.operations[0].attributes["tt.noticed"] = engine.ir.UnitAttr.get(copy.context)
        return copy

    monkeypatch.setattr(bridge, "to_engine", lossy)
    assert "tt.noticed" in difference_after_trip(module)
