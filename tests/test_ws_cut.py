"""Epilogues that their authors cut into blocks of columns: pieces like those of the pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.ws_core_support import check_protocol, check_values, compile_source
from tests.ws_cut_kernels import cutting, cutting_oddly
from tilepass.core.errors import PassFailure
from tilepass.ir import engine
from tilepass.passes.triton.epilogue_warp_specialize.windows import Columns, M, N, Window

STEPS = (0, 1, 4)
PING_PONG, SPLIT, COOPERATIVE = (
    f"scheme={name},stages=3" for name in ("ping-pong", "split-consumer", "cooperative")
)


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes from earlier compilations."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")


@pytest.mark.parametrize(
    ("source", "tile", "warps", "scheme"),
    [
        (cutting(), (64, 64), 4, PING_PONG),
        (cutting(4, "half", n=128, m=128), (128, 128), 8, f"{SPLIT},alternate-epilogues=true"),
        (cutting(before="bias", work="bias", n=128), (64, 128), 4, SPLIT),
        (cutting(work="residual", n=128, m=128), (128, 128), 8, f"{SPLIT},c-buffers=1"),
        (
            cutting(4, work="residual", n=128, m=128),
            (128, 128),
            8,
            f"{COOPERATIVE},epilogue-subtile=4",
        ),
        (
            cutting(before="scale", work="relu", n=128, m=128),
            (128, 128),
            8,
            f"{SPLIT},epilogue-subtile=4,late-subtiles=2",
        ),
        (cutting(before="scale", work="bias", by="pointers", n=128), (64, 128), 4, PING_PONG),
        (cutting_oddly("swapped"), (64, 64), 4, f"{PING_PONG},epilogue-subtile=4"),
        (cutting_oddly("different"), (64, 64), 4, SPLIT),
    ],
)  # fmt: skip
def test_the_authors_pieces(source: Any, tile: tuple[int, int], warps: int, scheme: str) -> None:
    """Work before and after the cut, residual tiles and rows by pieces; stored by TMA and through
    pointers, and in another order."""
    compiled = compile_source(source, scheme, warps)
    compiled.config = replace(compiled.config, block_m=tile[0], block_n=tile[1])
    assert "ttg.warp_specialize" in engine.operation_names(compiled.after)
    (remark,) = (each.message for each in compiled.remarks if each.kind == "passed")
    assert "subtiles" in remark or "split-consumer" in remark
    check_values(compiled, STEPS)
    check_protocol(compiled, STEPS, 2)


@pytest.mark.parametrize(
    ("how", "scheme", "reason"),
    [
        ("gated", SPLIT, "the kernel computes one part of the tile from another"),
        ("interleaved", SPLIT, "tt.reshape in the epilogue cannot be computed for a part"),
        ("one", SPLIT, "the pieces that the kernel cuts the tile into are not loaded or stored"),
        ("and whole", SPLIT, "two pieces of the tile may be stored to the same place"),
    ],
)
def test_what_is_not_cut_into_pieces(how: str, scheme: str, reason: str) -> None:
    with pytest.raises(PassFailure, match=reason):
        compile_source(cutting_oddly(how), scheme)


def test_fewer_pieces_than_the_author_cuts() -> None:
    with pytest.raises(PassFailure, match="cannot be built with epilogue-subtile=1; leave"):
        compile_source(cutting(), f"{PING_PONG},epilogue-subtile=1")


def test_blocks_of_columns() -> None:
    tile = Columns(0, 256, 256)
    left, right = tile.half(0), tile.half(1)
    assert (left, right) == (Columns(0, 128, 256), Columns(128, 128, 256))
    assert (left.index, right.index, right.half(0).index, right.half(1).index) == (0, 1, 0, 1)
    assert left.doubled == right.doubled == N
    assert right.half(0).doubled == right.half(1).doubled == right


def test_windows_within_blocks_of_columns() -> None:
    right = Columns(128, 128, 256)
    window = Window((64, 192), (64, 64))
    assert window.holds((M, right))
    assert window.holds((M, N))
    assert window.holds(())
    assert not window.holds((M, Columns(0, 128, 256)))
    assert not Window((0, 64), (64, 64)).holds((right,))
    assert window.start((M, right)) == (64, 64)
    assert window.start((M, N)) == (64, 192)
    assert window.shape((128, 128), (M, right)) == (64, 64)
    assert Window.whole((64, 256)).shape((128, 128), (M, right)) == (64, 128)
    assert not any(Window((0, first), (64, 64)).cuts((right,)) for first in (0, 64, 128, 192))
    assert all(Window((0, first), (64, 128)).cuts((right,)) for first in (64, 192))
    assert Window((0, 0), (64, 256)).cuts((right,))
    assert not Window((0, 128), (64, 128)).cuts((M, right))
