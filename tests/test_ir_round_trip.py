"""A trip through the IR engine leaves every module of the corpus as it was."""

from __future__ import annotations

import pytest
from corpus.compiling import run_stages
from corpus.entries import Entry, all_entries
from corpus.every_pass import compare
from corpus.round_trip import difference_after_trip, round_trips

from tilepass.core.pass_base import PassContext
from tilepass.ir import engine
from tilepass.passes.triton.test_round_trip import TestRoundTrip

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

    def lossy(self: TestRoundTrip, module: engine.Module, context: PassContext) -> None:
        attribute = engine.ir.UnitAttr.get(module.context)
        module.body.operations[0].attributes["tt.noticed"] = attribute

    monkeypatch.setattr(TestRoundTrip, "run", lossy)
    assert "tt.noticed" in difference_after_trip(module)


def test_a_trip_after_every_pass_leaves_the_assembly() -> None:
    entry = next(entry for entry in ENTRIES if entry.name == "persistent_matmul-both@90")
    comparison = compare(entry)
    assert comparison.trips > 30
    assert str(comparison).endswith("identical")
