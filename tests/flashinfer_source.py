"""FlashInfer's pinned wheels for tests: downloaded once, kept in the build tree."""

from __future__ import annotations

from pathlib import Path

from benchmarks.gdn_prefill.wheels import unpacked

CACHE = Path(__file__).resolve().parents[1] / "out" / "flashinfer"


def flashinfer(version: str) -> Path:
    """The folder that holds `flashinfer/gdn_kernels` of a version. Raises TilepassError."""
    return unpacked(version, CACHE)
