"""The cost models against what was measured: the reports in `results/`.

`benchmarks/flatten.py` writes them anew; the models must not drift away from them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tilepass.analysis.cost_model import accumulator_choice, flatten_choice
from tilepass.core.decisions import Fact

RESULTS = Path(__file__).resolve().parents[1] / "results"
HOPPER_BF16: Mapping[str, Fact] = {
    "arch": 90,
    "dot": "shared",
    "epilogue_bytes": 128 * 256 * 2,
    "programs_per_sm": 1,
}


def chosen(**facts: Fact) -> str | None:
    """What the model says of a bf16 nest with some facts changed."""
    choice = flatten_choice({**HOPPER_BF16, **facts})
    return None if choice is None else choice.value


def losses(report_name: str) -> list[float]:
    """Time of the model's choice over that of the faster of off and on, for each point measured.

    The model is asked about the facts that the pass printed when the point was measured.
    """
    report: Any = json.loads((RESULTS / report_name).read_text())
    labels = {arm["pipeline"]: arm["label"] for arm in report["arms"]}
    found: list[float] = []
    for point in report["points"]:
        assert point["status"] == "timed"
        arms = {arm["arm"]: arm for arm in point["arms"]}
        off, on = (arms[labels[f"flatten-loops{{mode={mode}}}"]] for mode in ("off", "on"))
        assert off["against_baseline"] is None, "off has to be the baseline of the ratios"
        times = {"off": 1.0, "on": float(on["against_baseline"]["ratio"])}
        choice = flatten_choice(printed_facts(off["remarks"][0]))
        assert choice is not None
        found.append(times[choice.value] / min(times.values()))
    return found


def printed_facts(remark: str) -> dict[str, Fact]:
    """Numbers and words among the facts behind `from` in a remark."""
    pairs: list[tuple[str, str]] = re.findall(r"(\w+)=([\w:-]+)", remark.rpartition(" from ")[2])
    return {name: int(value) if value.isdigit() else value for name, value in pairs}


@pytest.mark.parametrize("programs", [1, 2])
def test_mxfp4_is_within_one_percent_of_the_faster_side(programs: int) -> None:
    measured = losses(f"flatten_mxfp4_occupancy{programs}.json")
    assert len(measured) == 15
    assert max(measured) <= 1.01


def test_bf16_is_within_two_percent_of_the_faster_side_on_five_of_six() -> None:
    measured = losses("flatten_bf16.json")
    assert len(measured) == 6
    assert sum(loss <= 1.02 for loss in measured) >= 5


@pytest.mark.parametrize(
    "facts",
    [
        {"arch": 100},
        {"arch": None},
        {"dot": "several"},
        {"dot": "computed-b"},
        {"programs_per_sm": 2},
        {"epilogue_bytes": 64 * 64 * 2},
    ],
    ids=str,
)
def test_no_opinion_on_what_was_not_measured(facts: Mapping[str, Fact]) -> None:
    assert chosen(**facts) is None


@pytest.mark.parametrize(
    ("columns", "reserved", "value"),
    [(256, 0, "allow"), (256, 32, "disallow"), (512, 0, "disallow")],
)
def test_two_accumulators_must_fit_beside_the_scales(
    columns: int, reserved: int, value: str
) -> None:
    choice = accumulator_choice({"columns": columns, "reserved_columns": reserved})
    assert choice is not None
    assert choice.value == value
