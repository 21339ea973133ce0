"""Samples by instruction, as Nsight Compute lists them."""

from __future__ import annotations

import pytest

from benchmarks.gdn_prefill.stalls import parse, summarise
from tilepass.core.errors import TilepassError

TITLES = '"Address","Source","# Samples","Instructions Executed","stall_lg"'


def listing(samples: int, stores: int = 32) -> str:
    """One launch: loads of 20 numbers, a branch, some stores behind it, and others not executed."""
    lines = ["LDG.E R4, [R2.64]"] * 20 + ["@!P0 BRA 0x10"]
    lines += ["@P1 STG.E.64 [R2.64], R8", "NOP"] * stores + ["EXIT"]
    rows = [f'"0x0","  {text} ","{samples}","8","{samples // 2}"' for text in lines]
    rows += ['"0x0","STG.E [R2.64], R8","0","0",""'] * 64
    return "\n".join(['"Kernel Name","k",""', TITLES, *rows])


def test_the_mean_over_launches_by_what_is_accessed() -> None:
    kernels = list(parse(f"{listing(2)}\n{listing(4)}"))
    assert [len(kernel) for kernel in kernels] == [20 + 1 + 64 + 1 + 64] * 2
    stalls = summarise(kernels)
    assert stalls.launches == 2
    assert (stalls.total, stalls.loads) == (3 * 86, 3 * 20)
    assert (stalls.stores, stalls.queued) == (3 * 32, 1.5 * 32)


def test_another_kernel_is_refused() -> None:
    with pytest.raises(TilepassError, match="no run of 16 STG: not the prefill"):
        summarise(list(parse(listing(2, stores=7))))
