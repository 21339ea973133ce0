"""Idioms of persistent matmuls under every scheme; the GPU's part is scripts/check_idioms.py."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.ws_idioms import (
    IDIOMS,
    Outcome,
    Point,
    Worker,
    compile_all,
    compile_point,
    launch_all,
    points,
)

_CAN_BE = {
    *("plain", "carried-tile", "rank-3", "experts", "no-limit"),
    *(each for each in IDIOMS if each.startswith(("author", "row"))),
}


@pytest.mark.gpu
def test_what_is_specialized_is_right() -> None:
    jobs = max(1, (os.cpu_count() or 2) - 2)
    compiled = dict(compile_all(list(points()), jobs))
    specialized = [point for point, each in compiled.items() if each.kind == "specialized"]
    assert {point.idiom for point in specialized} >= _CAN_BE
    launched = dict(launch_all(specialized, min(4, jobs)))
    wrong = {
        str(point): each.detail
        for point, each in [*compiled.items(), *launched.items()]
        if each.kind == "wrong"
    }
    assert not wrong


def test_outcomes_of_compilations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    row = Point("row-bias-32-float16", "scheme=ping-pong,epilogue-subtile=4,c-buffers=2")
    assert compile_point(row).kind == "specialized"
    assert compile_point(Point("carried-tile", "scheme=ping-pong")).kind == "specialized"
    refused = compile_point(Point("dequantized", "scheme=ping-pong"))
    assert refused.kind == "refused"
    assert "operand A of the dot is in registers" in refused.detail


def test_there_are_points_for_every_box() -> None:
    boxes = [IDIOMS[point.idiom].tile[1] for point in points() if "row-bias" in point.idiom]
    assert {each: boxes.count(each) for each in set(boxes)} == dict.fromkeys((32, 64, 128, 256), 30)


def test_a_worker_is_started_again() -> None:
    worker = Worker(_odd, seconds=3.0)
    try:
        assert worker.run(Point("die", "")).detail == "the process died"
        assert worker.run(Point("raise", "")).detail == "ValueError: raise"
        assert worker.run(Point("hang", "")).detail == "no answer in 3 s: it hangs"
        assert worker.run(Point("plain", "")) == Outcome("specialized")
    finally:
        worker.stop()


def _odd(point: Point) -> Outcome:
    if point.idiom == "die":
        os._exit(1)
    if point.idiom == "raise":
        raise ValueError(point.idiom)
    if point.idiom == "hang":
        time.sleep(60)
    return Outcome("specialized")
