"""Kernels that count their tiles for themselves: every scheme takes them, with the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ws_core_kernels import source, subtiled
from tests.ws_core_support import check_protocol, check_values, compile_source
from tilepass.ir import engine

STEPS = (0, 1, 4)


@pytest.mark.parametrize(
    ("scheme", "warps"),
    [
        ("scheme=ping-pong", 4),
        ("scheme=split-consumer,epilogue-subtile=2,late-subtiles=1", 8),
        ("scheme=cooperative,epilogue-subtile=4,late-subtiles=2", 4),
    ],
)
def test_a_second_count_of_the_tiles(
    scheme: str, warps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Triton's tutorial: the epilogue's number begins a trip early. No group carries it, and
    late pieces are of the tile before."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernel = source(subtiled, PROGRAMS=2, HALVES=1)
    compiled = compile_source(kernel, f"{scheme},stages=3", warps, block=128 if warps == 8 else 64)
    assert "ttg.warp_specialize" in engine.operation_names(compiled.after)
    check_values(compiled, STEPS)
    check_protocol(compiled, STEPS, 2)
