"""Launches timed in turn, with a stand-in for Triton's benchmark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import triton

from benchmarks.in_turn import medians_in_turn


def test_each_call_gets_its_own_median_in_us(monkeypatch: pytest.MonkeyPatch) -> None:
    milliseconds = {"fast": iter([0.5, 0.25, 0.75]), "slow": iter([2.0, 8.0, 4.0])}
    order: list[str] = []

    def bench(call: Callable[[], str], **options: Any) -> float:
        assert options == {"warmup": 5, "rep": 40, "return_mode": "median"}
        order.append(call())
        return next(milliseconds[order[-1]])

    monkeypatch.setattr(triton.testing, "do_bench", bench)
    assert medians_in_turn([lambda: "fast", lambda: "slow"], 3) == [500.0, 4000.0]
    assert order == ["fast", "slow"] * 3
