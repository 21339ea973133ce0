"""Tables that the README quotes from reports of the studies."""

from __future__ import annotations

from typing import Any

from benchmarks.tables import gdn_table_of, library_table_of, stalls_table_of

ENVIRONMENT = {"GPU": "GPU 0", "driver": "1.2", "triton": "3.6.0", "torch": "2.11.0"}


def estimate(ratio: float) -> dict[str, Any]:
    """An interval of one percent around a ratio."""
    return {"ratio": ratio, "low": ratio - 0.005, "high": ratio + 0.005, "verdict": "SAME"}


def point(shape: list[int], ratio: float | None) -> dict[str, Any]:
    """A library of 10 us and an arm that takes `ratio` of it; None where it failed."""
    arm = {
        "arm": "mine",
        "median_us": None if ratio is None else 10.0 * ratio,
        "against_baseline": None if ratio is None else estimate(ratio),
    }
    library = {"arm": "library", "median_us": 10.0, "against_baseline": None}
    return {"shape": shape, "arms": [library, arm], "duplicate": estimate(1.001)}


def test_library_table() -> None:
    report: dict[str, Any] = {
        "environment": ENVIRONMENT,
        "kernel": "persistent-matmul",
        "arms": [
            {"label": "library", "library": "torch:mm", "pipeline": "", "overrides": {}},
            {"label": "mine", "pipeline": "a-pass{x=1}", "overrides": {"block_n": "128"}},
        ],
        "points": [point([8, 8, 8], 0.8), point([4, 4, 4], 1.25), point([2, 2, 2], None)],
    }
    text = library_table_of(report)
    assert "library: `mm`; mine: `a-pass{x=1}, block_n=128`" in text
    assert "| mine | 1.250 | 0.800 | - | 1.000 | 0.800 |" in text
    assert "| best | 1.250 | 0.800 | - | 1.000 | 0.800 |" in text
    assert "| library' / library | 1.001 | 1.001 | 1.001 |  |  |" in text


def test_gdn_table() -> None:
    case = {
        "dtype": "f16",
        "case": "1x64",
        "rounds": 3,
        "median_us": {"dense": 15.0},
        "ratios": {"k": estimate(0.95)},
        "duplicate": estimate(1.0),
        "equal_bits": {"k": False},
    }
    checked_only = {"dtype": "f16", "case": "varlen", "rounds": 0}
    study = {
        "environment": ENVIRONMENT,
        "arms": {"dense": "", "k": "cute-zero-mma{order=k}"},
        "cases": [case, checked_only],
    }
    text = gdn_table_of(study)
    assert "| f16 | 1x64 | 15.0 | 0.9500 [0.9450, 0.9550] | 1.0000 | NO |" in text
    assert "varlen" not in text


def test_stalls_table() -> None:
    arm = {"total": 100.0, "loads": 7.0, "stores": 23.4, "queued": 20.0}
    report = {"environment": ENVIRONMENT, "dtype": "f16", "case": "32x64", "arms": {"dense": arm}}
    text = stalls_table_of(report)
    assert "; f16, 32x64\n" in text
    assert "| dense | 100 | 70 | 7 | 23 | 20 |" in text
